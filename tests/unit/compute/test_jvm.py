"""Finding Java, and the archive of its classes, without starting a JVM."""

import os
import subprocess
import threading
from pathlib import Path

import pytest

from compute.executor import EngineUnavailable
from compute.spark import jvm
from compute.spark.class_archive import ClassArchive
from compute.spark.jvm import ZONE_RULES, JvmSettings, class_path, find_java, launch


def java_home(
    place: Path, version: str, script: str = "exit 1", *, zones: str = ZONE_RULES
) -> Path:
    """A directory that looks like a Java runtime."""
    (place / "lib").mkdir(parents=True)
    (place / "lib" / "tzdb.dat").write_bytes(b"\1\0\4TZDB\0\1\0\5" + zones.encode() + b"..")
    (place / "bin").mkdir()
    (place / "bin" / "java").write_text(f"#!/bin/sh\n{script}\n")
    (place / "bin" / "java").chmod(0o700)
    (place / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return place


def test_the_configured_java_comes_first(tmp_path: Path) -> None:
    mine, other = java_home(tmp_path / "a", "17.0.1"), java_home(tmp_path / "b", "21.0.2")
    assert find_java(mine, {"JAVA_HOME": str(other)}) == mine / "bin" / "java"
    assert find_java(None, {"JAVA_HOME": str(other)}) == other / "bin" / "java"


def test_what_is_too_old_or_missing(tmp_path: Path) -> None:
    old = java_home(tmp_path / "old", "11.0.2")
    with pytest.raises(EngineUnavailable, match="older"):
        find_java(old, {})
    with pytest.raises(EngineUnavailable, match="no Java"):
        find_java(tmp_path / "none", {})
    # JAVA_HOME is only a hint.
    packaged = find_java(None, {})
    assert packaged.exists()
    assert find_java(None, {"JAVA_HOME": str(old)}) == packaged
    assert find_java(None, {"JAVA_HOME": str(tmp_path / "none")}) == packaged


def test_a_java_with_other_time_zones_is_used_only_if_it_is_configured(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = java_home(tmp_path / "a", "21.0.2", zones="2019c")
    assert find_java(None, {"JAVA_HOME": str(other)}) == find_java(None, {})
    assert caplog.text == ""
    assert find_java(other, {}) == other / "bin" / "java"
    assert "time zones of 2019c, not 2025b" in caplog.text


def test_a_java_that_ends_at_once(tmp_path: Path) -> None:
    home = java_home(tmp_path / "java", "21", "echo broken; exit 7")
    with pytest.raises(EngineUnavailable, match="ended with 7"):
        launch(JvmSettings(tmp_path / "jvm", java_home=home), threading.Event())
    assert "broken" in (tmp_path / "jvm" / "output").read_text()


def test_a_start_can_be_given_up(tmp_path: Path) -> None:
    home = java_home(tmp_path / "java", "21", "exec sleep 600")
    stop = threading.Event()
    stop.set()
    with pytest.raises(EngineUnavailable, match="shutting down"):
        launch(JvmSettings(tmp_path / "jvm", java_home=home), stop)


def test_the_class_path_has_an_order() -> None:
    assert class_path().split(":") == sorted(class_path().split(":"))
    assert "spark-core" in class_path()


def test_an_archive_is_made_once_from_enough_classes(tmp_path: Path) -> None:
    # This Java "dumps" by copying the list of classes to where the archive should be.
    script = """
for option in "$@"; do
  case $option in
    -XX:SharedClassListFile=*) from=${option#*=} ;;
    -XX:SharedArchiveFile=*) to=${option#*=} ;;
  esac
done
cp "$from" "$to"
"""
    java = java_home(tmp_path / "java", "21", script) / "bin" / "java"
    archive = ClassArchive(tmp_path / "classes", java)
    stop = threading.Event()
    [option] = archive.options()
    classes = Path(option.removeprefix("-XX:DumpLoadedClassList="))
    assert not archive.build(stop)
    classes.write_text("a/Class\n" * 10)
    assert not archive.build(stop)
    classes.write_text("a/Class\n" * 20_000 + "half/a/li")
    assert archive.build(stop)
    assert archive.path.read_text() == "a/Class\n" * 20_000
    assert [path.name for path in archive.path.parent.iterdir()] == [archive.path.name]
    assert f"-XX:SharedArchiveFile={archive.path}" in archive.options()
    assert not archive.build(stop)


def test_another_java_has_another_archive(tmp_path: Path) -> None:
    javas = [java_home(tmp_path / name, name) / "bin" / "java" for name in ("17", "21")]
    assert len({ClassArchive(tmp_path, java).path for java in javas}) == 2


def test_a_dump_that_fails_leaves_nothing(tmp_path: Path) -> None:
    java = java_home(tmp_path / "java", "21") / "bin" / "java"
    archive = ClassArchive(tmp_path / "classes", java)
    Path(archive.options()[0].partition("=")[2]).write_text("a/Class\n" * 20_000)
    assert not archive.build(threading.Event())
    assert not archive.path.exists()


def test_killing_what_another_thread_has_just_waited_for_is_nothing() -> None:
    process = subprocess.Popen(["true"], process_group=0)
    os.waitid(os.P_PID, process.pid, os.WEXITED)
    # Held as by a thread inside `wait`: `poll` then says that the process lives.
    lock: threading.Lock = vars(process)["_waitpid_lock"]
    with lock:
        jvm._kill_group(process)
    process.wait()
