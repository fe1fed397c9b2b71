# mypy: allow-untyped-calls
# py4j has no types; this module is where they enter.
"""Spark sessions with fixed settings that are verified by their effect, and the calls on them.

There is one context, and a session for each session pool (lane): the best settings for three
thousand rows are not the best ones for three hundred million.

    lane     inputs up to        how
    small    10 thousand rows    rows in memory, one task, interpreted: compiling would cost more
    medium   2 million rows      generated code, as many shuffle partitions as cores
    large    any                 generated code, adaptive execution, results through files

INVARIANTS
  K1  a session whose settings do not take effect is never used (`verify_settings`).
  K2  tasks see the settings of their session: each thread of a lane carries them as local
      properties.
"""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, cast

from py4j.protocol import Py4JJavaError

from compute.executor import BATCH_ROWS_MAX, EngineUnavailable
from compute.spark.errors import cause_chain, translating_errors
from compute.spark.gateway import JavaObject
from compute.spark.jvm import Jvm


class SessionPoolName(StrEnum):
    """The session pools; see the module."""

    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Executors on other hosts. `driver_host`: how they reach this one; `wait_s`: how long a query
    waits while there are none. 0 and empty: as Spark does by itself.
    """

    driver_host: str = ""
    driver_bind: str = ""
    driver_port: int = 0
    executor_memory_mb: int = 0
    cores_max: int = 0
    wait_s: float = 60.0

    def conf(self) -> dict[str, str]:
        """As settings of Spark; without a host the driver is on loopback only."""
        host = self.driver_host or LOOPBACK
        conf = {"spark.driver.host": host, "spark.driver.bindAddress": self.driver_bind or host}
        if self.driver_port:
            conf["spark.driver.port"] = str(self.driver_port)
        if self.executor_memory_mb:
            conf["spark.executor.memory"] = f"{self.executor_memory_mb}m"
        if self.cores_max:
            conf["spark.cores.max"] = str(self.cores_max)
        return conf


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """How Spark runs. `directory` is the engine's own; `warehouse` has the shards' directories."""

    directory: Path
    warehouse: Path
    master: str = "local[*]"
    java_home: Path | None = None
    heap_mb: int = 2048
    conf: Mapping[str, str] = field(default_factory=dict[str, str])
    """More settings of Spark, below the fixed ones: who sets a fixed one is ignored."""
    cluster: ClusterSettings | None = None
    """None: the driver computes by itself."""
    archive_directory: Path | None = None
    """Where the class archive is kept; None: `classes` in `directory`."""
    spool_bytes_max: int = 16 << 30
    """Files of one large result. PostgreSQL's temp_file_limit: above it 53400."""
    cores: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))


LOOPBACK: Final = "127.0.0.1"

_PATTERN: Final = re.compile(r"[{}\[\]*?\\]")
"""Characters that Hadoop treats as a pattern in a path."""
ARROW_SCALAR: Final = 250
"""pyspark.util.PythonEvalType.SQL_SCALAR_ARROW_UDF, which to import costs half a second."""
WORKER_ENVIRONMENT: Final = {
    # Workers run this code, wherever it lies, and nothing from the directory they start in.
    "PYTHONPATH": str(Path(__file__).parents[2]),
    "PYTHONSAFEPATH": "1",
    "PYTHONHASHSEED": "0",
    # Threads of numpy would not survive the fork of a worker, and nobody computes with them.
    "OPENBLAS_NUM_THREADS": "1",
}
"""Environment of Spark's Python workers."""
_PARSER_STATES_MAX: Final = 20_000
"""Of what Spark's parser has learnt from all statements so far, some 5 to 10 kB each; it forgets
all of it beyond. More: memory that nobody gives back (a few hundred large statements of many forms
fill the heap, and the JVM does nothing but collect garbage). Fewer: statements are parsed slowly
more often.
"""
_PAGE_SIZE: Final = "4m"
"""Of what joins, sorts and aggregates hold in memory. Larger wastes it on small inputs; smaller has
more pages to look after with large ones, of which a task has 8192, and below 1 MiB none is used
again."""
_RESULT_BYTES_MAX: Final = 256 << 20
"""Bytes that one job may return to the driver. Larger results go through files; too small breaks
broadcasts."""

