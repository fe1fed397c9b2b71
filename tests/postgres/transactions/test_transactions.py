"""Every statement of the scripts in blocks and behind savepoints answers as recorded of PostgreSQL.

`python -m tests.postgres.transactions --record` asks PostgreSQL and records. `make test` plays some
scripts with the reference engine and on the local one; `make writing` plays all with all engines.
"""

from collections.abc import Iterator

import pytest

from tests.postgres.transactions.playing import Blocks, recorded_path, scripts, statements
from tests.support.servers import ON_SPARK, meridian
from tests.support.stack import WITHOUT_CUTS, serving
from tests.support.stage import stage

SCRIPTS = sorted(scripts())
QUICK = (
    "ddl-domains",
    "ddl-has_privileges",
    "writing-conflict",
    "writing-merge_kinds",
    "writing-truncate_identity",
    "writing-update_delete",
    "writing-with_modifying",
)
LOCALLY = ("writing-merge", "writing-truncate_references")


def check(dsn: str, name: str) -> None:
    """Play a script in a database that holds nothing."""
    with stage(dsn) as connection:
        blocks = Blocks(connection)
        lines = statements(scripts()[name])
        expected = recorded_path(name).read_text().removesuffix("\n").split("\n\n")
        for line, wanted in zip(lines, expected, strict=True):
            assert blocks.play(line) == wanted


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in SCRIPTS]
)
def test_reference(name: str) -> None:
    with serving(core=WITHOUT_CUTS) as dsn:
        check(dsn, name)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with meridian(tmp_path_factory.mktemp("local"), ("--spark-master", "none")) as server:
        yield server.dsn


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with meridian(tmp_path_factory.mktemp("spark"), ON_SPARK) as server:
        yield server.dsn


@pytest.mark.parametrize("name", LOCALLY)
def test_local_on_some(local: str, name: str) -> None:
    check(local, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_local(local: str, name: str) -> None:
    check(local, name)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", SCRIPTS)
def test_spark(spark: str, name: str) -> None:
    check(spark, name)


def test_every_script_is_recorded_as_it_is() -> None:
    for name, path in scripts().items():
        told = recorded_path(name).read_text().removesuffix("\n").split("\n\n")
        said = [answer.partition("\n")[0].removeprefix("> ") for answer in told]
        assert said == statements(path), f"python -m tests.postgres.transactions --record {name}"


def test_there_are_many_statements() -> None:
    distinct = {line for path in scripts().values() for line in statements(path)}
    assert len(distinct) >= 3_600
