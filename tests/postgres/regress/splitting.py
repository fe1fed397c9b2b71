"""A .sql file of PostgreSQL's regression tests, as the statements that psql would send.

INVARIANTS
  P1  a statement ends at a semicolon outside of quotes, comments, parentheses and BEGIN ATOMIC.
  P2  what needs psql is no statement of ours: its commands, and statements that end in one
      (\\gset) or use one of its variables. They are there with a reason, and are not played.

Variables stand for files or for whole statements; only `COPY t FROM :'filename'` is kept, with the
file that was \\set last. Of \\if .. \\else the second half is played: the first one says why to
quit.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
      (?P<comment>--[^\n]*)
    | (?P<block>/\*)
    | (?P<escape>\b[eE]'(?:[^'\\]|\\.|'')*')
    | (?P<quoted>'(?:[^']|'')*')
    | (?P<name>"(?:[^"]|"")*")
    | (?P<dollar>(?<![\w$])\$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?\$(?P=tag)\$)
    | (?P<variable>(?<![:\w]):(?:'\w+'|"\w+"|[A-Za-z_]\w*))
    | (?P<cast>::)
    | (?P<more>\\;)
    | (?P<command>\\[^\n]*)
    | (?P<word>[A-Za-z_]\w*)
    | (?P<sign>[();])
    """,
    re.VERBOSE | re.DOTALL,
)
_FILE = re.compile(r"\\set filename :abs_srcdir '([^']*)'")
_COPY_FILE = re.compile(r"\s*copy\s[^;]*\sfrom\s+$", re.IGNORECASE)
_COPY_STDIN = re.compile(r"\s*copy\b[^;]*\bfrom\s+stdin\b", re.IGNORECASE)
_ROUTINE = re.compile(r"\s*create\s+(or\s+replace\s+)?(function|procedure)\b", re.IGNORECASE)
_SENDING = re.compile(r"\\(g|gx)\s*(\([^)]*\)\s*)?$")
_NOT_SENDING = re.compile(r"\\(gset|gdesc|gexec|crosstabview|watch|bind\w*|parse|g|gx)\b")


@dataclass(frozen=True, slots=True)
class Statement:
    """What is sent as one simple Query, and the number of its line."""

    text: str
    line: int
    lines: str | None = None
    """What follows a COPY FROM STDIN."""
    file: str | None = None
    """What a COPY FROM reads, below the directory of the tests."""
    skipped: str = ""
    """Why it cannot be played (P2); empty: it can."""


def split(text: str) -> Iterator[Statement]:
    """The statements of a file, in order."""
    return _Splitter(text).statements()


class _Splitter:
    """The place in the text, and what is known of the statement that begins there."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._known: set[str] = set()
        self._file = ""
        self._forget(0)

    def _forget(self, start: int) -> None:
        """A statement begins."""
        self._start = start
        self._parts: list[str] = []
        self._depth = 0
        self._blocks = 0
        self._skipped = ""
        self._from: str | None = None

    def statements(self) -> Iterator[Statement]:
        """All of them (P1)."""
        while (match := _TOKEN.search(self._text, self._at)) is not None:
            self._parts.append(self._text[self._at : match.start()])
            self._at = match.end()
            if self._take(match):
                yield from self._finished()
        self._parts.append(self._text[self._at :])
        yield from self._finished()

    def _take(self, match: re.Match[str]) -> bool:
        """Take a token in; whether it ends the statement."""
        token = match[0]
        match match.lastgroup:
            case "comment":
                return False
            case "block":
                self._at = _end_of_block(self._text, match.start())
                return False
            case "command":
                return self._command(token)
            case "more":
                token = ";"
            case "variable":
                self._variable(token)
            case "word":
                self._word(token.lower())
            case "sign":
                self._depth = max(0, self._depth + {"(": 1, ")": -1, ";": 0}[token])
                if token == ";" and not self._depth and not self._blocks:
                    return True
            case _:
                pass
        self._parts.append(token)
        return False

    def _word(self, word: str) -> None:
        """Count the blocks of a routine's body, as psql does."""
        if word in ("begin", "case", "end") and _ROUTINE.match("".join(self._parts)):
            if word == "end":
                self._blocks = max(0, self._blocks - 1)
            elif word == "begin" or self._blocks:
                self._blocks += 1

    def _variable(self, token: str) -> None:
        quoted = token[1] in "'\""
        if token == ":'filename'" and _COPY_FILE.match("".join(self._parts)):
            self._from = self._file
        elif quoted or token[1:] in self._known:
            self._skipped = "a variable of psql"

    def _command(self, token: str) -> bool:
        """A command of psql; whether it ends the statement."""
        if token.startswith("\\if"):
            self._at = _end_of_if(self._text, self._at)
        if found := _FILE.match(token):
            self._file = found[1].lstrip("/")
        if found := re.match(r"\\(?:set|getenv)\s+(\w+)", token):
            self._known.add(found[1])
        if token.startswith("\\gset"):
            self._known.update(re.findall(r"(?i)\bas\s+\"?(\w+)", "".join(self._parts)))
        if _SENDING.match(token):
            return True
        if found := _NOT_SENDING.match(token):
            self._skipped = found[0]
            return True
        return False

    def _finished(self) -> Iterator[Statement]:
        text = "".join(self._parts)
        body = text.strip()
        first = self._start + (len(text) - len(text.lstrip()))
        if body:
            # Comments are gone from the text, so the line is that of its end less its own lines.
            line = self._text.count("\n", 0, max(first, self._at)) + 1 - body.count("\n")
            lines = self._copied() if _COPY_STDIN.match(body) else None
            yield Statement(body, line, lines, self._from, self._skipped)
        self._forget(self._at)

    def _copied(self) -> str:
        """The lines behind a COPY FROM STDIN; the place moves behind them."""
        start = self._text.find("\n", self._at) + 1
        end = re.compile(r"^\\\.$", re.MULTILINE).search(self._text, start)
        if not start or end is None:
            return ""
        self._at = end.end()
        return self._text[start : end.start()]


def _end_of_block(text: str, start: int) -> int:
    """Behind a comment, which may hold others."""
    depth = 0
    for mark in re.compile(r"/\*|\*/").finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    return len(text)


def _end_of_if(text: str, start: int) -> int:
    r"""Behind the \else or the \endif of an \if, the inner ones passed over."""
    depth = 1
    for mark in re.compile(r"^\s*\\(if|else|endif)\b", re.MULTILINE).finditer(text, start):
        depth += {"if": 1, "endif": -1, "else": 0}[mark[1]]
        if not depth or (depth == 1 and mark[1] == "else"):
            return mark.end()
    return len(text)