# Never a user's to change.
_FIXED: Final[Mapping[str, str]] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variable.substitute": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    # A subquery may be an argument of a lambda (quotients); in its body we write none.
    "spark.sql.analyzer.allowSubqueryExpressionsInLambdasOrHigherOrderFunctions": "true",
    # Lambdas within each other take several rounds each; `DEPTH_MAX` ends them.
    "spark.sql.analyzer.maxIterations": "1000",
    "spark.sql.runSQLOnFiles": "false",
    # PostgreSQL tells "A" from "a"; so must a table's columns. Names in statements are generated.
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS_MAX),
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # What we read and write is ours: no rebasing of old calendars, no 96-bit timestamps.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # Listing files by a job costs 200 ms; we know our files.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.crossJoin.enabled": "true",
    # A recursion ends when it has no more rows, as in PostgreSQL; a statement can be cancelled.
    "spark.sql.cteRecursionLevelLimit": "-1",
    "spark.sql.cteRecursionRowLimit": "-1",
    "spark.sql.parser.manageParserCaches": "true",
    "spark.sql.parser.parserDfaCacheFlushThreshold": str(_PARSER_STATES_MAX),
    # Fails with "Can't zip RDDs" where inputs of a union have other numbers of partitions than
    # planned, as those of the aggregates of a subquery do.
    "spark.sql.unionOutputPartitioning": "false",
    # EXCEPT of two selections of one table loses rows if a condition names the outer row.
    "spark.sql.optimizer.replaceExceptWithFilter": "false",
    # Fails with "key not found" when a correlated subquery is projected over a union, which a
    # relation of files and inline rows is. Columns are pruned below unions by another rule.
    # The next one puts a subquery below LIMIT, where the join that it becomes loses the order.
    # The last one writes 0 for a column that is equal to 0, which may be -0 and show so.
    "spark.sql.optimizer.excludedRules": (
        "org.apache.spark.sql.catalyst.optimizer.PushProjectionThroughUnion,"
        "org.apache.spark.sql.catalyst.optimizer.PushProjectionThroughLimitAndOffset,"
        "org.apache.spark.sql.catalyst.optimizer.ConstantPropagation"
    ),
}
_LARGER: Final[Mapping[str, str]] = {
    # Compiled code computes shared subexpressions before it knows which expressions are evaluated:
    # `v = 0 or 10/v > 1, v = 0 or 10/v < 5` would divide by zero.
    "spark.sql.subexpressionElimination.skipForShortcutExpr": "true",
    # It computes columns of rows in memory that nobody reads, before columns are pruned. This
    # replaces the value in `_FIXED`.
    "spark.sql.optimizer.excludedRules": (
        _FIXED["spark.sql.optimizer.excludedRules"]
        + ",org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"
    ),
}
_LANES: Final[Mapping[SessionPoolName, Mapping[str, str]]] = {
    SessionPoolName.SMALL: {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.leafNodeDefaultParallelism": "1",
        # All inputs are one partition: a join in place beats a broadcast, which is a job of its
        # own.
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    },
    SessionPoolName.MEDIUM: {**_LARGER, "spark.sql.adaptive.enabled": "false"},
    SessionPoolName.LARGE: {**_LARGER, "spark.sql.adaptive.enabled": "true"},
}


