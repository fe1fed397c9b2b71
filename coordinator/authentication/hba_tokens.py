"""Tokens of pg_hba.conf and pg_ident.conf, and the names that they match.

    all, sameuser, ..   keywords, unless quoted        +role   members of a role, unless quoted
    /regex              PostgreSQL's regular expression, quoted or not
    name                that name

Regular expressions know ASCII's classes only, as under the collation "C". One with back-references
is refused: our matcher has none.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from compute.reference.functions.regex_match import Matcher, compile_matcher
from sql.errors import SqlError
from sql.regex.parser import parse_regex
from sql.regex.searched_text import SearchedText
from sql.regex.syntax import Flags

IsMember: TypeAlias = Callable[[str], bool]
"""Whether the user who connects is a member, direct or not, of a role, or is that role. A superuser
is no member of roles that were not granted. False for a role that does not exist.
"""


class InvalidToken(Exception):
    """A token that is no regular expression; `args[0]` is PostgreSQL's reason."""


@dataclass(frozen=True, slots=True)
class HbaToken:
    """A name, a keyword or a pattern. `is_quoted`: a quote stands before its first character."""

    text: str
    is_quoted: bool = False
    _pattern: Matcher | None = field(default=None, repr=False, compare=False)

    def compiled(self) -> "HbaToken":
        """The same token with its regular expression, if it is one. Raises InvalidToken."""
        if not self.text.startswith("/"):
            return self
        text = self.text[1:]
        try:
            pattern = compile_matcher(parse_regex(text, Flags(ascii_letters=True)))
        except SqlError as error:
            reason = error.message.removeprefix("invalid regular expression: ")
            if error.sqlstate == "0A000":
                reason = "back-references are not supported"
            raise InvalidToken(f'invalid regular expression "{text}": {reason}') from error
        return HbaToken(self.text, self.is_quoted, pattern)

    @property
    def is_group(self) -> bool:
        """It stands for the members of a role."""
        return not self.is_quoted and self.text.startswith("+")

    @property
    def has_pattern(self) -> bool:
        """It is a regular expression."""
        return self._pattern is not None

    def is_keyword(self, word: str) -> bool:
        """It is this keyword, and not a name that looks like one."""
        return not self.is_quoted and self.text == word

    def matches_name(self, name: str) -> bool:
        """Whether it is that name, or a pattern that occurs in it."""
        if self._pattern is None:
            return self.text == name
        return self._pattern.occurs(SearchedText(name, ascii_letters=True))

    def matches_role(self, role: str, is_member: IsMember) -> bool:
        """Whether it stands for a role that connects."""
        if self.is_group:
            return is_member(self.text[1:])
        return self.is_keyword("all") or self.matches_name(role)

    def first_group(self, name: str) -> tuple[bool, str | None]:
        """Whether the pattern occurs in a name, and what its first group matched there."""
        assert self._pattern is not None, "only a pattern has groups"
        subject = SearchedText(name, ascii_letters=True)
        starts = self._pattern.starts(subject)
        if not starts:
            return False, None
        spans = self._pattern.match_at(subject, (starts & -starts).bit_length() - 1)
        group = spans[1] if len(spans) > 1 else None
        return True, None if group is None else name[slice(*group)]
