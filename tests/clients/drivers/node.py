"""node-postgres, run by Node.js as a process of its own.

    npm ─▶ .cache/node/node_modules/pg ◀─ node ─ a program of a test

Node.js is not a part of the project: where there is none, the tests that need it are skipped.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Final

VERSION: Final = "8.16.3"
CACHE: Final = Path(__file__).parents[3] / ".cache" / "node"
DOWNLOAD_S: Final = 120
PROGRAM_S: Final = 60


def fetch_driver() -> Path | None:
    """The folder that has the driver, from the cache or by npm; None if it cannot be had."""
    package = CACHE / "node_modules" / "pg" / "package.json"
    npm = shutil.which("npm")
    if npm is not None and not package.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--prefix", str(CACHE), "--no-save", "--ignore-scripts"]
        command += ["--no-audit", "--no-fund", f"pg@{VERSION}"]
        subprocess.run(command, capture_output=True, timeout=DOWNLOAD_S, check=False)
    return CACHE if package.exists() else None


def run_program(folder: Path, program: str, *arguments: str) -> str:
    """What a program writes; fails as it does."""
    node = shutil.which("node")
    assert node is not None, "asked for where there is a driver only"
    done = subprocess.run(
        [node, "-e", program, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PROGRAM_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
