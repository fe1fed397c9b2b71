"""The library and the journal: what a small program does, refused, counted, and lost."""

import errno
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.resilience.faults.journal import Disk, Loss, Operation, read_journal
from tests.resilience.faults.preload import Faults, Kind

BEGINNING = """
import errno, os, sys, time
os.chdir(sys.argv[1])
def write(name, content, flags=os.O_CREAT | os.O_WRONLY):
    file = os.open(name, flags, 0o600)
    try:
        os.write(file, content)
    finally:
        os.close(file)
def sync(name):
    file = os.open(name, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
"""


class Program:
    """Runs pieces of Python below the root, with the library between them and libc."""

    def __init__(self, directory: Path) -> None:
        self.faults = Faults(directory, journal=True)
        self.disk = Disk(self.faults.root)

    def run(self, text: str) -> str:
        """What it prints."""
        command = [sys.executable, "-S", "-c", BEGINNING + text, str(self.faults.root)]
        environment = {**self.faults.environment}
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout.strip()

    def left(self, loss: Loss, target: Path) -> dict[str, bytes]:
        """The files after a power failure now."""
        records = read_journal(self.faults.journal)
        self.disk.advance(records, len(records))
        self.disk.write_to(target, loss, random.Random(1))
        return _files(target)


def _files(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path / "program")


@pytest.mark.parametrize(
    ("loss", "left"),
    [
        (Loss.ALL, {"both": b"one"}),
        (Loss.CONTENT, {"both": b"one", "content": b"one", "name": b"", "neither": b""}),
        (Loss.NAMES, {"both": b"onetwo", "name": b"one"}),
        (Loss.NONE, {"both": b"onetwo", "content": b"one", "name": b"one", "neither": b"one"}),
    ],
)
def test_a_sync_covers_content_or_names(
    program: Program, tmp_path: Path, loss: Loss, left: dict[str, bytes]
) -> None:
    program.run("write('both', b'one'); write('name', b'one'); sync('both'); sync('.')")
    program.run("write('content', b'one'); sync('content'); write('neither', b'one')")
    program.run("write('both', b'two', os.O_WRONLY | os.O_APPEND)")
    expected = {"name": b"", **left} if loss is Loss.ALL else left
    assert program.left(loss, tmp_path / "left") == expected


def test_an_unsynced_removal_comes_back(program: Program, tmp_path: Path) -> None:
    program.run("write('file', b'one'); sync('file'); os.mkdir('below'); sync('.')")
    program.run("os.link('file', 'below/other'); os.unlink('file')")
    assert program.left(Loss.ALL, tmp_path / "before") == {"file": b"one"}
    program.run("sync('below'); sync('.')")
    assert program.left(Loss.ALL, tmp_path / "after") == {"below/other": b"one"}


def test_a_number_that_is_given_again_is_another_file(program: Program, tmp_path: Path) -> None:
    for content in ("one", "two", "three"):
        program.run(f"write('file', b'{content}'); sync('file'); sync('.')")
        program.run("os.unlink('file')")
    program.run("os.rename('missing', 'x') if False else write('last', b'x'); sync('.')")
    assert program.left(Loss.NONE, tmp_path / "left") == {"last": b"x"}


def test_everything_that_a_program_does_is_replayed(program: Program, tmp_path: Path) -> None:
    program.run(
        "file = os.open('file', os.O_CREAT | os.O_RDWR, 0o600)\n"
        "os.pwrite(file, b'abcdef', 4); os.ftruncate(file, 7); os.lseek(file, 2, 0)\n"
        "os.writev(file, [b'', b'xy', b'z']); copy = os.dup(file); os.write(copy, b'!')\n"
        "os.mkdir('a'); os.rename('file', 'a/moved'); os.link('a/moved', 'linked')\n"
        "open('text', 'w').write('some text'); open('text', 'w').write('other')\n"
        "os.mkdir('b'); os.rmdir('b')\n"
    )
    assert program.left(Loss.NONE, tmp_path / "left") == _files(program.faults.root)


