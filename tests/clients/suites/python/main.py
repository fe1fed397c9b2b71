"""Run every client of the family, each in a process of its own: `python main.py CACHE [CLIENT ..]`.

A file of `clients/` is one client. It runs in the environment `main`, unless `ENVIRONMENTS` names
another one. Each prints its outcomes; this program passes them on.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ENVIRONMENTS = {"dbt_cases": "dbt", "sqlmesh_cases": "sqlmesh"}


def main(cache: Path, names: list[str]) -> None:
    """Run the named clients, or all."""
    for path in sorted((HERE / "clients").glob("*_cases.py")):
        if names and path.stem.removesuffix("_cases") not in names:
            continue
        python = cache / ENVIRONMENTS.get(path.stem, "main") / "bin" / "python"
        done = subprocess.run(
            [python, path, "--cache", cache], stdin=subprocess.DEVNULL, check=False
        )
        if done.returncode != 0:
            print(f"{path.stem} ended with {done.returncode}", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
