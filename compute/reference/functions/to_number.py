"""to_number(): parse a number by a template (NUM_processor of formatting.c)."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from compute.reference.functions.number_format import (
    DIGITS,
    WIDE_TEMPLATE_KEYS,
    Node,
    NumberTemplateTotals,
    parse_number_template,
    round_half_away,
)
from compute.reference.registry import implements
from sql.errors import SqlError, not_supported, out_of_engine_range

_DATA: Final = frozenset("0123456789.,+-")

_DIGITS_MAX: Final = 38
"""Before the point, of a numeric."""


@implements("to_number(text,text)")
def to_number(text: str, template: str) -> Decimal | None:
    """The number in a text; NULL for an empty template."""
    if not template:
        return None
    nodes, counts = parse_number_template(template)
    if counts.flags & {"R", "E"}:
        raise not_supported("to_number() with RN or EEEE")
    # PostgreSQL goes on byte by byte where a template asks for a digit.
    reader = _Reader(counts, text.encode().decode("latin-1"))
    reader.run(nodes)
    digits = "".join(reader.digits).removesuffix(".")
    if not DIGITS.intersection(digits):
        raise SqlError("22P02", f'invalid input syntax for type numeric: "{reader.sign}{digits}"')
    value = Decimal((reader.sign + digits).strip())
    if value.adjusted() >= _DIGITS_MAX:
        raise out_of_engine_range("22003", "value overflows numeric format")
    value = round_half_away(value, reader.behind)
    if value and value.adjusted() >= counts.pre + counts.multi:
        raise SqlError("22003", "numeric field overflow")
    return value.scaleb(-counts.multi, WIDE_TEMPLATE_KEYS) if "V" in counts.flags else value


@dataclass(slots=True)
class _Reader:
    """NUM_processor for to_number. `text`: bytes, a character for each. `sign`: ` ` until one is
    read.
    """

    counts: NumberTemplateTotals
    text: str
    at: int = 0
    sign: str = " "
    digits: list[str] = field(default_factory=list[str])
    before: int = 0
    behind: int = 0
    point: bool = False

    def run(self, nodes: tuple[Node, ...]) -> None:
        for text, is_key in nodes:
            if self.at >= len(self.text):
                return
            if not is_key:
                self._pass_character()
            elif text in ("9", "0", ".", "D"):
                self._part(text)
                self.at += 1
            else:
                self._other(text)

    def _other(self, key: str) -> None:
        match key:
            case "," | "G":
                if "FM" not in self.counts.flags and self.text[self.at] == ",":
                    self.at += 1
            case "MI" | "PL" | "SG" if self.text[self.at] in {"MI": "-", "PL": "+"}.get(key, "+-"):
                self.sign = self.text[self.at]
                self.at += 1
            case "L" | "MI" | "PL" | "SG":
                self._skip(1)
            case "TH" | "th":
                self._skip(2)
            case _:
                pass

    def _skip(self, count: int) -> None:
        while count and self.at < len(self.text) and self.text[self.at] not in _DATA:
            self._pass_character()
            count -= 1

    def _pass_character(self) -> None:
        """All bytes of one (pg_mblen)."""
        first = self.text[self.at]
        self.at += 4 if first >= "\xf0" else 3 if first >= "\xe0" else 2 if first >= "\xc0" else 1

    def _part(self, key: str) -> None:
        if self.text[self.at] == " ":
            self.at += 1
        if self.at >= len(self.text):
            return
        flags = self.counts.flags
        if self.sign == " " and key in "09" and not self.before + self.behind:
            self._read_sign()
        if self.at >= len(self.text):
            return
        read = False
        current = self.text[self.at]
        if current in DIGITS:
            if self.point and self.behind == self.counts.post:
                return
            self.digits.append(current)
            self.behind += self.point
            self.before += not self.point
            read = True
        elif "." in flags and not self.point and current == ".":
            self.digits.append(".")
            self.point = read = True
        if self.sign == " " and self.before + self.behind > 0:
            self._read_trailing_sign(read=read)

    def _read_sign(self) -> None:
        current = self.text[self.at]
        if self.counts.sign == "before":
            if current in "+-":
                self.sign = current
                self.at += 1
        elif current == "-" or ("<" in self.counts.flags and current == "<"):
            self.sign = "-"
            self.at += 1
        elif current == "+":
            self.sign = "+"
            self.at += 1

    def _read_trailing_sign(self, *, read: bool) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if "S" in self.counts.flags:
            if read and following and following in "+-":
                self.sign = following
                self.at += 1
        elif not read and self.counts.flags & {"+", "-"} and self.text[self.at] in "+-":
            self.sign = self.text[self.at]
