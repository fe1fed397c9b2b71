"""Runs the programs of this suite, one after the other, in Pythons of their own."""

import subprocess
import sys
from pathlib import Path

PROGRAMS = ("pgbench_cases.py", "fdw_cases.py", "dblink_cases.py")

if __name__ == "__main__":
    for program in PROGRAMS:
        subprocess.run([sys.executable, str(Path(__file__).parent / program)], check=False)
