"""Read the settings of PostgreSQL 18 (sql/data/settings.txt): type, unit, bounds, who may set them.

    name <tab> shown <tab> unit ..    a setting, fields as `RecordedSetting` has them; `-` is none

INVARIANTS
  P1  the list is a real server's, written by `tests/unit/sql/postgresql_settings.py`. What Meridian
      shows or refuses otherwise stands in `coordinator/variables/table.py`, never in the file.

Not here: the checks, and the meaning of a setting (`coordinator/variables/`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_FILE: Final = Path(__file__).parents[1] / "data" / "settings.txt"
_NONE: Final = "-"


@dataclass(frozen=True, slots=True)
class RecordedSetting:
    """One row of pg_settings. `shown`: what SHOW answers. `aliases`: values that are taken for
    another one. `superuser_only`: only superusers may look at it. `boot`: the value that the server
    is built with.
    """

    name: str
    shown: str
    unit: str
    context: str
    vartype: str
    least: str | None
    greatest: str | None
    choices: tuple[str, ...]
    superuser_only: bool
    aliases: Mapping[str, str]
    boot: str | None
    category: str
    description: str
    more: str | None


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A row of pg_settings; numbers without their units."""

    setting: RecordedSetting
    value: str
    source: str
    reset: str | None


class SessionSettings(Mapping[str, str]):
    """The settings of a session by lower-case name, as SHOW prints them."""

    def rows(self) -> Iterator[SettingRow]:
        """The rows of pg_settings."""
        return iter(())


class NoSettings(SessionSettings):
    """Where there is no session."""

    def __getitem__(self, name: str) -> str:
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def read_recorded_settings() -> tuple[RecordedSetting, ...]:
    """All settings, by name (P1)."""
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    return tuple(_setting(line) for line in lines if not line.startswith("# "))


def _setting(line: str) -> RecordedSetting:
    fields = [None if field == _NONE else field for field in line.split("\t")]
    name, shown, unit, context, vartype, least, greatest, choices, flags, aliases, *texts = fields
    boot, category, description, more = texts
    pairs = (pair.partition("=") for pair in (aliases or "").split(",") if pair)
    return RecordedSetting(
        name or "",
        shown or "",
        unit or "",
        context or "",
        vartype or "",
        least,
        greatest,
        () if choices is None else tuple(choices.split(",")),
        flags == "superuser",
        {word: value for word, _, value in pairs},
        boot,
        category or "",
        description or "",
        more,
    )