def test_a_number_of_a_closed_file_belongs_to_whoever_gets_it(program: Program) -> None:
    text = """
directory = os.open('.', os.O_RDONLY)
os.listdir(directory); list(os.scandir(directory)); os.close(directory)
for _ in range(3):
    _, end = os.pipe()
    os.write(end, b'x')
print('written')
"""
    program.faults.leave_space(0)
    assert program.run(text) == "written"


def test_a_write_may_arrive_in_part(program: Program, tmp_path: Path) -> None:
    program.run("write('file', b'x' * 4096); sync('.')")
    sizes = set()
    for seed in range(20):
        records = read_journal(program.faults.journal)
        program.disk.advance(records, len(records))
        program.disk.write_to(tmp_path / str(seed), Loss.SOME, random.Random(seed))
        sizes |= {len(content) for content in _files(tmp_path / str(seed)).values()}
    assert len(sizes) > 2
    assert all(size % 512 == 0 for size in sizes)


@pytest.mark.parametrize("kind", [Kind.STASH, Kind.WAREHOUSE])
def test_syncs_fail_lie_and_are_counted(program: Program, kind: Kind) -> None:
    name = {Kind.STASH: "stash.db", Kind.WAREHOUSE: "part.parquet"}[kind]
    text = f"""
write({name!r}, b'one')
try:
    sync({name!r})
except OSError as error:
    print(error.errno)
"""
    program.faults.fail_syncs(1, kind)
    assert program.run(text) == str(errno.EIO)
    assert program.run(text) == ""
    program.faults.fail_syncs(1, Kind.ANY & ~kind)
    program.faults.lie_about_syncs(kind)
    assert program.run(text) == ""
    operations = [record.operation for record in read_journal(program.faults.journal)]
    assert operations.count(Operation.SYNC) == 1
    assert (program.faults.syncs, program.faults.refused) == (3, 1)


def test_writes_fail_and_the_disk_is_full(program: Program) -> None:
    text = """
for number in range(5):
    try:
        write(f'file{number}', b'x' * 1000)
    except OSError as error:
        print(errno.errorcode[error.errno])
"""
    program.faults.fail_writes(1, Kind.ANY)
    assert program.run(text).split() == ["EIO"]
    program.faults.leave_space(2500)
    # The third write is cut short; then neither content nor new names have room.
    assert program.run(text).split() == ["ENOSPC", "ENOSPC"]
    program.faults.leave_space(None)
    assert program.run(text) == ""


def test_one_directory_is_full(program: Program) -> None:
    text = """
for name in ('first/file', 'second/file', 'linked'):
    try:
        if name == 'linked':
            os.link('linked', 'first/linked')
        else:
            write(name, b'x')
    except OSError as error:
        print(name, errno.errorcode[error.errno])
"""
    program.run("os.mkdir('first'); os.mkdir('second'); write('linked', b'x')")
    program.faults.fill(program.faults.root / "first")
    assert program.run(text).split() == ["first/file", "ENOSPC", "linked", "ENOSPC"]
    program.faults.fill(None)
    assert program.run(text) == ""


def test_the_wall_clock_moves_and_the_monotonic_one_does_not(program: Program) -> None:
    program.faults.set_clock(7200)
    wall, monotonic = program.run("print(time.time(), time.monotonic())").split()
    here = time.clock_gettime(time.CLOCK_REALTIME)
    assert 7000 < float(wall) - here < 7300
    assert abs(float(monotonic) - time.monotonic()) < 60


def test_children_are_left_alone(program: Program) -> None:
    program.faults.fail_writes(1, Kind.ANY)
    program.run("import subprocess; subprocess.run(['sh', '-c', 'echo one > file'], check=True)")
    assert program.faults.refused == 0


def test_what_the_journal_cannot_see_ends_the_program(program: Program) -> None:
    text = "import mmap; write('f', b'one'); f = os.open('f', os.O_RDWR); mmap.mmap(f, 3)"
    with pytest.raises(subprocess.CalledProcessError) as ended:
        program.run(text)
    assert "not journaled" in ended.value.stderr
