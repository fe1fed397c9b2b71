"""The record of one suite: a family of clients, and the commands that make it and run it.

    SUITE = Suite(
        name="node",
        needs=("node", "npm"),
        set_up=[["npm", "ci", "--prefix", "{cache}"]],
        run=["node", "main.mjs"],
    )

INVARIANTS
  U1  commands run in the suite's folder; relative paths are relative to it.
  U2  `{cache}` in a command is the suite's folder below `.cache/clients`, `{python}` is the Python
      that runs the runner; downloads and builds go to the former only.
"""

import importlib
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[3]
SUITES = Path(__file__).parent
SECONDS_MAX = 1800
"""Against a program that hangs; programs limit their cases themselves."""


@dataclass(frozen=True, slots=True)
class Suite:
    """One family of clients."""

    name: str
    """The name of its folder."""
    run: Sequence[str]
    """Prints the outcomes; the server is in its environment (`PGHOST`, ..)."""
    needs: Sequence[str] = ()
    """Programs that the machine must have; without one the suite is not run (Q3)."""
    set_up: Sequence[Sequence[str]] = ()
    """Downloads and builds; done again when a file of the folder has changed."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of all its commands, on top of the environment of the runner."""
    seconds_max: int = SECONDS_MAX

    @property
    def folder(self) -> Path:
        """Where its sources are, and where its commands run (U1)."""
        return SUITES / self.name

    @property
    def cache(self) -> Path:
        """Where its downloads and builds are (U2)."""
        return ROOT / ".cache" / "clients" / self.name

    def filled(self, command: Sequence[str]) -> list[str]:
        """A command with the places put in (U2)."""
        places = (("{cache}", str(self.cache)), ("{python}", sys.executable))
        found = list(command)
        for sign, place in places:
            found = [word.replace(sign, place) for word in found]
        return found

    def lacks(self) -> list[str]:
        """The programs that this machine does not have."""
        return [program for program in self.needs if shutil.which(program) is None]


def all_suites() -> dict[str, Suite]:
    """By name, in the order of names."""
    found: dict[str, Suite] = {}
    for path in sorted(SUITES.glob("*/suite.py")):
        name = path.parent.name
        suite = importlib.import_module(f"{__package__}.{name}.suite").SUITE
        assert isinstance(suite, Suite), f"{name}: SUITE is not a Suite"
        assert suite.name == name, f"{name}: the suite has the name of its folder"
        found[name] = suite
    return found
