"""`meridian doctor`: what is wrong first, and one archive for who is asked for help.

    settings ─▶ who holds the data directory? ─┬─ a server ─▶ it answers (`diagnostics.py`), /proc
                                               └─ nobody ─▶ `meridian check`
    all of it ─▶ findings (`doctor_findings.py`) ─▶ report ─▶ FILE.tar.gz

INVARIANTS
  X1  nothing but the archive is changed, and no file is overwritten by it.
  X2  whatever fails while something is gathered is a part of the archive, and ends nothing.
  X3  each line of each part goes through `without_secrets`.
"""

import calendar
import fcntl
import io
import json
import os
import platform
import shutil
import socket
import sys
import tarfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from coordinator.config import Settings, SettingsError
from coordinator.exit_line import report_failure
from coordinator.hidden_secrets import without_secrets
from coordinator.server.diagnostics import DOCTOR_SOCKET, shown_settings
from coordinator.server.doctor_findings import (
    DiskSpace,
    DoctorFinding,
    Rank,
    judge_check,
    judge_disks,
    judge_limits,
    judge_log,
    judge_metrics,
    metric_samples,
)
from coordinator.server.open_storage import local_path
from coordinator.version import PRODUCT_VERSION

DOCTOR_PATIENCE_S: Final = 15.0
"""For a server to answer. Longer: a doctor of a server that stands still waits longer."""
LOG_BYTES: Final = 1 << 20
"""Of a log file, so much from its end."""
_THREADS_MAX: Final = 500

_EXPLAINED: Final = {
    "report": "this page",
    "versions": "Meridian, Python, this machine, and all Python packages",
    "settings": "the settings of the running server, or those that were given to the doctor",
    "process": "what the system says of the server's process and its threads",
    "server": "the running server's version",
    "health": "whether it leads and has recovered",
    "loop": "whether the event loop, which serves everybody, stands",
    "failure": "why a part of the server's answer failed",
    "troubles": "tables, sources and views that are not as they should be",
    "stacks": "where the server's threads and tasks are",
    "metrics": "what /metrics says",
    "log": "the newest lines of the log",
    "check": "what meridian check says; it runs if no server does",
}


@dataclass(slots=True)
class _Gathered:
    """Parts of the archive by name, and what is wrong."""

    settings: Settings
    parts: dict[str, str] = field(default_factory=dict[str, str])
    findings: list[DoctorFinding] = field(default_factory=list[DoctorFinding])

    def found(self, rank: Rank, text: str) -> None:
        self.findings.append(DoctorFinding(rank, text))

    def attempt(self, name: str, gather: Callable[[], None]) -> None:
        """X2."""
        try:
            gather()
        except Exception as error:
            # A broken server is what this is for: the rest is gathered all the same.
            self.parts[name] = self.parts.get(name, "") + traceback.format_exc()
            said = f"{type(error).__name__}: {error}"
            self.found(Rank.WATCH, f"the doctor could not gather {name}: {said}")


def doctor(settings: Settings, *, refused: str | None, log: str | None, output: str | None) -> int:
    """Print what is wrong, and write the archive; 0 if it is written. `refused`: why the settings
    are not those that were given.
    """
    now = time.gmtime()
    moment = time.strftime("%Y%m%dT%H%M%SZ", now)
    gathered = _Gathered(settings)
    if refused is not None:
        gathered.found(Rank.DOWN, f"the settings are refused, so no server starts: {refused}")
    gathered.attempt("versions", lambda: gathered.parts.update(versions=_versions()))
    gathered.parts["settings"] = shown_settings(settings)
    gathered.attempt("process", lambda: _look_at_server(gathered))
    if log is not None:
        gathered.attempt("log", lambda: _read_log(gathered, Path(log)))
    gathered.attempt("disks", lambda: gathered.findings.extend(judge_disks([*_disks(settings)])))
    _judge(gathered)
    report = _hidden(_report(gathered, moment))
    sys.stdout.write(report)
    path = Path(output or f"meridian-doctor-{moment}.tar.gz")
    try:
        parts = {"report": report, **gathered.parts}
        _write(path, f"meridian-doctor-{moment}", parts, calendar.timegm(now))
    except OSError as error:
        return report_failure(f"cannot write {path}: {error.strerror}; name another with --output")
    sys.stdout.write(f"\nAll of it is in {path}\n")
    return 0


