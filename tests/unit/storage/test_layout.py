"""The data directory: layout, modes, one process at a time."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from storage.errors import Determinate, Locked
from storage.layout import DataDirectory


def test_layout_and_modes(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        data = DataDirectory.open(tmp_path / "new" / "data")
    finally:
        os.umask(before)
    assert data.stash == tmp_path / "new" / "data" / "stash.db"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in data.root.iterdir()}
    assert modes == {"lock": 0o600, "tmp": 0o700, "warehouse": 0o700}
    assert stat.S_IMODE(data.root.stat().st_mode) == 0o700
    data.close()


def test_scratch_is_emptied_and_the_rest_kept(tmp_path: Path) -> None:
    first = DataDirectory.open(tmp_path)
    (first.scratch / "junk").mkdir()
    (first.scratch / "junk" / "file").write_text("x")
    (first.warehouse / "t1").mkdir()
    first.close()
    second = DataDirectory.open(tmp_path)
    assert list(second.scratch.iterdir()) == []
    assert [path.name for path in second.warehouse.iterdir()] == ["t1"]
    second.close()


def test_the_second_is_locked_out_and_changes_nothing(tmp_path: Path) -> None:
    first = DataDirectory.open(tmp_path)
    (first.scratch / "mine").write_text("x")
    with pytest.raises(Locked, match=f"^{tmp_path} is in use by process {os.getpid()}$"):
        DataDirectory.open(tmp_path)
    assert (first.scratch / "mine").exists()
    first.close()
    DataDirectory.open(tmp_path).close()


def test_a_child_does_not_inherit_the_lock(tmp_path: Path) -> None:
    """The JVM may outlive us by seconds; it must not keep the next process out (K2)."""
    first = DataDirectory.open(tmp_path)
    # It speaks once it runs: until then the kernel may not have closed what it does not inherit.
    code = "import sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        close_fds=False,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        first.close()
        DataDirectory.open(tmp_path).close()
        assert child.poll() is None
        child.communicate()


def test_a_process_that_dies_leaves_no_lock(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path;"
        "from storage.layout import DataDirectory;"
        "DataDirectory.open(Path(sys.argv[1])); os.kill(os.getpid(), signal.SIGKILL)"
    )
    root = Path(__file__).parents[3]
    dead = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=root, check=False)
    assert dead.returncode == -9
    DataDirectory.open(tmp_path).close()


def test_without_make_it_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(Determinate, match="is not a directory"):
        DataDirectory.open(tmp_path / "missing", make=False)
    assert not (tmp_path / "missing").exists()


def test_a_file_is_no_data_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Determinate):
        DataDirectory.open(tmp_path / "file")
    with pytest.raises(Determinate, match="cannot make directory"):
        DataDirectory.open(tmp_path / "file" / "data")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_directory_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o000)
    with pytest.raises(Determinate, match="cannot be read and written"):
        DataDirectory.open(tmp_path / "data")
