"""Archive Spark's classes, so that later starts of the JVM take half the time (AppCDS).

    first start:  java -XX:DumpLoadedClassList ─▶ <key>.classes
    a bit later:  nice java -Xshare:dump        ─▶ <key>.jsa
    later starts: java -XX:SharedArchiveFile=<key>.jsa

INVARIANTS
  A1  an archive is used only with the Java and the jars it was built from: both are part of its
      key (and the JVM checks again, and goes on without an archive that does not fit).
  A2  an archive appears under its name complete or not at all.
  A3  the process that builds it ends when the server does, however the server ends.

Static, not dynamic, archives: the packaged runtime has no base archive that a dynamic one could
extend.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from compute.spark.jvm import class_path, module_options, parent_death_prefix

DUMP_SECONDS_MAX: Final = 300
"""It takes 10 s of one core, but at the lowest priority."""
CLASSES_MIN: Final = 5_000
"""Spark alone loads more than twice as many; a shorter list comes from a JVM that died at its
start."""


class ClassArchive:
    """The archive of one Java and one set of jars in a directory that outlives the JVM."""

    def __init__(self, directory: Path, java: Path) -> None:
        self._java = java
        key = _key(java)
        self.path = directory / f"{key}.jsa"
        self._classes = directory / f"{key}.classes"
        directory.mkdir(parents=True, exist_ok=True)

    def options(self) -> Sequence[str]:
        """Options for launching the JVM: use the archive, or record the classes for it."""
        if self.path.exists():
            return (f"-XX:SharedArchiveFile={self.path}", "-Xlog:cds=off", "-Xlog:cds+heap=off")
        return (f"-XX:DumpLoadedClassList={self._classes}",)

    def build(self, stop: threading.Event) -> bool:
        """Build the archive from the classes recorded so far; False if there are none."""
        if self.path.exists() or not self._classes.exists():
            return False
        # The JVM is still writing: its last line may be half a line.
        noted = self._classes.read_text(errors="replace").rpartition("\n")[0]
        if noted.count("\n") < CLASSES_MIN:
            return False
        chosen = self.path.with_suffix(".chosen")
        chosen.write_text(noted + "\n")
        unfinished = self.path.with_suffix(f".{os.getpid()}")
        try:
            if not _dump(self._java, chosen, unfinished, stop):
                return False
            unfinished.rename(self.path)
            self._classes.unlink(missing_ok=True)
            return True
        finally:
            for left in (chosen, unfinished):
                left.unlink(missing_ok=True)


def _dump(java: Path, classes: Path, target: Path, stop: threading.Event) -> bool:
    nice = shutil.which("nice")
    if nice is None:
        return False
    command = [
        *(*parent_death_prefix(), nice, "-n", "19", str(java), *module_options()),
        *("-Xshare:dump", "-XX:+UseSerialGC"),
        *("-XX:-UsePerfData", "-Xlog:cds=off", "-Xlog:cds+heap=off"),
        *(f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={target}"),
        *("-cp", class_path()),
    ]
    nothing = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing) as process:
        for _ in range(DUMP_SECONDS_MAX * 10):
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(0.1) == 0 and target.exists()
            if stop.is_set():
                break
        process.kill()
    return False


def _key(java: Path) -> str:
    digest = hashlib.blake2b(digest_size=8)
    release = java.parent.parent / "release"
    digest.update(f"{java.resolve()}\n".encode())
    if release.exists():
        digest.update(release.read_bytes())
    for jar in class_path().split(":"):
        found = Path(jar).stat()
        digest.update(f"{jar} {found.st_size} {found.st_mtime_ns}\n".encode())
    return digest.hexdigest()
