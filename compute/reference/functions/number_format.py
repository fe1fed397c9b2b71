"""to_char() of numbers: PostgreSQL's number templates (formatting.c), in the locale C.

INVARIANTS
  V1  a template is parsed once into actions and plain characters; its totals
      (`NumberTemplateTotals`) are known before a number is written or read.
  V2  writing and reading follow NUM_processor step by step, including its oddities; names are those
      of formatting.c unless there is a better one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Final

from compute.reference.functions.floats import round_to_float32
from compute.reference.functions.numbers import in_range, wrap_signed
from compute.reference.registry import implements
from sql.errors import SqlError, not_supported

_CACHED_MAX: Final = 512
_FLOAT4_DIGITS: Final = 6
_KEYS: Final = (
    ",", ".", "0", "9", "B", "C", "D", "EEEE", "FM", "G", "L", "MI", "PL", "PR", "RN", "SG", "SP",
    "S", "TH", "V",
)  # fmt: skip
_LOWER: Final = (
    "b", "c", "d", "eeee", "fm", "g", "l", "mi", "pl", "pr", "rn", "sg", "sp", "s", "th", "v",
)  # fmt: skip
_SAME: Final = frozenset({"RN", "rn", "TH", "th"})
WIDE_TEMPLATE_KEYS: Final = Context(prec=400, rounding=ROUND_HALF_UP)
_ROMAN: Final = (
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"),
    (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
)  # fmt: skip
_ROMAN_LENGTH: Final = 15
_ROMAN_MAX: Final = 3999
_CUT: Final = 1 << 31
DIGITS: Final = frozenset("0123456789")


@dataclass(frozen=True, slots=True)
class NumberTemplateTotals:
    """The totals of a template. `zero_start`, `zero_end`: positions counted from 1, 0 for none."""

    pre: int = 0
    post: int = 0
    multi: int = 0
    zero_start: int = 0
    zero_end: int = 0
    pre_sign: int = 0
    sign: str = ""
    """Where `S` stands: `before` or `behind`."""
    flags: frozenset[str] = frozenset()


Node = tuple[str, bool]
"""A keyword (True) or a character."""


def _problem(message: str) -> SqlError:
    return SqlError("42601", message)


# --- templates -----------------------------------------------------------------------------------


@lru_cache(maxsize=_CACHED_MAX)
def parse_number_template(template: str) -> tuple[tuple[Node, ...], NumberTemplateTotals]:
    """The keywords and characters of a template, and its totals (V1)."""
    nodes: list[Node] = []
    at = 0
    while at < len(template):
        key = _key(template, at)
        if key is not None:
            at += len(key)
            nodes.append((key if key in _SAME else key.upper(), True))
        elif template[at] == '"':
            at = _quoted(template, at + 1, nodes)
        else:
            at += template[at] == "\\" and template[at + 1 : at + 2] == '"'
            nodes.append((template[at], False))
            at += 1
    counts = NumberTemplateTotals()
    for text, is_key in nodes:
        if is_key:
            counts = _counted(counts, text)
            if "R" in counts.flags and counts.flags - {"R", "FM"}:
                raise _problem('"RN" is incompatible with other formats')
    return tuple(nodes), counts


def _key(template: str, at: int) -> str | None:
    for keys in (_KEYS, _LOWER):
        for key in keys:
            if template.startswith(key, at):
                return key
    return None


def _quoted(template: str, at: int, nodes: list[Node]) -> int:
    while at < len(template) and template[at] != '"':
        at += template[at] == "\\" and at + 1 < len(template)
        nodes.append((template[at], False))
        at += 1
    return at + 1


_TOGETHER: Final = {"+", "-", "<"}


def _counted(counts: NumberTemplateTotals, key: str) -> NumberTemplateTotals:
    flags = counts.flags
    if "E" in flags and key != "EEEE":
        raise _problem('"EEEE" must be the last pattern used')
    match key:
        case "9" | "0":
            return _digit(counts, key)
        case "B":
            raise not_supported("the number template B")
        case "D" | ".":
            if "." in flags:
                raise _problem("multiple decimal points")
            if "V" in flags:
                raise _problem('cannot use "V" and decimal point together')
            return replace(counts, flags=flags | {"."})
        case "V":
            if "." in flags:
                raise _problem('cannot use "V" and decimal point together')
            return replace(counts, flags=flags | {"V"})
        case "FM":
            return replace(counts, flags=flags | {"FM"})
        case "S":
            return _signed(counts)
        case "MI" | "PL" | "SG":
            if "S" in flags:
                raise _problem(f'cannot use "S" and "{key}" together')
            return replace(counts, flags=flags | {"MI": {"-"}, "PL": {"+"}, "SG": {"+", "-"}}[key])
        case "PR":
            if flags & {"S", "+", "-"}:
                raise _problem('cannot use "PR" and "S"/"PL"/"MI"/"SG" together')
            return replace(counts, flags=flags | {"<"})
        case "RN" | "rn":
            if "R" in flags:
                raise _problem('cannot use "RN" twice')
            return replace(counts, flags=flags | {"R"})
        case "EEEE":
            if "E" in flags:
                raise _problem('cannot use "EEEE" twice')
            if flags & {"FM", "S", "<", "-", "+", "R", "V"}:
                raise _problem('"EEEE" is incompatible with other formats')
            return replace(counts, flags=flags | {"E"})
        case _:
            return counts


def _digit(counts: NumberTemplateTotals, key: str) -> NumberTemplateTotals:
    flags = counts.flags
    if "<" in flags:
        raise _problem(f'"{key}" must be ahead of "PR"')
    if key == "9" and "V" in flags:
        return replace(counts, multi=counts.multi + 1)
    if key == "0" and "0" not in flags and "." not in flags:
        counts = replace(counts, flags=flags | {"0"}, zero_start=counts.pre + 1)
    if "." in flags:
        counts = replace(counts, post=counts.post + 1)
    else:
        counts = replace(counts, pre=counts.pre + 1)
    return replace(counts, zero_end=counts.pre + counts.post) if key == "0" else counts


def _signed(counts: NumberTemplateTotals) -> NumberTemplateTotals:
    flags = counts.flags
    if "S" in flags:
        raise _problem('cannot use "S" twice')
    if flags & _TOGETHER:
        raise _problem('cannot use "S" and "PL"/"MI"/"SG"/"PR" together')
    if "." not in flags:
        return replace(counts, sign="before", pre_sign=counts.pre, flags=flags | {"S"})
    return replace(counts, sign="behind", flags=flags | {"S"})


# --- writing -------------------------------------------------------------------------------------


@implements("to_char(numeric,text)")
def decimal_to_char(value: Decimal, template: str) -> str:
    """to_char(numeric, text)."""
    nodes, counts = parse_number_template(template)
    if "R" in counts.flags:
        return _written(nodes, counts, _roman(round_half_away(value, 0)), 0, "+")
    if "E" in counts.flags:
        return _scientific(value, counts.post)
    if "V" in counts.flags:
        value = WIDE_TEMPLATE_KEYS.multiply(value, Decimal(10) ** counts.multi)
        counts = replace(counts, pre=counts.pre + counts.multi)
    return _plain(nodes, counts, f"{round_half_away(value, counts.post):f}")


@implements("to_char(int4,text)")
def integer_to_char(value: int, template: str) -> str:
    """to_char(integer, text): V multiplies in 32 bits, by a power that C cuts."""
    return _integer_to_char(value, template, lambda ten: wrap_signed(value * min(ten, _CUT), 32))


def _integer_to_char(value: int, template: str, multiplied: Callable[[int], int]) -> str:
    nodes, counts = parse_number_template(template)
    if "R" in counts.flags:
        return _written(nodes, counts, _roman(Decimal(value)), 0, "+")
    if "E" in counts.flags:
        return f"{'' if value < 0 else ' '}{value:.{counts.post}e}"
    if "V" in counts.flags:
        value = multiplied(10**counts.multi)
        counts = replace(counts, pre=counts.pre + counts.multi)
    return _plain(nodes, counts, str(value) + ("." + "0" * counts.post if counts.post else ""))


@implements("to_char(int8,text)")
def bigint_to_char(value: int, template: str) -> str:
    """to_char(bigint, text). Scientific notation is that of numeric and exact, where an integer's
    is that of a double. V multiplies as `*` does.
    """
    if "E" in parse_number_template(template)[1].flags:
        return decimal_to_char(Decimal(value), template)

    def multiplied(ten: int) -> int:
        return in_range(value * in_range(ten, "int8"), "int8")

    return _integer_to_char(value, template, multiplied)


def float_to_char(value: float, template: str, digits: int) -> str:
    """to_char(double precision, text), to_char(real, text). `digits`: the significant digits of the
    type.
    """
    nodes, counts = parse_number_template(template)
    if "R" in counts.flags:
        whole = round(value) if math.isfinite(value) else 0
        return _written(nodes, counts, _roman(Decimal(whole)), 0, "+")
    if "E" in counts.flags:
        if not math.isfinite(value):
            return f" {'#' * counts.pre}.{'#' * (counts.post + 4)}"
        text = f"{value:.{counts.post}e}"
        return text if text.startswith("-") else f" {text}"
    if "V" in counts.flags:
        value *= 10.0**counts.multi
        if digits == _FLOAT4_DIGITS:
            # The product is a real, too.
            value = round_to_float32(value)
        counts = replace(counts, pre=counts.pre + counts.multi)
    before = len(_fixed(abs(value), 0))
    post = 0 if before >= digits else min(counts.post, digits - before)
    counts = replace(counts, post=post)
    return _plain(nodes, counts, _fixed(value, post))


def _fixed(value: float, places: int) -> str:
    if math.isfinite(value):
        return f"{value:.{places}f}"
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def round_half_away(value: Decimal, places: int) -> Decimal:
    """Round half away from zero; zero has no sign."""
    result = value.quantize(Decimal(1).scaleb(-places), context=WIDE_TEMPLATE_KEYS)
    return result if result else abs(result)


def _scientific(value: Decimal, places: int) -> str:
    exponent = value.adjusted() if value else 0
    # Rounded up to 10 it stays so, as in PostgreSQL.
    digits = round_half_away(value.scaleb(-exponent, WIDE_TEMPLATE_KEYS), places)
    sign = "" if value < 0 else " "
    return f"{sign}{digits:f}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"


def _roman(value: Decimal) -> str:
    if not 1 <= value <= _ROMAN_MAX:
        return "#" * _ROMAN_LENGTH
    rest, out = int(value), ""
    for size, letters in _ROMAN:
        out += letters * (rest // size)
        rest %= size
    return out


def _plain(nodes: tuple[Node, ...], counts: NumberTemplateTotals, text: str) -> str:
    sign = "-" if text.startswith("-") else "+"
    number = text.lstrip("-")
    before = len(number.partition(".")[0])
    if before > counts.pre:
        number = "#" * counts.pre + "." + "#" * counts.post
    return _written(nodes, counts, number, max(counts.pre - before, 0), sign)


def _written(
    nodes: tuple[Node, ...], counts: NumberTemplateTotals, number: str, blanks: int, sign: str
) -> str:
    if "R" in counts.flags:
        counts = NumberTemplateTotals(flags=frozenset({"R"}) | (counts.flags & {"FM"}))
        blanks = 0
    return _Writer(counts, number, blanks, sign).run(nodes)


@dataclass(slots=True)
class _Writer:
    """NUM_processor for to_char. `blanks`: places before the number's first digit."""

    counts: NumberTemplateTotals
    number: str
    blanks: int
    sign: str
    out: list[str] = field(default_factory=list[str])
    at: int = 0
    place: int = 0
    inside: bool = False
    signed: bool = False
    last: int | None = None
    """The last digit behind the point that matters, under FM."""
    length: int = 0
    behind: bool = False

    def run(self, nodes: tuple[Node, ...]) -> str:
        self._prepare()
        for text, is_key in nodes:
            if not is_key:
                self.out.append(text)
            elif text in ("9", "0", ".", "D"):
                self._digit(text)
            else:
                self._other(text)
        # Where the template has more than the number, C writes the end of a string.
        return "".join(self.out).partition("\0")[0]

    def _prepare(self) -> None:
        counts, flags = self.counts, self.counts.flags
        self.behind = counts.sign == "behind"
        if flags & {"+", "-"}:
            self.signed = "-" in flags
        else:
            if self.sign != "-" and "FM" in flags:
                self.counts = counts = replace(counts, flags=flags - {"<"})
                flags = counts.flags
            self.signed = self.sign == "+" and "FM" in flags and "S" not in flags
            if counts.sign == "before" and counts.pre == counts.pre_sign:
                self.behind = True
        self.length = counts.post + counts.pre - 1
        if "FM" in flags and "." in flags:
            self._find_last()
        if not self.signed and not self.blanks:
            self.length += 1

    def _find_last(self) -> None:
        point = self.number.find(".")
        if point < 0:
            return
        self.last = max([point, *(i for i, c in enumerate(self.number) if i > point and c != "0")])
        if self.counts.zero_end > self.blanks:
            zero = min(len(self.number) - 1, self.counts.zero_end - self.blanks)
            self.last = max(self.last, zero)

    def _other(self, key: str) -> None:
        fill = "FM" not in self.counts.flags
        match key:
            case "," | "G":
                if self.inside:
                    self.out.append(",")
                elif fill:
                    self.out.append(" ")
            case "L":
                self.out.append(" ")
            case "RN" | "rn":
                text = self.number if key == "RN" else self.number.lower()
                self.out.append(text.rjust(_ROMAN_LENGTH) if fill else text)
            case "TH" | "th":
                unfit = self.counts.flags & {"R", "."} or self.sign == "-"
                if not unfit and self.number[:1] != "#":
                    self.out.append(ordinal(self.number, upper=key == "TH"))
            case "MI" | "PL":
                wanted = "-" if key == "MI" else "+"
                if self.sign == wanted or fill:
                    self.out.append(wanted if self.sign == wanted else " ")
            case "SG":
                self.out.append(self.sign)
            case _:
                pass

    def _leading_zero(self) -> bool:
        """`0.1` in `9.9` is ` .1`."""
        return (
            "0" not in self.counts.flags
            and self.at == 0
            and self.number[:1] == "0"
            and self.counts.post != 0
        )

    def _last_is_point(self) -> bool:
        return self.last is not None and self.number[self.last] == "."

    def _digit(self, key: str) -> None:
        flags = self.counts.flags
        if "R" in flags:
            return
        self.inside = False
        start = self.counts.zero_start - 1 if self.counts.zero_start else 0
        zero = "0" in flags
        begins = self.place >= self.blanks or (zero and start == self.place)
        if not self.signed and begins and (not self._leading_zero() or self._last_is_point()):
            self._write_sign()
        if self.place < self.blanks and (start > self.place or not zero):
            if "FM" not in flags:
                self.out.append(" ")
        elif zero and self.place < self.blanks and start <= self.place:
            self.out.append("0")
            self.inside = True
        else:
            self._write_digit(key)
            self.at += self.at < len(self.number)
        end = self.length + bool(self.blanks) + ("." in flags)
        if self.last is not None and self.last == self.at:
            end = self.place
        if self.place + 1 == end:
            self._write_end()
        self.place += 1

    def _write_sign(self) -> None:
        flags = self.counts.flags
        if "S" in flags:
            if not self.behind:
                self.out.append(self.sign)
                self.signed = True
            return
        if "<" in flags:
            self.out.append(" " if self.sign == "+" else "<")
        elif self.sign == "-":
            self.out.append("-")
        elif "FM" not in flags:
            self.out.append(" ")
        self.signed = True

    def _write_digit(self, key: str) -> None:
        current = self.number[self.at : self.at + 1]
        if current == ".":
            if not self._last_is_point() or "FM" in self.counts.flags:
                self.out.append(".")
        elif self.last is not None and self.at > self.last and key != "0":
            pass
        elif self._leading_zero():
            if "FM" not in self.counts.flags:
                self.out.append(" ")
            elif self._last_is_point():
                self.out.append("0")
        else:
            self.out.append(current or "\0")
            self.inside = True

    def _write_end(self) -> None:
        if self.signed and "<" in self.counts.flags:
            self.out.append(" " if self.sign == "+" else ">")
        elif "S" in self.counts.flags and self.behind:
            self.out.append(self.sign)


def ordinal(number: str, *, upper: bool) -> str:
    """The ordinal suffix: `st`, `nd`, `rd` or `th`."""
    last, before = number[-1:], number[-2:-1]
    if last not in DIGITS:
        raise SqlError("22P02", f'"{number}" is not a number')
    ending = "th" if before == "1" else {"1": "st", "2": "nd", "3": "rd"}.get(last, "th")
    return ending.upper() if upper else ending