def launch_conf(settings: SparkSettings) -> dict[str, str]:
    """The configuration that the JVM is launched with."""
    cluster = ClusterSettings() if settings.cluster is None else settings.cluster
    pools = settings.directory / "pools.xml"
    return {
        **settings.conf,
        **cluster.conf(),
        **_FIXED,
        "spark.master": settings.master,
        "spark.app.name": "meridian",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        "spark.local.dir": str(settings.directory / "jvm" / "tmp"),
        "spark.sql.warehouse.dir": str(settings.directory / "jvm" / "catalog"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.driver.maxResultSize": str(_RESULT_BYTES_MAX),
        "spark.scheduler.mode": "FAIR",
        "spark.python.daemon.module": "compute.spark.worker_daemon",
        "spark.scheduler.allocation.file": pools.as_uri(),
        # One query that needs too much memory fails alone; the JVM goes on.
        "spark.executor.killOnFatalError.depth": "0",
        # The table of a broadcast join begins with a page, however small it is, and stays while its
        # statement is kept: of up to 64 MiB, which Spark would choose, a dozen fill the heap.
        "spark.buffer.pageSize": _PAGE_SIZE,
        # Our files carry no checksum files beside them, and want none.
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        "spark.hadoop.fs.permissions.umask-mode": "077",
        "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        # Nobody looks at the history of jobs: keep next to none of it.
        "spark.sql.ui.retainedExecutions": "1",
        "spark.ui.retainedJobs": "1",
        "spark.ui.retainedStages": "1",
        "spark.ui.retainedTasks": "1",
    }


def write_scheduler_pools(settings: SparkSettings) -> None:
    """Write the lanes' scheduler weights: when cores are short, small queries come first."""
    weights = {SessionPoolName.SMALL: 100, SessionPoolName.MEDIUM: 10, SessionPoolName.LARGE: 1}
    text = "".join(
        f'<pool name="{name}"><schedulingMode>FAIR</schedulingMode><weight>{weight}</weight></pool>'
        for name, weight in weights.items()
    )
    settings.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    (settings.directory / "pools.xml").write_text(f"<allocations>{text}</allocations>")


class SparkSession:
    """The session of a lane, and the Java members that are called often (each lookup is a round
    trip).
    """

    def __init__(self, jvm: Jvm, root: JavaObject, lane: SessionPoolName, cores: int) -> None:
        self.jvm = jvm
        self.lane = lane
        self.java = root.newSession()
        self.context = root.sparkContext()
        self._conf = {**_FIXED, **_LANES[lane]}
        self._conf.setdefault("spark.sql.shuffle.partitions", str(cores))
        if lane is SessionPoolName.LARGE:
            # Many, because adaptive execution merges small ones and splits none.
            self._conf["spark.sql.shuffle.partitions"] = str(16 * cores)
        conf = self.java.conf()
        for name, value in self._conf.items():
            conf.set(name, value)
        spark = jvm.java.org.apache.spark.sql
        self._activate = spark.classic.SparkSession.setActiveSession
        self._concat = jvm.java.com.google.common.primitives.Bytes.concat
        self._split = jvm.java.org.apache.commons.lang3.StringUtils.split
        self._read_stream = spark.api.python.PythonSQLUtils.readArrowStreamFromFile
        self._to_frame = spark.api.python.PythonSQLUtils.toDataFrame
        self._to_type = spark.types.DataType.fromJson
        self._local_limit = spark.execution.LocalLimitExec
        self.broadcast = spark.functions.broadcast
        self._column = spark.Column
        self._star = spark.functions.col("*")
        self._udfs = self.java.udf()
        self._catalog = self.java.sessionState().catalog()
        self._python_function = jvm.java.org.apache.spark.api.python.SimplePythonFunction
        self._user_function = spark.execution.python.UserDefinedPythonFunction
        self._struct = spark.types.StructType.fromDDL

    def enter_thread(self) -> None:
        """Bind the calling thread to this session (K2)."""
        with translating_errors(self.jvm):
            self._activate(self.java)
            for name, value in self._conf.items():
                self.context.setLocalProperty(name, value)
            self.context.setLocalProperty("spark.scheduler.pool", str(self.lane))

    def strings(self, values: Sequence[str]) -> JavaObject:
        """A String[] in one call, whatever its length."""
        assert not any("\n" in value for value in values), "names and paths have no line breaks"
        return self._split("\n".join(values), "\n")

    def statement(self, text: str, arguments: Mapping[str, str]) -> JavaObject:
        """The analysed DataFrame of a generated statement."""
        if arguments:
            return self.java.sql(text, dict(arguments))
        return self.java.sql(text)

    def files(self, schema_json: str, paths: Sequence[str]) -> JavaObject:
        """The rows of Parquet files."""
        reader = self.java.read().schema(self._to_type(schema_json))
        # A path is a path, whatever characters the directory's name has. (The option that switches
        # patterns off, `__globPaths__`, makes n files out of each of n.)
        return reader.parquet(self.strings([_PATTERN.sub(r"\\\g<0>", path) for path in paths]))

    def with_identity(self, frame: JavaObject) -> JavaObject:
        """The columns of files, then the name of the file and the index of the row in it."""
        metadata = frame.metadataColumn("_metadata")
        columns: JavaObject = cast("JavaObject", self.jvm.gateway.new_array(self._column, 3))
        columns[0] = self._star
        columns[1] = metadata.getField("file_name")
        columns[2] = metadata.getField("row_index")
        return frame.select(columns)

    def local(self, stream: Path, schema_json: str) -> JavaObject:
        """The rows of a file of Arrow batches."""
        return self._to_frame(self._read_stream(str(stream)), schema_json, self.java)

    def struct(self, ddl: str) -> JavaObject:
        """The struct type with these fields."""
        return self._struct(ddl)

    def register(
        self, name: str, command: bytes, returned: JavaObject, *, deterministic: bool
    ) -> None:
        """Register a function of Python workers. `command`: a pickle of it and of its type."""
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        # No files, no broadcast variables, no accumulator.
        function = self._python_function(
            bytearray(command), WORKER_ENVIRONMENT, [], sys.executable, version, [], None
        )
        self._udfs.registerPython(
            name, self._user_function(name, function, returned, ARROW_SCALAR, deterministic)
        )

    def unregister(self, name: str) -> None:
        """Drop a registered function."""
        self._catalog.dropTempFunction(name, True)

    def limited(self, frame: JavaObject, rows: int) -> JavaObject:
        """The physical plan of a DataFrame, with no more than so many rows from each partition."""
        return self._local_limit(rows, frame.queryExecution().executedPlan())

    def collect(self, frame: JavaObject, plan: JavaObject) -> bytes:
        """Run a plan of this DataFrame; its record batches as consecutive Arrow messages."""
        return bytes(self._concat(frame.toArrowBatchRdd(plan).collect()))

    def collected(self, frame: JavaObject, plan: JavaObject) -> bytes | None:
        """The same; None if the answer is larger than one job may return."""
        try:
            return self.collect(frame, plan)
        except Exception as error:
            # Spark has no condition for it; the text is its own, no data stands in front of it.
            if "spark.driver.maxResultSize" in str(error):
                return None
            raise

    def write(
        self, frame: JavaObject, names: Sequence[str], options: Mapping[str, str], directory: Path
    ) -> None:
        """Run a DataFrame and write its rows as Parquet, with these column names."""
        writer = frame.toDF(self.strings(names)).write().mode("errorifexists")
        for name, value in options.items():
            writer = writer.option(name, value)
        writer.parquet(str(directory))


def verify_settings(session: SparkSession) -> None:
    """Refuse to serve unless each setting takes effect (K1)."""
    found = [str(value) for value in _row(session, f"select {', '.join(_VALUES)}")]
    for (text, expected), value in zip(_VALUES.items(), found, strict=True):
        if value != expected:
            raise EngineUnavailable(f"spark does not obey its settings: {text} is {value!r}")
    for text, expected in _FAILURES.items():
        if (condition := _condition(session, text)) != expected:
            raise EngineUnavailable(f"spark does not obey its settings: {text} is {condition!r}")


def _row(session: SparkSession, text: str) -> list[object]:
    row = session.java.sql(text).collectAsList().get(0)
    return [row.get(position) for position in range(row.size())]


def _condition(session: SparkSession, text: str) -> str:
    """The condition that a statement fails with."""
    try:
        return f"no failure but {_row(session, text)}"
    except Py4JJavaError as error:
        return next(
            (f.condition for f in cause_chain(error, session.jvm) if f.condition), str(error)
        )


# Constants, so that no job is run: a start should not take longer than it must.
_VALUES: Final[Mapping[str, str]] = {
    "typeof(timestamp'2020-01-01 00:00:00')": "timestamp_ntz",
    "unix_micros(timestamp_ltz'1970-01-01 00:00:00')": "0",
    "'${spark.app.name} ${env:HOME}'": "${spark.app.name} ${env:HOME}",
    "typeof(cast(1 as decimal(38,18)) / cast(3 as decimal(38,18)))": "decimal(38,18)",
}
_FAILURES: Final[Mapping[str, str]] = {
    "select 1 / 0": "DIVIDE_BY_ZERO",
    "select 2147483647 + 1": "ARITHMETIC_OVERFLOW",
    'select "x"': "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION",
    "select A from (select 1 as a)": "UNRESOLVED_COLUMN.WITH_SUGGESTION",
    "select * from parquet.`/`": "TABLE_OR_VIEW_NOT_FOUND",
}
