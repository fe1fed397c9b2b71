"""Lines of pg_hba.conf and pg_ident.conf: fields of tokens, with what they include.

    file ─▶ logical lines (a backslash at the end goes on) ─▶ fields ─▶ tokens, divided by commas
              include, include_if_exists, include_dir: the lines of other files in their place
              @file in a field: the tokens of another file in its place

INVARIANTS
  N1  tokens, quotes, continuations and line numbers are those of PostgreSQL's hba.c.
  N2  what is wrong with a line is an `error` of that line; only a first file that cannot be read
      raises.
  N3  files include each other ten deep at most.

A token is `is_quoted` if a quote stands before its first character: it is a plain name then, unless
it begins with a slash. Not here: what tokens mean (`hba_tokens.py`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from os.path import dirname, join, normpath
from pathlib import Path
from typing import Final, TypeAlias

from coordinator.authentication.hba_tokens import HbaToken

_Fields: TypeAlias = tuple[tuple[HbaToken, ...], ...]

_BLANKS: Final = " \t\r"
_DEPTH_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class FileLine:
    """A logical line. `number`: of its first line in the file; `text`: all of it."""

    file: str
    number: int
    text: str
    fields: _Fields
    error: str | None = None


@dataclass(frozen=True, slots=True)
class LineProblem:
    """Why a line is no rule."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        """As a line of the log."""
        return f'{self.reason} (line {self.line} of configuration file "{self.file}")'


class FileBroken(Exception):
    """A file gives no rules (D2). `problems`: of its lines; `args[0]` says all of them."""

    def __init__(self, summary: str, problems: tuple[LineProblem, ...] = ()) -> None:
        super().__init__("\n".join([summary, *map(str, problems)]))
        self.problems = problems


def read_file_lines(path: Path) -> tuple[FileLine, ...]:
    """All lines of a file that are not empty. Raises FileBroken if it cannot be read (N2)."""
    reader = _Reader()
    try:
        reader.read(str(path.absolute()), depth=0)
    except _Unreadable as error:
        raise FileBroken(str(error)) from error
    return tuple(reader.lines)


def split_file_lines(text: str, name: str) -> tuple[FileLine, ...]:
    """The lines of a text that is in no file; files that it includes are looked for from the
    working directory.
    """
    reader = _Reader()
    reader.split(text, name, depth=0)
    return tuple(reader.lines)


class _Unreadable(Exception):
    """A file or folder cannot be read, or a line in it."""


class _Reader:
    """Collects the lines of a file and of those that it includes."""

    def __init__(self) -> None:
        self.lines: list[FileLine] = []

    def read(self, name: str, *, depth: int, is_optional: bool = False) -> None:
        """Add the lines of a file, which must be there unless it `is_optional`."""
        if depth > _DEPTH_MAX:
            raise _Unreadable(f'could not open file "{name}": maximum nesting depth exceeded')
        try:
            content = Path(name).read_bytes()
        except OSError as error:
            if is_optional and isinstance(error, FileNotFoundError):
                return
            raise _Unreadable(f'could not open file "{name}": {error.strerror}') from error
        # What is not UTF-8 becomes the error of its line.
        self.split(content.decode("utf-8", "surrogateescape"), name, depth=depth)

    def split(self, text: str, name: str, *, depth: int) -> None:
        """Add the lines of a text."""
        for number, line in _logical_lines(text):
            fields: _Fields = ()
            error = None
            try:
                _check_encoding(line)
                fields = _split_fields(line, name, depth=depth)
                if len(fields) == 2 and self._include(fields, name, depth=depth + 1):
                    continue
            except _Unreadable as unreadable:
                error = str(unreadable)
            if fields or error is not None:
                shown = line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
                self.lines.append(FileLine(name, number, shown, fields, error))

    def _include(self, fields: _Fields, name: str, *, depth: int) -> bool:
        """Whether the line includes others, which are added then."""
        directive, place = fields[0][0].text, fields[1][0].text
        match directive:
            case "include":
                self.read(_beside(name, place), depth=depth)
            case "include_if_exists":
                self.read(_beside(name, place), depth=depth, is_optional=True)
            case "include_dir":
                self._read_all(_files_in(name, place), depth=depth)
            case _:
                return False
        return True

    def _read_all(self, names: list[str], *, depth: int) -> None:
        errors: list[str] = []
        for name in names:
            try:
                self.read(name, depth=depth)
            except _Unreadable as error:
                errors.append(str(error))
        if errors:
            raise _Unreadable("\n".join(errors))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; one that ends with a backslash goes on in the next."""
    number, line, continued_at = 1, "", 0
    for count, physical in enumerate(text.split("\n"), start=1):
        line = (line + physical).rstrip("\r\n")
        # The backslash must be behind the last continuation: two lines of one each are two.
        if len(line) > continued_at and line.endswith("\\"):
            line = line[:-1]
            continued_at = len(line)
            continue
        yield number, line
        number, line, continued_at = count + 1, "", 0
    if line:
        yield number, line


