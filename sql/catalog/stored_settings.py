"""Settings that sessions of a role or a database start with: ALTER ROLE and DATABASE .. SET.

INVARIANTS
  T1  a text is `name=value`, the name as its setting is spelled; a scope has each name once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True, order=True)
class SettingScope:
    """For whom: oids of a database and a role, 0 for all of them."""

    database: int
    role: int


StoredSettings: TypeAlias = Mapping[SettingScope, tuple[str, ...]]
"""The texts of each scope that has some (T1)."""

_SOURCES: Final = ("global", "database", "user", "database user")


def settings_by_source(
    stored: StoredSettings, database: int, role: int
) -> Sequence[tuple[str, Mapping[str, str]]]:
    """What a session starts with, by source as pg_settings calls it; the later ones win."""
    if not stored:
        return ()
    scopes = (
        SettingScope(0, 0),
        SettingScope(database, 0),
        SettingScope(0, role),
        SettingScope(database, role),
    )
    return [
        (source, {name: value for name, _, value in map(_split, stored.get(scope, ()))})
        for source, scope in zip(_SOURCES, scopes, strict=True)
    ]


def with_setting(texts: Sequence[str], name: str, value: str | None) -> tuple[str, ...]:
    """The texts with this value of a setting, or without it (GUCArrayAdd, GUCArrayDelete)."""
    made = [] if value is None else [f"{name}={value}"]
    for place, text in enumerate(texts):
        if _split(text)[0].lower() == name.lower():
            return (*texts[:place], *made, *texts[place + 1 :])
    return (*texts, *made)


def _split(text: str) -> tuple[str, str, str]:
    return text.partition("=")
