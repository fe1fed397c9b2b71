"""What `quick_imports` leaves out, and that dataclasses made within it are like any others."""

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from coordinator.server.quick_imports import quick_imports

PLAIN_MAKER = vars(dataclasses)["_create_fn"]


def point() -> type[Any]:
    """A dataclass with everything that makes a difference to its methods."""

    @dataclasses.dataclass(frozen=True, slots=True, order=True)
    class Base:
        x: int
        names: list[str] = dataclasses.field(default_factory=list, compare=False)

    @dataclasses.dataclass(frozen=True, slots=True, order=True)
    class Point(Base):
        y: int = 2
        hidden: str = dataclasses.field(default="", repr=False, compare=False)
        _: dataclasses.KW_ONLY
        sum: int = dataclasses.field(init=False, default=0)
        self: int = 0

        def __post_init__(self) -> None:
            object.__setattr__(self, "sum", self.x + self.y)

    return Point


def late_point() -> type[Any]:
    with quick_imports():
        return point()


OBSERVATIONS: tuple[Callable[[type[Any]], object], ...] = (
    lambda kind: repr(kind(1)),
    lambda kind: (kind(1) == kind(1), kind(1) == kind(1, [], 3), kind(1) == 1),
    lambda kind: (kind(1) < kind(2), kind(2) <= kind(1), kind(1, [], 3) > kind(1)),
    lambda kind: hash(kind(1, ["a"], 5)) == hash(kind(1, ["b"], 5)),
    lambda kind: dataclasses.asdict(kind(1, self=7)),
    lambda kind: dataclasses.replace(kind(1), y=9),
    lambda kind: kind.__match_args__,
    lambda kind: [kind(1).names is kind(1).names, kind(1).sum],
    lambda kind: kind(),
    lambda kind: kind(1, [], 2, "", 5),
    lambda kind: setattr(kind(1), "x", 2),
    lambda kind: delattr(kind(1), "x"),
    lambda kind: kind(1).__setattr__("unknown", 2),
    lambda kind: kind.__init__.__qualname__ if kind(1) else None,
)


def outcome(observation: Callable[[type[Any]], object], kind: type[Any]) -> str:
    try:
        return repr(observation(kind))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_a_late_method_is_the_one_that_dataclasses_makes(
    observation: Callable[[type[Any]], object],
) -> None:
    plain, late = point(), late_point()
    assert outcome(observation, late) == outcome(observation, plain)
    assert outcome(observation, late) == outcome(observation, plain), "the second time"


def test_methods_take_the_place_of_their_stubs() -> None:
    late = late_point()
    stub = late.__dict__["__init__"]
    late(1)
    assert late.__dict__["__init__"] is not stub
    assert (
        late.__dict__["__init__"].__code__.co_varnames[:2]
        == point().__init__.__code__.co_varnames[:2]
    )


def test_the_library_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    late_point()
    assert "OPENBLAS_NUM_THREADS" not in os.environ
    assert vars(dataclasses)["_create_fn"] is PLAIN_MAKER

    def fail() -> None:
        with quick_imports():
            raise ImportError

    with pytest.raises(ImportError):
        fail()
    assert vars(dataclasses)["_create_fn"] is PLAIN_MAKER


IMPORTS = """
import sys
from coordinator.server.quick_imports import quick_imports
with quick_imports():
    from coordinator.server.serve import serve
import pyarrow
pyarrow.array(["a"]), pyarrow.scalar(1)
print(*sorted(sys.modules))
"""


UNNEEDED = {
    *("pandas", "pyspark", "py4j", "duckdb", "asyncpg", "cryptography", "regex", "tomllib"),
    *("psycopg", "ingest.postgres.reader"),
    *("aiohttp", "prometheus_client", "coordinator.monitoring.listener"),
    *("pyarrow._s3fs", "pyarrow._gcsfs", "pyarrow._azurefs", "pyarrow._hdfs"),
    *("importlib.metadata", "compute.spark", "compute.duckdb.executor", "compute.engine_sql"),
    *("coordinator.execution.copy", "coordinator.execution.ddl", "coordinator.execution.explain"),
    *("coordinator.pgcatalog.relations", "sql.binder.definition_binders", "sql.deparse"),
    *("sql.emit.duckdb.dialect", "sql.emit.spark.dialect"),
}


def test_a_start_imports_no_engine_and_no_pandas() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True, timeout=120
    )
    imported = set(ran.stdout.split())
    assert "coordinator.server.connection" in imported
    assert imported & UNNEEDED == set()


def test_a_start_makes_no_threads_for_algebra() -> None:
    """One is pyarrow's, which gives memory back; and whoever asks for more gets them."""
    count = IMPORTS + "import os; print(len(os.listdir('/proc/self/task')), os.environ.get(NAME))"
    code = f"NAME = 'OPENBLAS_NUM_THREADS'{count}"
    for said, threads in (None, {"1", "2"}), ("2", {"1", "2", "3"}):
        environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
        ran = subprocess.run(
            [sys.executable, "-c", code],
            env=environment | ({} if said is None else {"OPENBLAS_NUM_THREADS": said}),
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        found, left = ran.stdout.splitlines()[-1].split()
        assert found in threads
        assert left == str(said)


def test_pandas_is_there_for_those_who_want_it() -> None:
    pytest.importorskip("pandas")
    code = IMPORTS + "print(pyarrow.table({'a': [1]}).to_pandas()['a'].sum())"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert ran.stdout.splitlines()[-1] == "1"