# --- the server -----------------------------------------------------------------------------------


def _look_at_server(gathered: _Gathered) -> None:
    settings = gathered.settings
    root = settings.data_path
    if not root.is_dir():
        gathered.found(Rank.DOWN, f"there is no data directory {root}: is --data-dir right?")
        return
    if not os.access(root, os.R_OK | os.X_OK):
        gathered.found(Rank.DOWN, f"{root} cannot be read: run the doctor as the server's user")
        return
    holder = _holder(root)
    if holder is None:
        gathered.found(Rank.DOWN, f"no server runs on the data directory {root}")
        gathered.attempt("check", lambda: _check(gathered))
        return
    gathered.attempt("process", lambda: gathered.parts.update(process=_process(holder)))
    parts, problem = _ask(root)
    gathered.parts.update({name: text for name, text in parts.items() if text})
    gathered.attempt("log", lambda: _read_stderr(gathered, holder))
    if "state: T" in gathered.parts.get("process", ""):
        gathered.found(Rank.DOWN, f"the server, process {holder}, is stopped: send it SIGCONT")
    elif problem is not None:
        said = "it starts, stands by, or is another command of meridian"
        gathered.found(Rank.DOWN, f"process {holder} does not answer ({problem}): {said}")
    elif "stacks" not in parts:
        gathered.found(Rank.DOWN, "no thread of the server runs: process.txt says what they do")
    elif "loop" in parts:
        gathered.found(Rank.DOWN, "the event loop stands still: stacks.txt says where")
    if "failure" in parts:
        gathered.found(Rank.BROKEN, "a part of the server's answer failed: failure.txt says where")


def _holder(root: Path) -> int | None:
    """The process that holds the data directory's lock, which is looked at, not taken (X1)."""
    try:
        descriptor = os.open(root / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        # Shared, and for a moment: another doctor is not in the way.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        told = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
        return int(told) if told.isdecimal() else 0
    finally:
        os.close(descriptor)
    return None


def _ask(root: Path) -> tuple[Mapping[str, str], str | None]:
    """The parts that the server tells, and why it tells none."""
    directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    received = bytearray()
    latest = time.monotonic() + DOCTOR_PATIENCE_S
    problem = None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        try:
            asking.settimeout(DOCTOR_PATIENCE_S)
            asking.connect(f"/proc/self/fd/{directory}/{DOCTOR_SOCKET}")
            while time.monotonic() < latest and (data := asking.recv(1 << 16)):
                received += data
        except TimeoutError:
            pass  # what came until then is told
        except OSError as error:
            problem = error.strerror or str(error)
        finally:
            os.close(directory)
    parts: dict[str, str] = {}
    for line in received.splitlines():
        with suppress(ValueError):  # the last one may be cut off
            name, text = json.loads(line)
            if name in _EXPLAINED:
                parts[name] = str(text)
    return parts, problem


def _process(pid: int) -> str:
    """Of the process and its threads, what the system shows to everybody."""
    place = Path("/proc") / str(pid)
    wanted = ("Name", "State", "VmPeak", "VmHWM", "VmRSS", "VmSwap", "Threads")
    lines = [f"pid {pid}"]
    status = _status(place)
    lines += [f"{name}: {status.get(name, '?')}" for name in wanted]
    lines.append(f"state: {status.get('State', '?')[:1]}")
    with suppress(OSError):
        lines.append(f"open files: {len(os.listdir(place / 'fd'))}")
    with suppress(OSError):
        lines += (place / "limits").read_text().splitlines()
    for task in sorted((place / "task").iterdir())[:_THREADS_MAX]:
        waits = ""
        with suppress(OSError):
            waits = (task / "wchan").read_text()
        seen = _status(task)
        lines.append(f"thread {task.name} {seen.get('Name')} {seen.get('State')} {waits}")
    return "".join(f"{line}\n" for line in lines)


def _status(place: Path) -> Mapping[str, str]:
    try:
        lines = (place / "status").read_text().splitlines()
    except OSError:
        return {}  # it has ended
    return {name: text.strip() for name, _, text in (line.partition(":") for line in lines)}


def _check(gathered: _Gathered) -> None:
    from coordinator.server.check import check

    said = io.StringIO()
    code = 1
    try:
        with redirect_stdout(said), redirect_stderr(said):
            code = check(gathered.settings)
    except Exception:
        # The check itself fails on what is broken: that is the finding (X2).
        said.write(traceback.format_exc())
    gathered.parts["check"] = said.getvalue()
    gathered.findings += judge_check(said.getvalue(), is_clean=code == 0)


# --- the log, the machine -------------------------------------------------------------------------


def _read_stderr(gathered: _Gathered, pid: int) -> None:
    """Where its standard error goes, if that is a file; what the server itself told comes first."""
    if gathered.parts.get("log"):
        return
    with suppress(OSError):
        path = Path("/proc") / str(pid) / "fd" / "2"
        if path.is_file():
            _read_log(gathered, path)


def _read_log(gathered: _Gathered, path: Path) -> None:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - LOG_BYTES))
        text = file.read(LOG_BYTES).decode(errors="replace")
    gathered.parts["log"] = text if size <= LOG_BYTES else text.partition("\n")[2]


