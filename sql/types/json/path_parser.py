"""Parse jsonpath into steps (jsonpath_gram.y).

    'lax $.a[*] ? (@ > 1)' ─▶ Path: root ─▶ key a ─▶ elements ─▶ filter

INVARIANTS
  J1  an accepted path means what it does in PostgreSQL. Methods that only PostgreSQL has are
      refused by name (0A000); everything else is 42601.

Not here: a path's canonical text (`path_printer.py`).
"""

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Final, TypeAlias

from sql.errors import SqlError, not_supported
from sql.regex.parser import parse_regex
from sql.regex.syntax import Flags, with_option_letters
from sql.types.json.parser import parse_json, unquote_json

LAST_LEVEL: Final = -1
"""A bound of `.**{..}` or a subscript that means the last level."""

PathArgument: TypeAlias = "PathStep | None"


@dataclass(frozen=True, slots=True)
class PathStep:
    """One item: what it is, its value, its arguments, and what is applied to its result.

    kinds: null bool number string variable root current last key any_key any(levels) elements
    index(pairs of arguments) filter method; operators by their sign, unary ones as `+x`, `-x`;
    `!`, `is unknown`, exists, `starts with`, like_regex (value: pattern and flags).
    """

    kind: str
    value: "str | bool | Decimal | tuple[int | str, int | str] | None" = None
    args: "tuple[PathArgument, ...]" = ()
    next: "PathStep | None" = None

    @property
    def is_predicate(self) -> bool:
        """Whether the step yields true, false or unknown, with nothing applied to its result."""
        return self.kind in _PREDICATES and self.next is None


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A whole jsonpath."""

    strict: bool
    root: PathStep


PATH_COMPARISONS: Final = ("==", "!=", "<", "<=", ">", ">=")
_PREDICATES: Final = frozenset(
    {*PATH_COMPARISONS, "&&", "||", "!", "is unknown", "exists", "starts with", "like_regex"}
)
PATH_METHODS: Final = frozenset(
    {"type", "size", "double", "ceiling", "floor", "abs", "bigint", "boolean", "decimal", "integer",
     "number", "string"}
)  # fmt: skip
_REFUSED: Final = frozenset(
    {"keyvalue", "datetime", "date", "time", "time_tz", "timestamp", "timestamp_tz"}
)
PATH_OPERATOR_PRIORITIES: Final = {
    "||": 0, "&&": 1, **dict.fromkeys((*PATH_COMPARISONS, "starts with"), 2), "+": 3, "-": 3,
    "*": 4, "/": 4, "%": 4, "+x": 5, "-x": 5,
}  # fmt: skip
_TOKEN: Final = re.compile(
    r"""\s*(?:/\*.*?\*/\s*)*(?:
    (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<variable>\$(?:"(?:[^"\\]|\\.)*"|[^\s?%$.\[\]{}()|&!=<>@\#,*:\-+/\\"]+))
    | (?P<number>(?>0[xX][\da-fA-F](?:_?[\da-fA-F])*|0[oO][0-7](?:_?[0-7])*|0[bB][01](?:_?[01])*
        |(?:(?:0|[1-9](?:_?\d)*)(?:\.(?:\d(?:_?\d)*)?)?|\.\d(?:_?\d)*)(?:[eE][+-]?\d(?:_?\d)*)?
        ))
    | (?P<sign>&&|\|\||==|!=|<>|<=|>=|\*\*|[-+*/%<>!?@$.,()\[\]{}])
    | (?P<word>(?:[^\s?%$.\[\]{}()|&!=<>@\#,*:\-+/\\"]|\\u\{[\da-fA-F]{1,6}\}|\\.)+)
    )""",
    re.VERBOSE | re.DOTALL,
)

_SIGNS: Final = frozenset("?%$.[]{}()|&!=<>@#,*:-+/")
_OTHER: Final = re.compile(r"""[^\s?%$.\[\]{}()|&!=<>@\#,*:\-+/\\"]""")
"""What may not stand right behind a number."""


@lru_cache(maxsize=512)
def parse_jsonpath(text: str) -> JsonPath:
    """The path of a text. Raises 42601, 22P02, 0A000 (J1)."""
    if not text.strip():
        raise SqlError("22P02", f'invalid input syntax for type jsonpath: "{text}"')
    return _Parser(text).path()


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        at, text = 0, text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                raise _wrong(text[at:].strip()[:1])
            if match.lastgroup == "number" and (junk := _OTHER.match(text, match.end())):
                raise _wrong(match["number"] + junk[0], "trailing junk after numeric literal")
            token = match[match.lastgroup]
            word = _unescaped(token) if match.lastgroup == "word" else token
            self._tokens.append((match.lastgroup, word))
            at = match.end()
        self._at = 0
        self._filters = self._subscripts = 0

    # --- tokens --------------------------------------------------------------------------------

    def _peek(self, ahead: int = 0) -> str:
        """The text of a token, a word in lower case; empty at the end."""
        place = self._at + ahead
        if place >= len(self._tokens):
            return ""
        kind, text = self._tokens[place]
        if kind == "word" and not _SIGNS.isdisjoint(text):
            kind = "escaped"  # `\\+` is a name
        return text.lower() if kind == "word" else text if kind == "sign" else f"{kind} {text}"

    def _take(self) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            raise _wrong("")
        self._at += 1
        return self._tokens[self._at - 1]

    def _follows(self, *words: str) -> bool:
        if all(self._peek(ahead) == word for ahead, word in enumerate(words)):
            self._at += len(words)
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._follows(word):
            raise self._unexpected()

    def _unexpected(self) -> SqlError:
        rest = self._tokens[self._at :]
        return _wrong(rest[0][1] if rest else "")

    # --- grammar -------------------------------------------------------------------------------

    def path(self) -> JsonPath:
        """Mode and expression."""
        strict = self._follows("strict")
        if not strict:
            self._follows("lax")
        root = self._expression(0)
        if self._at < len(self._tokens):
            raise self._unexpected()
        return JsonPath(strict, root)

    def _expression(self, least: int) -> PathStep:
        """Operators of at least this priority, by climbing."""
        left = self._operand()
        while True:
            sign = "!=" if self._peek() == "<>" else self._peek()
            if sign == "starts" and self._peek(1) == "with":
                sign = "starts with"
            if sign == "like_regex":
                if least > 2 or left.is_predicate:
                    return left
                left = self._regex(left)
                continue
            priority = PATH_OPERATOR_PRIORITIES.get(sign)
            if priority is None or priority < least:
                return left
            self._at += 2 if sign == "starts with" else 1
            is_start = sign == "starts with"
            right = self._initial() if is_start else self._expression(priority + 1)
            wants = sign in ("&&", "||")
            if left.is_predicate != wants or right.is_predicate != wants:
                raise self._unexpected()
            left = PathStep(sign, None, (left, right))

    def _initial(self) -> PathStep:
        kind, text = self._take()
        if kind == "string":
            return PathStep("string", _string(text))
        if kind == "variable":
            return PathStep("variable", _named(text[1:]))
        self._at -= 1
        raise self._unexpected()

    def _regex(self, left: PathStep) -> PathStep:
        self._at += 1
        kind, pattern = self._take()
        flags = ""
        if self._follows("flag"):
            word, text = self._take()
            if word != "string":
                raise _wrong(text)
            flags = _string(text)
        if kind != "string":
            raise _wrong(pattern)
        found = _string(pattern), _flags(flags)
        letters = with_option_letters(Flags(), regex_option_letters(found[1]), embedded=False)
        assert letters is not None, "all of these are letters of expressions"
        parse_regex(found[0], letters)
        return PathStep("like_regex", found, (left,))

    def _operand(self) -> PathStep:
        for sign in ("+", "-"):
            if self._follows(sign):
                inner = self._operand()
                if inner.is_predicate:
                    raise self._unexpected()
                if isinstance(inner.value, Decimal) and inner.next is None:
                    return inner if sign == "+" else replace(inner, value=-inner.value)
                return PathStep(f"{sign}x", None, (inner,))
        if self._follows("!"):
            negated = self._delimited()
            if negated is None or not negated.is_predicate:
                raise self._unexpected()
            return PathStep("!", None, (negated,))
        found = self._delimited()
        if found is None:
            return self._applied(self._primary())
        return self._applied(found) if self._peek() in (".", "[", "?") else found

    def _delimited(self) -> PathStep | None:
        """`(..)` or `exists (..)`."""
        if self._follows("exists", "("):
            inner = self._expression(0)
            self._expect(")")
            if inner.is_predicate:
                raise self._unexpected()
            return PathStep("exists", None, (inner,))
        if not self._follows("("):
            return None
        inner = self._expression(0)
        self._expect(")")
        if self._follows("is", "unknown"):
            if not inner.is_predicate:
                raise self._unexpected()
            return PathStep("is unknown", None, (inner,))
        return inner

    def _primary(self) -> PathStep:
        kind, text = self._take()
        match kind, text:
            case "string", _:
                return PathStep("string", _string(text))
            case "number", _:
                return PathStep("number", _number(text))
            case "variable", _:
                return PathStep("variable", _named(text[1:]))
            case "sign", "$":
                return PathStep("root")
            case "sign", "@":
                if not self._filters:
                    raise SqlError("42601", "@ is not allowed in root expressions")
                return PathStep("current")
            case "word", "null":
                return PathStep("null")
            case "word", "true" | "false":
                return PathStep("bool", text == "true")
            case "word", _ if text.lower() == "last":
                if not self._subscripts:
                    raise SqlError("42601", "LAST is allowed only in array subscripts")
                return PathStep("last")
            case _:
                self._at -= 1
                raise self._unexpected()

    def _applied(self, step: PathStep) -> PathStep:
        """A step with the accessors behind it."""
        chain: list[PathStep] = []
        while (found := self._accessor()) is not None:
            chain.append(found)
        if not chain:
            return step
        following: PathStep | None = None
        for one in reversed(chain):
            following = replace(one, next=following)
        if step.next is None:
            return replace(step, next=following)
        return _appended(step, following)

    def _accessor(self) -> PathStep | None:
        if self._follows("."):
            return self._member()
        if self._follows("["):
            return self._subscript()
        if self._follows("?"):
            self._expect("(")
            self._filters += 1
            inner = self._expression(0)
            self._filters -= 1
            self._expect(")")
            if not inner.is_predicate:
                raise self._unexpected()
            return PathStep("filter", None, (inner,))
        return None

    def _member(self) -> PathStep:
        kind, text = self._take()
        if (kind, text) == ("sign", "*"):
            return PathStep("any_key")
        if (kind, text) == ("sign", "**"):
            return PathStep("any", self._levels())
        if kind == "string":
            return PathStep("key", _string(text))
        if kind != "word":
            self._at -= 1
            raise self._unexpected()
        if self._peek() != "(":
            return PathStep("key", text)
        name = text.lower()
        if name in _REFUSED:
            raise not_supported(f"the jsonpath method .{name}()")
        if name not in PATH_METHODS:
            raise self._unexpected()
        self._expect("(")
        if name == "decimal":
            return PathStep("method", name, self._modifiers())
        self._expect(")")
        return PathStep("method", name)

    def _modifiers(self) -> tuple[PathStep, ...]:
        """Precision and scale."""
        found: list[PathStep] = []
        while not self._follows(")"):
            if found:
                self._expect(",")
            sign = -1 if self._follows("-") else 1
            if sign == 1:
                self._follows("+")
            kind, text = self._take()
            if kind != "number" or not re.fullmatch("0[xXoObB].*|[0-9_]+", text):
                self._at -= 1
                raise self._unexpected()
            found.append(PathStep("number", sign * _number(text)))
        if len(found) > 2:
            detail = ".decimal() can only have an optional precision[,scale]."
            raise SqlError("42601", "invalid input syntax for type jsonpath", detail=detail)
        return tuple(found)

    def _levels(self) -> tuple[int, int]:
        if not self._follows("{"):
            return 0, LAST_LEVEL
        first = self._level()
        last = self._level() if self._follows("to") else first
        self._expect("}")
        return first, last

    def _level(self) -> int:
        kind, text = self._take()
        if kind == "word" and text.lower() == "last":
            return LAST_LEVEL
        if kind == "number" and text.isdecimal():
            return int(text)
        raise _wrong(text)

    def _subscript(self) -> PathStep:
        if self._follows("*"):
            self._expect("]")
            return PathStep("elements")
        args: list[PathArgument] = []
        self._subscripts += 1
        while True:
            args.append(self._bound())
            args.append(self._bound() if self._follows("to") else None)
            if not self._follows(","):
                break
        self._subscripts -= 1
        self._expect("]")
        return PathStep("index", None, tuple(args))

    def _bound(self) -> PathStep:
        found = self._expression(0)
        if found.is_predicate:
            raise self._unexpected()
        return found


def _appended(step: PathStep, following: PathStep | None) -> PathStep:
    if step.next is None:
        return replace(step, next=following)
    return replace(step, next=_appended(step.next, following))


def _wrong(near: str, what: str = "syntax error") -> SqlError:
    where = f'at or near "{near}"' if near else "at end"
    return SqlError("42601", f"{what} {where} of jsonpath input")


def _number(text: str) -> Decimal:
    """Of a literal: decimal, or an integer to another base."""
    return Decimal(int(text, 0)) if text[1:2].isalpha() and text[1] not in "eE" else Decimal(text)


def _string(text: str) -> str:
    try:
        return unquote_json(parse_json(text))
    except SqlError:
        return _unescaped(text[1:-1])


_ESCAPE: Final = re.compile(
    r"((?:\\u[\da-fA-F]{4})+)|\\u\{([\da-fA-F]{1,6})\}|\\x([\da-fA-F]{2})|\\(.)", re.DOTALL
)
_CONTROLS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def _unescaped(text: str) -> str:
    """A name or string without its escapes (jsonpath_scan.l). Raises 42601, 22P05, 22P02."""

    def plain(match: "re.Match[str]") -> str:
        units, braced, hexadecimal, other = match.groups()
        if units:
            read = bytes.fromhex(units.replace("\\u", ""))
            return read.decode("utf-16-be", "surrogatepass")
        if braced or hexadecimal:
            return chr(int(braced or hexadecimal, 16))
        if other in "ux":
            raise ValueError(other)
        return _CONTROLS.get(other, other)

    try:
        found = _ESCAPE.sub(plain, text)
    except (ValueError, OverflowError):
        raise _wrong(text, "invalid escape sequence") from None
    if "\0" in found:
        raise SqlError("22P05", "unsupported Unicode escape sequence")
    if any("\ud800" <= character <= "\udfff" for character in found):
        raise SqlError("22P02", "invalid input syntax for type jsonpath")
    return found


def _named(text: str) -> str:
    return _string(text) if text.startswith('"') else text


def _flags(text: str) -> str:
    for letter in text:
        if letter not in "ismxq":
            detail = f'Unrecognized flag character "{letter}" in LIKE_REGEX predicate.'
            raise SqlError("42601", "invalid input syntax for type jsonpath", detail=detail)
    if "x" in text and "q" not in text:
        raise SqlError("0A000", 'XQuery "x" flag (expanded regular expressions) is not implemented')
    return "".join(letter for letter in "ismxq" if letter in text)


def regex_option_letters(flags: str) -> str:
    """XQuery's regex flags as letters of PostgreSQL's regular expressions."""
    ignoring = "i" if "i" in flags else ""
    if "q" in flags:
        return "q" + ignoring
    return _LETTERS["s" in flags, "m" in flags] + ignoring


_LETTERS: Final = {
    (False, False): "p", (False, True): "n", (True, True): "w", (True, False): "s",
}  # fmt: skip
"""By whether a point is any character, and `^` and `$` are those of lines."""
