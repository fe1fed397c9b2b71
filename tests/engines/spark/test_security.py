"""Nothing that a user writes does anything in Spark, and nothing listens."""

import asyncio
import os
import socket
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from compute.executor import EngineUnavailable
from compute.spark.executor import SparkExecutor
from compute.spark.session import SessionPoolName, SparkSettings, launch_conf, verify_settings
from sql.plan.nodes import ColumnId, Const, Param, PlanColumn, Project, RelationId, Values
from sql.types.sql_type import TEXT
from tests.engines.spark.shared_engine import Shard, answer, directory, forced, plan_of, scan
from tests.support.processes import children, command_line

pytestmark = pytest.mark.spark

TRICKS = [
    "${env:HOME}",
    "${system:user.name}",
    "${spark.app.name}",
    "$${x}",
    "'a\\' OR 1=1 --'",
    "a\\",
    "\\'; drop table t; --",
    "`a` \"b\" 'c'",
    "/*+ broadcast(t) */ -- /* */",
    "java_method('java.lang.System', 'getenv', 'HOME')",
    "text.`/etc/passwd`",
    "select transform(a) using 'cat /etc/passwd'",
    ":a1 ? $1 {a1}",
    "\\u0041\\n\\x41\\101%_",
    "line\nbreak\r\ttab\x00nul",
    "\u2028\u2029\u02bc\uff07😀",
]
SCHEMA = pa.schema([("s", pa.string())])
COLUMNS = [("s", TEXT)]


@pytest.fixture(params=list(SessionPoolName))
def lane(request: pytest.FixtureRequest) -> Any:
    with forced(request.param):
        yield request.param


def test_stored_text_is_text(spark: SparkExecutor, lane: SessionPoolName) -> None:
    shard = Shard.new(SCHEMA)
    shard.file("a.parquet", pa.table([TRICKS], schema=SCHEMA))
    view = shard.view([("a.parquet", None, [])], [("@1", pa.table([TRICKS], schema=SCHEMA), [])])
    found = answer(spark, scan([TEXT]), {"t": view})
    assert sorted(found) == sorted([(text,) for text in TRICKS] * 2)


def test_literals_and_parameters_are_text(spark: SparkExecutor, lane: SessionPoolName) -> None:
    columns = tuple(PlanColumn(ColumnId(n), "c", TEXT) for n in range(2 * len(TRICKS)))
    literals = [Const(text, TEXT) for text in TRICKS]
    parameters = [Param(n, TEXT) for n in range(1, len(TRICKS) + 1)]
    plan = Project(Values((), ((),)), columns, (*literals, *parameters))
    assert answer(spark, plan, {}, TRICKS) == [(*TRICKS, *TRICKS)]


def test_conditions_on_such_text(spark: SparkExecutor, lane: SessionPoolName) -> None:
    shard = Shard.new(SCHEMA)
    shard.file("a.parquet", pa.table([TRICKS], schema=SCHEMA))
    view = shard.view([("a.parquet", None, [])])
    plan = plan_of("select s from t where s = $1", t=COLUMNS)
    for text in TRICKS:
        assert answer(spark, plan, {"t": view}, [text]) == [(text,)]


def test_every_session_is_proven_and_a_wrong_one_refused(spark: SparkExecutor) -> None:
    asyncio.run(spark.ready())
    engine = spark._engine
    assert engine is not None
    wrong = {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.timestampType": "TIMESTAMP_LTZ",
        "spark.sql.session.timeZone": "Europe/Berlin",
        "spark.sql.variable.substitute": "true",
        "spark.sql.decimalOperations.allowPrecisionLoss": "true",
        "spark.sql.ansi.doubleQuotedIdentifiers": "false",
        "spark.sql.runSQLOnFiles": "true",
        "spark.sql.caseSensitive": "false",
    }
    session = engine.lanes[SessionPoolName.LARGE].session
    conf = session.java.conf()
    for name, value in wrong.items():
        verify_settings(session)
        right = conf.get(name)
        conf.set(name, value)
        try:
            with pytest.raises(EngineUnavailable, match="does not obey"):
                verify_settings(session)
        finally:
            conf.set(name, right)


def test_fixed_settings_cannot_be_configured_away(tmp_path: Path) -> None:
    mine = {"spark.sql.runSQLOnFiles": "true", "spark.ui.enabled": "true", "spark.x": "kept"}
    conf = launch_conf(SparkSettings(tmp_path, tmp_path, conf=mine))
    assert conf["spark.sql.runSQLOnFiles"] == conf["spark.ui.enabled"] == "false"
    assert conf["spark.x"] == "kept"


def test_everything_listens_on_loopback(spark: SparkExecutor) -> None:
    asyncio.run(spark.ready())
    assert spark.pid is not None
    addresses = {address for address, _ in listening(spark.pid)}
    assert addresses
    # 127.0.0.1, also as an IPv6 socket has it.
    assert addresses <= {"0100007F", "0000000000000000FFFF00000100007F"}


def test_workers_listen_on_loopback_to_the_jvm_alone(spark: SparkExecutor) -> None:
    view = Shard.new(SCHEMA).view(inline=[("@1", pa.table([["a b"]], schema=SCHEMA), [])])
    plan = plan_of("select initcap(s) from t", t=COLUMNS)
    assert answer(spark, plan, {"t": view}) == [("A B",)]
    assert spark.pid is not None
    [daemon] = [pid for pid in children(spark.pid) if "worker_daemon" in command_line(pid)]
    [(address, port)] = listening(daemon)
    assert address == "0100007F"
    with socket.create_connection(("127.0.0.1", port)) as stranger, stranger.makefile("rb") as said:
        stranger.sendall(struct.pack(">i", 5) + b"wrong")
        # The worker's process id comes before anything is asked.
        assert said.read()[4:] == struct.pack(">i", 3) + b"err"
    assert answer(spark, plan, {"t": view}) == [("A B",)]


def listening(pid: int) -> set[tuple[str, int]]:
    """Where a process listens: addresses as the kernel writes them, and ports."""
    inodes = set[str]()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        target = os.readlink(descriptor)
        if target.startswith("socket:["):
            inodes.add(target[len("socket:[") : -1])
    found = set[tuple[str, int]]()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                address, _, port = fields[1].partition(":")
                found.add((address, int(port, 16)))
    return found


def test_secrets_are_not_on_the_command_line_and_files_are_ours(spark: SparkExecutor) -> None:
    asyncio.run(spark.ready())
    assert spark.pid is not None
    assert "spark.master" not in command_line(spark.pid)
    place = directory() / "spark" / "jvm"
    for path in (place, place / "spark.conf", place / "tmp", place / "log"):
        assert not path.stat().st_mode & 0o077, path.name


def test_relations_keep_no_names_of_users(spark: SparkExecutor) -> None:
    asyncio.run(spark.ready())
    engine = spark._engine
    assert engine is not None
    for lane in engine.lanes.values():
        names = [row.get(1) for row in lane.session.java.sql("show views").collectAsList()]
        assert all(name.startswith("r") and name[1:].isdigit() for name in names)


def test_a_relation_id_is_only_a_key(spark: SparkExecutor) -> None:
    shard = Shard.new(SCHEMA)
    view = shard.view(inline=[("@1", pa.table([["x"]], schema=SCHEMA), [])])
    name = RelationId("`; drop view r1; --")
    assert answer(spark, scan([TEXT], relation=name), {name: view}) == [("x",)]
