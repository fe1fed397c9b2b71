"""The server with nothing but what the package asks for: tests bring more, which hides a lack."""

import json
from collections.abc import Iterator
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import psycopg
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.servers import meridian

SITE = """\
import json, pathlib, sys

class Hidden:
    names = frozenset(json.loads(pathlib.Path(__file__).with_name("hidden.json").read_text()))
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
"""
VALUES = (
    "true", "1::int2", "1", "1::int8", "1.5::float4", "1.5::float8", "1.25", "1.25::numeric(8,2)",
    "'a'", "'a'::varchar(3)", "'a'::char(3)", "'a'::name", "'a'::bytea", "date '2024-02-29'",
    "time '12:00'", "timetz '12:00+02'", "timestamp '2024-02-29 12:00'",
    "timestamptz '2024-02-29 12:00+02'", "interval '1 mon'", "json '{}'", "jsonb '{}'",
    "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid", "array[timestamptz '2024-02-29']", "array[1]",
)  # fmt: skip


def needed() -> set[str]:
    """The names of all distributions that the package brings with it."""
    found: set[str] = set()
    waiting = ["meridian"]
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in found:
            continue
        found.add(name)
        requirements = map(Requirement, distribution(name).requires or ())
        waiting += [
            r.name for r in requirements if r.marker is None or r.marker.evaluate({"extra": ""})
        ]
    return found


@pytest.fixture(scope="module")
def dsn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    site = tmp_path_factory.mktemp("site")
    bare = needed()
    hidden = [
        module
        for module, names in packages_distributions().items()
        if bare.isdisjoint(map(canonicalize_name, names))
    ]
    assert "pytest" in hidden, "what tests bring is hidden"
    (site / "hidden.json").write_text(json.dumps(hidden))
    (site / "sitecustomize.py").write_text(SITE)
    directory: Path = tmp_path_factory.mktemp("server")
    options = ["--spark-master", "none"]
    with meridian(directory, options, {"PYTHONPATH": str(site)}) as server:
        yield server.dsn


@pytest.mark.parametrize("value", VALUES)
def test_values_of_every_type_are_read(dsn: str, value: str) -> None:
    """In few rows and in more: they come different ways."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("set engine = local")
        connection.execute("drop table if exists held")
        connection.execute(
            f"create table held as select {value} as v, g from generate_series(1, 2000) g".encode()
        )
        few = connection.execute(
            "select v::text, v from held where g < 3 order by g limit 2"
        ).fetchall()
        many = connection.execute("select v::text, v from held order by g").fetchall()
    assert few == many[:2]
    assert len(many) == 2000
