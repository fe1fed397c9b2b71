"""Write regex functions with constant patterns in an engine's own functions, where matches agree.

INVARIANTS
  L1  a pattern that is not `is_unambiguous` (sql/regex/unambiguous.py) is not written here: the
      position of its matches would depend on the engine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sql.emit.patterns import extracting_java, extracting_re2
from sql.emit.state import Scope
from sql.errors import SqlError
from sql.plan.nodes import Call
from sql.regex.backtracking import has_bounded_backtracking
from sql.regex.parser import parse_regex
from sql.regex.syntax import Flags, Regex, with_option_letters
from sql.regex.unambiguous import is_unambiguous, optional_groups

_GROUPS_MAX: Final = 7
_DIGITS: Final = frozenset("123456789")


@dataclass(frozen=True, slots=True)
class RegexEngine:
    """How an engine searches. `translated`: its pattern; the others are SQL of x and bound strings.

    `group`: a reference to a group in a replacement; `escaped`: plain text in one.
    """

    translated: Callable[[Regex], str | None]
    found: str
    extracted: str
    all_replaced: str
    first_replaced: str
    prefixed: bool
    """Whether it tries one way after the other, and replaces all matches or none."""
    group: Callable[[int], str]
    escaped: Callable[[str], str]


SPARK_REGEX: Final = RegexEngine(
    extracting_java,
    "{x} rlike {p}",
    "regexp_extract({x}, {p}, {n})",
    "regexp_replace({x}, {p}, {r})",
    "regexp_replace({x}, {p}, {r})",
    prefixed=True,
    group=lambda number: f"${number}",
    escaped=lambda text: text.replace("\\", "\\\\").replace("$", "\\$"),
)
DUCKDB_REGEX: Final = RegexEngine(
    extracting_re2,
    "regexp_matches({x}, {p})",
    "regexp_extract({x}, {p}, {n})",
    "regexp_replace({x}, {p}, {r}, 'g')",
    "regexp_replace({x}, {p}, {r})",
    prefixed=False,
    group=lambda number: f"\\{number}",
    escaped=lambda text: text.replace("\\", "\\\\"),
)


def native_regex(call: Call, scope: Scope, engine: RegexEngine) -> str | None:
    """The call in the engine's own functions, or None (L1)."""
    known = [scope.statement.known(arg) for arg in call.args[1:]]
    values = [value[0] for value in known if value is not None and isinstance(value[0], str)]
    if len(values) < len(known):
        return None
    x, string = scope.emit(call.args[0]), scope.statement.string
    try:
        if call.function.name == "regexp_replace":
            return _replaced(x, values, string, engine)
        return _extracted(x, call.function.name, values[0], string, engine)
    except SqlError:
        # An error for those rows only that it is searched in.
        return None


def _is_same(regex: Regex, engine: RegexEngine) -> bool:
    """Whether the engine finds the same matches (L1), and soon."""
    return is_unambiguous(regex.node) and (
        not engine.prefixed or has_bounded_backtracking(regex.node)
    )


def _extracted(
    x: str, name: str, pattern: str, string: Callable[[str], str], engine: RegexEngine
) -> str | None:
    regex = parse_regex(pattern)
    translated = engine.translated(regex) if _is_same(regex, engine) else None
    group = min(regex.groups, 1) if name == "substring" else 0
    if translated is None or group in optional_groups(regex.node):
        return None
    p = string(translated)
    found = engine.found.format(x=x, p=p)
    return f"case when {found} then {engine.extracted.format(x=x, p=p, n=group)} end"


def _replaced(
    x: str, values: list[str], string: Callable[[str], str], engine: RegexEngine
) -> str | None:
    pattern, replacement, *rest = values
    letters = rest[0] if rest else ""
    flags = with_option_letters(Flags(), letters.replace("g", ""), embedded=False)
    if flags is None or letters[:1] in _DIGITS | {"0"}:
        return None
    regex = parse_regex(pattern, flags)
    if not _is_same(regex, engine) or regex.groups > _GROUPS_MAX:
        return None
    translated = engine.translated(regex)
    if translated is None:
        return None
    every = "g" in letters
    # Java replaces every match: the first one is the one right behind the shortest beginning.
    prefixed = engine.prefixed and not every
    text = _replacement(replacement, regex.groups, engine, shift=2 * prefixed)
    if prefixed:
        translated, text = rf"\A((?s:.)*?)({translated})", engine.group(1) + text
    template = engine.all_replaced if every else engine.first_replaced
    return template.format(x=x, p=string(translated), r=string(text))


def _replacement(text: str, groups: int, engine: RegexEngine, *, shift: int) -> str:
    out: list[str] = []
    at = 0
    while at < len(text):
        character, following = text[at], text[at + 1 : at + 2]
        at += 1
        if character == "\\" and following in _DIGITS:
            at += 1
            number = int(following)
            out.append(engine.group(number + shift) if number <= groups else "")
        elif character == "\\" and following == "&":
            at += 1
            out.append(engine.group(shift))
        else:
            at += character == "\\" and following == "\\"
            out.append(engine.escaped(character))
    return "".join(out)
