r"""pg_ident.conf: which system users may connect as which roles.

    map  system user or /regex  role, all, +group, /regex or a name with \1

INVARIANTS
  D2 of the package: a file with a broken line gives no map.
  I1  without a map the two names must be the same.
  I2  what \1 becomes is a name, whatever it looks like: no keyword, no group, no pattern.
  I3  a pattern without the group that \1 asks for ends the search, and nobody is let in.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from coordinator.authentication.hba_file import (
    FileBroken,
    FileLine,
    LineProblem,
    read_file_lines,
    split_file_lines,
)
from coordinator.authentication.hba_tokens import HbaToken, InvalidToken, IsMember

_GROUP: Final = "\\1"


@dataclass(frozen=True, slots=True)
class IdentMapping:
    """One line."""

    map_name: str
    system_user: HbaToken
    role: HbaToken


@dataclass(frozen=True, slots=True)
class IdentEntry:
    """A line with the mapping that it is, or the reason why it is none."""

    line: FileLine
    mapping: IdentMapping | None
    error: str | None


@dataclass(frozen=True, slots=True)
class IdentFile:
    """All lines of a file and those that it includes."""

    name: str
    entries: tuple[IdentEntry, ...]

    def mappings(self) -> "IdentMap":
        """The map. Raises FileBroken, with all problems, if a line is no mapping."""
        problems = tuple(
            LineProblem(entry.line.file, entry.line.number, entry.error)
            for entry in self.entries
            if entry.error is not None
        )
        if problems:
            raise FileBroken(f'configuration file "{self.name}" contains errors', problems)
        return IdentMap(tuple(entry.mapping for entry in self.entries if entry.mapping is not None))


@dataclass(frozen=True, slots=True)
class IdentMap:
    """All mappings, in order."""

    mappings: tuple[IdentMapping, ...] = ()

    def allows(
        self, map_name: str | None, *, system_user: str, role: str, is_member: IsMember
    ) -> bool:
        """Whether a system user may connect as a role, by the map that the rule names (I1)."""
        if not map_name:
            return system_user == role
        for mapping in self.mappings:
            if mapping.map_name == map_name:
                found = _decides(mapping, system_user, role, is_member)
                if found is not None:
                    return found
        return False


def identity_mismatch(map_name: str | None, *, system_user: str, role: str) -> str:
    """What the log says when `allows` does not; the client hears less."""
    if not map_name:
        names = f"provided user name ({role}) and authenticated user name ({system_user})"
        return f"{names} do not match"
    return f'no match in usermap "{map_name}" for user "{role}" authenticated as "{system_user}"'


def _decides(
    mapping: IdentMapping, system_user: str, role: str, is_member: IsMember
) -> bool | None:
    """True: may connect; False: must not, whatever comes (I3); None: the next mapping decides."""
    wanted = mapping.role
    if mapping.system_user.has_pattern:
        is_found, group = mapping.system_user.first_group(system_user)
        if not is_found:
            return None
        if _GROUP in wanted.text and not wanted.is_group and not wanted.has_pattern:
            if group is None:
                return False
            wanted = HbaToken(wanted.text.replace(_GROUP, group, 1), is_quoted=True)  # I2
    elif mapping.system_user.text != system_user:
        return None
    return wanted.matches_role(role, is_member) or None


def read_ident_file(path: Path) -> IdentFile:
    """The lines of a file. Raises FileBroken if it cannot be read."""
    return _parsed(str(path.absolute()), read_file_lines(path))


def parse_mappings(text: str, name: str) -> IdentFile:
    """The lines of a text that is in no file."""
    return _parsed(name, split_file_lines(text, name))


def _parsed(name: str, lines: tuple[FileLine, ...]) -> IdentFile:
    return IdentFile(name, tuple(map(_entry, lines)))


def _entry(line: FileLine) -> IdentEntry:
    if line.error is not None:
        return IdentEntry(line, None, line.error)
    for place in range(3):
        if place == len(line.fields):
            return IdentEntry(line, None, "missing entry at end of line")
        if len(line.fields[place]) > 1:
            return IdentEntry(line, None, "multiple values in ident field")
    name, system_user, role = (tokens[0] for tokens in line.fields[:3])
    try:
        mapping = IdentMapping(name.text, system_user.compiled(), role.compiled())
    except InvalidToken as error:
        return IdentEntry(line, None, str(error))
    return IdentEntry(line, mapping, None)
