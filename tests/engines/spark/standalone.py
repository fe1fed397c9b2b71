"""A standalone master of Spark, and a worker, as processes of their own on loopback."""

import contextlib
import importlib.util
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from compute.spark.jvm import class_path, find_java, module_options

PATIENCE_S = 90
"""Only against waiting for ever."""

_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = "Successfully registered with master"


@contextlib.contextmanager
def _process(
    directory: Path, arguments: Sequence[str], more: Mapping[str, str] | None = None
) -> Iterator[Path]:
    """A Java process; the file that it logs to."""
    directory.mkdir()
    log, settings = directory / "log", directory / "log4j2.properties"
    settings.write_text(
        "rootLogger.level = info\nrootLogger.appenderRef.out.ref = out\n"
        "appender.out.type = Console\nappender.out.name = out\nappender.out.target = SYSTEM_ERR\n"
        "appender.out.layout.type = PatternLayout\nappender.out.layout.pattern = %m%n\n"
    )
    command = [str(find_java(None)), *module_options(), "-Xmx512m"]
    command += [f"-Dlog4j2.configurationFile={settings}", "-cp", class_path(), *arguments]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **(more or {})}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        yield log
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def _found(log: Path, pattern: str | re.Pattern[str]) -> re.Match[str]:
    deadline = time.monotonic() + PATIENCE_S
    while (found := re.search(pattern, log.read_text())) is None:
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
    return found


@contextlib.contextmanager
def standalone_master(directory: Path) -> Iterator[str]:
    """Its URL."""
    arguments = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0"]
    with _process(directory, [*arguments, "--webui-port", "0"]) as log:
        yield _found(log, _MASTER)[1]


def java_with_vectors(directory: Path) -> Path:
    """A JAVA_HOME whose Java takes `--add-modules=jdk.incubator.vector` for granted: the packaged
    runtime does not have that module, and ends when it is asked for.
    """
    (directory / "bin").mkdir(parents=True)
    java = directory / "bin" / "java"
    java.write_text(
        '#!/bin/bash\nkept=()\nfor one in "$@"; do\n'
        '  [ "$one" = --add-modules=jdk.incubator.vector ] || kept+=("$one")\ndone\n'
        f'exec "{find_java(None)}" "${{kept[@]}}"\n'
    )
    java.chmod(0o755)
    return directory


@contextlib.contextmanager
def standalone_worker(
    directory: Path, master: str, java_home: Path | None = None
) -> Iterator[Path]:
    """One with a core and 1 GiB; its log. `java_home`: of its executors; None: the packaged one."""
    arguments = ["org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--port", "0"]
    arguments += ["--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir"]
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None, "pyspark is a dependency"
    assert spec.origin is not None, "pyspark is a package with files"
    environment = {
        "SPARK_HOME": str(Path(spec.origin).parent),
        "SPARK_SCALA_VERSION": "2.13",
        "JAVA_HOME": str(java_home or find_java(None).parent.parent),
    }
    with _process(directory, [*arguments, str(directory / "work"), master], environment) as log:
        _found(log, _REGISTERED)
        yield log