def _check_encoding(line: str) -> None:
    wrong = next((c for c in line if c == "\0" or "\udc80" <= c <= "\udcff"), None)
    if wrong is not None:
        code = wrong.encode("utf-8", "surrogateescape")[0]
        raise _Unreadable(f'invalid byte sequence for encoding "UTF8": 0x{code:02x}')


def _split_fields(line: str, name: str, *, depth: int) -> _Fields:
    """The fields of a line; one that only names files without tokens is none."""
    fields: list[tuple[HbaToken, ...]] = []
    at = 0
    while at < len(line):
        tokens: list[HbaToken] = []
        goes_on = True
        while goes_on:
            token, at, goes_on = _next_token(line, at)
            if token is None:
                break
            if not token.is_quoted and len(token.text) > 1 and token.text[0] == "@":
                tokens += _file_tokens(_beside(name, token.text[1:]), depth=depth + 1)
            else:
                tokens.append(token)
        if tokens:
            fields.append(tuple(tokens))
    return tuple(fields)


def _next_token(line: str, at: int) -> tuple[HbaToken | None, int, bool]:
    """The next token, None at the end; where it ends; whether a comma ends it."""
    while at < len(line) and line[at] in _BLANKS + ",":
        at += 1
    text = ""
    in_quotes = was_quote = has_quotes = is_quoted = False
    while at < len(line) and (in_quotes or line[at] not in _BLANKS):
        character = line[at]
        if character == "#" and not in_quotes:
            at = len(line)
            break
        if character == "," and not in_quotes:
            break
        if character != '"' or was_quote:
            text += character
        was_quote = in_quotes and character == '"' and not was_quote
        if character == '"':
            in_quotes = not in_quotes
            has_quotes = True
            is_quoted = is_quoted or not text
        at += 1
    token = HbaToken(text, is_quoted) if text or has_quotes else None
    return token, at, at < len(line) and line[at] == ","


def _file_tokens(name: str, *, depth: int) -> list[HbaToken]:
    """All tokens of the file that a field names."""
    reader = _Reader()
    reader.read(name, depth=depth)
    for line in reader.lines:
        if line.error is not None:
            raise _Unreadable(line.error)
    return [token for line in reader.lines for tokens in line.fields for token in tokens]


def _beside(name: str, place: str) -> str:
    """The path of a file or folder that the file `name` speaks of."""
    return place if place.startswith("/") else normpath(join(dirname(name), place))


def _files_in(name: str, place: str) -> list[str]:
    """The files *.conf in a folder that the file `name` includes, by name."""
    if not place.strip(" \t\r\n"):
        raise _Unreadable("empty configuration directory name")
    folder = _beside(name, place)
    try:
        entries = list(Path(folder).iterdir())
    except OSError as error:
        raise _Unreadable(f'could not open directory "{folder}"') from error
    return sorted(
        str(entry)
        for entry in entries
        if entry.name.endswith(".conf") and not entry.name.startswith(".") and not entry.is_dir()
    )
