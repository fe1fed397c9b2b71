"""Functions of regular expressions: `~`, regexp_match(), regexp_replace(), SIMILAR .. (regexp.c).

INVARIANTS
  B1  a search may start anywhere in the text but sees all of it: `^` and lookbehind do not take the
      start of the search for the start of the text.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from compute.reference.functions.regex_match import Matcher, Span, compile_matcher
from compute.reference.functions.text import make_pattern, negate_match
from compute.reference.registry import Function, implements, makes
from sql.emit.patterns import python_regex
from sql.errors import SqlError, not_supported
from sql.regex.like import similar_regex, with_default_escape
from sql.regex.parser import parse_regex
from sql.regex.searched_text import SearchedText
from sql.regex.syntax import Flags, has_back_references, with_option_letters
from sql.types.array_text import format_array
from sql.types.limits import check_text_length, join_within_limit
from sql.types.sql_type import Value

if TYPE_CHECKING:
    import regex as backtracking

_CACHED_MAX: Final = 1024

SECONDS_MAX: Final = 1.0
"""For a search with back-references, which may try very many ways. More: longer stalls."""

Match = list[Span | None]


def parse_flags(letters: str) -> tuple[Flags, bool]:
    """Parse the flags of a call; and whether `g` is among them."""
    flags = Flags()
    for letter in letters:
        if letter != "g":
            found = with_option_letters(flags, letter, embedded=False)
            if found is None:
                raise SqlError("22023", f'invalid regular expression option: "{letter}"')
            flags = found
    return flags, "g" in letters


def find_matches(
    text: str, regex: Matcher, start: int = 0, *, every: bool = True
) -> Iterator[Match]:
    """The matches from a position on, from left to right, without overlaps (B1)."""
    return regex.matches(SearchedText(text), start, every=every)


def _matcher(pattern: str, flags: Flags) -> Matcher:
    return compile_matcher(parse_regex(pattern, flags))


# --- does it match -----------------------------------------------------------------------------


@lru_cache(maxsize=_CACHED_MAX)
def _searcher(pattern: str, flags: Flags) -> "Matcher | backtracking.Pattern[str]":
    regex = parse_regex(pattern, flags)
    if not has_back_references(regex.node):
        return Matcher(regex)
    if flags.ascii_letters:
        raise not_supported("a regular expression with back-references over names beyond ASCII")
    translated = python_regex(regex)
    if translated is None:
        raise not_supported("this regular expression")
    import regex as backtracking

    return backtracking.compile(translated)


def _occurs(text: str, pattern: str, flags: Flags) -> bool:
    found = _searcher(pattern, flags)
    if isinstance(found, Matcher):
        return found.occurs(SearchedText(text, ascii_letters=flags.ascii_letters))
    try:
        return found.search(text, concurrent=True, timeout=SECONDS_MAX) is not None
    except TimeoutError:
        raise SqlError("54000", "regular expression with back-references is too complex") from None


def regex_operator(*, ignore_case: bool) -> Function:
    """The operators `~` and `~*`."""
    flags = Flags(ignore_case=ignore_case)
    return lambda text, pattern: _occurs(text, pattern, flags)


def _name_operator(*, ignore_case: bool) -> Function:
    """The same for names, whose collation is "C"."""
    flags = Flags(ignore_case=ignore_case, ascii_letters=True)
    plain = regex_operator(ignore_case=ignore_case)

    def matches(text: str, pattern: str) -> Value:
        if text.isascii() and pattern.isascii():
            return plain(text, pattern)
        return _occurs(text, pattern, flags)

    return matches


@implements("regexp_like(text,text)", "regexp_like(text,text,text)")
def regexp_like(text: str, pattern: str, letters: str = "") -> bool:
    """The operator `~` with flags."""
    return _occurs(text, pattern, _without_global(letters, "regexp_like()"))


def _without_global(letters: str, name: str) -> Flags:
    flags, every = parse_flags(letters)
    if every:
        raise SqlError("22023", f'{name} does not support the "global" option')
    return flags


# --- where, how often, what ----------------------------------------------------------------------


def _at_least(least: int, name: str, value: int) -> int:
    if value < least:
        raise SqlError("22023", f'invalid value for parameter "{name}": {value}')
    return value


@implements(
    "regexp_count(text,text)", "regexp_count(text,text,int4)", "regexp_count(text,text,int4,text)"
)
def regexp_count(text: str, pattern: str, start: int = 1, letters: str = "") -> int:
    """The number of matches."""
    first = _at_least(1, "start", start) - 1
    flags = _without_global(letters, "regexp_count()")
    return sum(1 for _ in find_matches(text, _matcher(pattern, flags), first))


@implements(
    "regexp_instr(text,text)",
    "regexp_instr(text,text,int4)",
    "regexp_instr(text,text,int4,int4)",
    "regexp_instr(text,text,int4,int4,int4)",
    "regexp_instr(text,text,int4,int4,int4,text)",
    "regexp_instr(text,text,int4,int4,int4,text,int4)",
)
def regexp_instr(
    text: str,
    pattern: str,
    start: int = 1,
    nth: int = 1,
    after: int = 0,
    letters: str = "",
    group: int = 0,
) -> int:
    """Where the n-th match, or a group of it, begins or ends; 0 if there is none."""
    first = _at_least(1, "start", start) - 1
    _at_least(1, "n", nth)
    if after not in (0, 1):
        raise SqlError("22023", f'invalid value for parameter "endoption": {after}')
    _at_least(0, "subexpr", group)
    flags = _without_global(letters, "regexp_instr()")
    span = _nth_span(text, _matcher(pattern, flags), first, nth, group)
    return 0 if span is None else span[after] + 1


def _nth_span(text: str, regex: Matcher, first: int, nth: int, group: int) -> Span | None:
    """Without groups the match itself is the first one, as setup_regexp_matches() has it."""
    if not regex.groups and group == 1:
        group = 0
    if group > regex.groups:
        return None
    for index, match in enumerate(find_matches(text, regex, first), 1):
        if index == nth:
            return match[group]
    return None


@implements(
    "regexp_substr(text,text)",
    "regexp_substr(text,text,int4)",
    "regexp_substr(text,text,int4,int4)",
    "regexp_substr(text,text,int4,int4,text)",
    "regexp_substr(text,text,int4,int4,text,int4)",
)
def regexp_substr(
    text: str, pattern: str, start: int = 1, nth: int = 1, letters: str = "", group: int = 0
) -> str | None:
    """The n-th match, or a group of it."""
    first = _at_least(1, "start", start) - 1
    _at_least(1, "n", nth)
    _at_least(0, "subexpr", group)
    flags = _without_global(letters, "regexp_substr()")
    span = _nth_span(text, _matcher(pattern, flags), first, nth, group)
    return None if span is None else text[span[0] : span[1]]


@implements("regexp_match(text,text)", "regexp_match(text,text,text)")
def regexp_match(text: str, pattern: str, letters: str = "") -> tuple[str | None, ...] | None:
    """The groups of the first match, or the match itself if there are none."""
    regex = _matcher(pattern, _without_global(letters, "regexp_match()"))
    match = next(find_matches(text, regex, every=False), None)
    if match is None:
        return None
    spans = match[1:] or match
    return tuple([None if span is None else text[span[0] : span[1]] for span in spans])


@implements("meridian_regexp_matches(text,text)", "meridian_regexp_matches(text,text,text)")
def regexp_matches(text: str, pattern: str, letters: str = "") -> tuple[str, ...]:
    """The groups of the first match, or with `g` of each, as texts of arrays."""
    flags, every = parse_flags(letters)
    return tuple(
        format_array(
            tuple(
                [None if span is None else text[span[0] : span[1]] for span in match[1:] or match]
            ),
            str,
        )
        for match in find_matches(text, _matcher(pattern, flags), every=every)
    )


@implements("regexp_split_to_array(text,text)", "regexp_split_to_array(text,text,text)")
def regexp_split(text: str, pattern: str, letters: str = "") -> tuple[str, ...]:
    """The texts between the matches; empty matches count only inside of the text."""
    regex = _matcher(pattern, _without_global(letters, "regexp_split_to_array()"))
    parts: list[str] = []
    done = before = 0
    for match in find_matches(text, regex):
        span = match[0]
        assert span is not None, "the whole is always matched"
        start, end = span
        if start < len(text) and end > before:
            parts.append(text[done:start])
            done = end
        before = end
    return (*parts, text[done:])


@implements("substring(text,text)")
def substring(text: str, pattern: str) -> str | None:
    """`substring(text from pattern)`: the first group if there is one, else the match."""
    regex = _matcher(pattern, Flags())
    span = _nth_span(text, regex, 0, 1, min(regex.groups, 1))
    return None if span is None else text[span[0] : span[1]]


# --- replacing -----------------------------------------------------------------------------------


@implements("regexp_replace(text,text,text)", "regexp_replace(text,text,text,text)")
def regexp_replace(text: str, pattern: str, replacement: str, letters: str = "") -> str:
    """The first match, or with `g` every match, replaced."""
    if letters[:1] in frozenset("0123456789"):
        hint = (
            "If you meant to use regexp_replace() with a start parameter, cast the fourth argument"
            " to integer explicitly."
        )
        message = f'invalid regular expression option: "{letters[0]}"'
        raise SqlError("22023", message, hint=hint)
    flags, every = parse_flags(letters)
    return _replaced(text, _matcher(pattern, flags), replacement, 0, 0 if every else 1)


@implements(
    "regexp_replace(text,text,text,int4,int4)", "regexp_replace(text,text,text,int4,int4,text)"
)
def regexp_replace_from(
    text: str,
    pattern: str,
    replacement: str,
    start: int,
    nth: int | None = None,
    letters: str = "",
) -> str:
    """The n-th match from a position on, replaced; with n = 0 all of them."""
    first = _at_least(1, "start", start) - 1
    if nth is not None:
        _at_least(0, "n", nth)
    flags, every = parse_flags(letters)
    wanted = nth if nth is not None else 0 if every else 1
    return _replaced(text, _matcher(pattern, flags), replacement, first, wanted)


@implements("regexp_replace(text,text,text,int4)")
def regexp_replace_first(text: str, pattern: str, replacement: str, start: int) -> str:
    """The first match from a position on, replaced."""
    return regexp_replace_from(text, pattern, replacement, start)


def _replaced(text: str, regex: Matcher, replacement: str, start: int, nth: int) -> str:
    pieces, done, length = _pieces(replacement), 0, 0
    out: list[str] = []
    for index, match in enumerate(find_matches(text, regex, start, every=nth != 1), 1):
        if nth and index != nth:
            continue
        whole = match[0]
        assert whole is not None, "the whole is always matched"
        out.append(text[done : whole[0]])
        for piece in pieces:
            if isinstance(piece, str):
                out.append(piece)
            elif piece < len(match) and (span := match[piece]) is not None:
                out.append(text[span[0] : span[1]])
        done = whole[1]
        if nth:
            break
        length += len(replacement)
        check_text_length(length)
    return join_within_limit([*out, text[done:]])


@lru_cache(maxsize=_CACHED_MAX)
def _pieces(replacement: str) -> tuple[str | int, ...]:
    r"""Texts and numbers of groups: `\1` .. `\9`, `\&` for all, `\\` for a backslash."""
    pieces: list[str | int] = []
    plain: list[str] = []
    at = 0
    while at < len(replacement):
        character, following = replacement[at], replacement[at + 1 : at + 2]
        at += 1
        if character == "\\" and following in frozenset("123456789&\\"):
            at += 1
            if following == "\\":
                plain.append(following)
                continue
            pieces += ["".join(plain), int(following.replace("&", "0"))]
            plain.clear()
        else:
            plain.append(character)
    return (*pieces, "".join(plain))


@implements("similar_escape(text,text)")
def similar_escape(pattern: str | None, escape: str | None) -> str | None:
    """Without an escape the default one."""
    if pattern is None:
        return None
    return similar_regex(pattern, "\\" if escape is None else escape)


implements("like_escape(text,text)")(with_default_escape)
implements("similar_to_escape(text)", "similar_to_escape(text,text)")(similar_regex)
implements("substring(text,text,text)")(lambda x, p, e: substring(x, similar_regex(p, e)))


for _operator, _ignore_case in (("~", False), ("~*", True)):
    _search, _of_names = (
        make(ignore_case=_ignore_case) for make in (regex_operator, _name_operator)
    )
    makes(f"text {_operator} text", f"bpchar {_operator} text")(make_pattern(_search))
    makes(f"text !{_operator} text", f"bpchar !{_operator} text")(
        make_pattern(negate_match(_search))
    )
    implements(f"name {_operator} text")(_of_names)
    implements(f"name !{_operator} text")(negate_match(_of_names))