def _disks(settings: Settings) -> Iterator[DiskSpace]:
    places = {"the data directory": settings.data_path, "scratch files": settings.data_path / "tmp"}
    with suppress(SettingsError):
        places["the warehouse"] = (
            local_path(settings.warehouse, "file") or settings.data_path / "warehouse"
        )
    seen: set[int] = set()
    for what, path in places.items():
        with suppress(OSError):
            device = path.stat().st_dev
            if device not in seen:
                seen.add(device)
                total, _, free = shutil.disk_usage(path)
                counted = os.statvfs(path)
                inodes = counted.f_favail if counted.f_files else None
                yield DiskSpace(what, total, free, inodes)


def _versions() -> str:
    from importlib.metadata import distributions

    named = {f"{one.metadata['Name']} {one.version}" for one in distributions()}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    lines = [
        f"meridian {PRODUCT_VERSION}",
        f"python {platform.python_version()} ({platform.python_implementation()})",
        f"system {platform.system()} {platform.release()} {platform.machine()}",
        f"libc {' '.join(platform.libc_ver())}",
        f"cores {os.cpu_count()}, memory {memory} MiB",
        "",
        *sorted(named, key=str.lower),
    ]
    return "".join(f"{line}\n" for line in lines)


# --- the report -----------------------------------------------------------------------------------


def _judge(gathered: _Gathered) -> None:
    parts = gathered.parts
    health = parts.get("health", "").strip()
    if health not in ("", "ready"):
        gathered.found(Rank.DOWN, f"the server is not ready: it is {health}")
    if parts.get("metrics"):
        samples = metric_samples(parts["metrics"])
        gathered.findings += judge_metrics(samples)
        gathered.findings += judge_limits(samples, _numbers(parts["settings"]))
    gathered.findings += judge_log(parts.get("log", ""))


def _numbers(settings: str) -> Mapping[str, int]:
    pairs = (line.partition(" = ") for line in settings.splitlines())
    return {name: int(value) for name, _, value in pairs if value.isdecimal()}


def _report(gathered: _Gathered, moment: str) -> str:
    lines = [f"meridian doctor {PRODUCT_VERSION}, {moment}", ""]
    # Equal ranks stay in the order in which they were found.
    findings = sorted(gathered.findings, key=lambda one: one.rank)
    if findings:
        lines.append("What is wrong, worst first:")
        lines += [f"{n}. {' '.join(one.text.split())}" for n, one in enumerate(findings, 1)]
    else:
        lines.append("Nothing is found wrong.")
    if troubles := gathered.parts.get("troubles"):
        lines += ["", "Tables, sources and views:", *troubles.splitlines()]
    names = ["report", *gathered.parts]
    lines += ["", *(f"{name}.txt: {_EXPLAINED[name]}" for name in names if name in _EXPLAINED)]
    return "".join(f"{line}\n" for line in lines)


def _hidden(text: str) -> str:
    """Line by line, as a secret takes all that follows with it (X3)."""
    return "".join(f"{without_secrets(line)}\n" for line in text.splitlines())


def _write(path: Path, folder: str, parts: Mapping[str, str], made: int) -> None:
    """The archive, for its owner only. Raises OSError, FileExistsError among them (X1)."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, text in parts.items():
            content = _hidden(text).encode(errors="replace")
            member = tarfile.TarInfo(f"{folder}/{name}.txt")
            member.size = len(content)
            member.mode = 0o600
            member.mtime = made
            archive.addfile(member, io.BytesIO(content))
