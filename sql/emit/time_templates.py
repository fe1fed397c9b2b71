"""Write to_char() of timestamps with a constant template in an engine's own functions.

INVARIANTS
  T1  only fields that both engines write as PostgreSQL does for the years 1 to 9999; a template
      with any other field is not written here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from sql.types.datetime.format_templates import (
    DAY_NAMES,
    MONTH_NAMES,
    TemplateField,
    TemplateLiteral,
    parse_template,
)

_NAME_WIDTH: Final = 9


@dataclass(frozen=True, slots=True)
class ToCharTemplates:
    """The functions of an engine. `{x}` is the timestamp."""

    text: str
    concat: Callable[[Sequence[str]], str]
    numbers: Mapping[str, str]


SPARK_TO_CHAR: Final = ToCharTemplates(
    "string",
    lambda parts: f"concat({', '.join(parts)})",
    {
        "D": "dayofweek({x})",
        "ID": "weekday({x}) + 1",
        "IW": "weekofyear({x})",
        "IYYY": "extract(yearofweek from {x})",
        "MS": "cast(extract(second from {x}) * 1000 as int) % 1000",
        "US": "cast(extract(second from {x}) * 1000000 as int) % 1000000",
        "WW": "(dayofyear({x}) - 1) div 7 + 1",
        "W": "(day({x}) - 1) div 7 + 1",
    },
)
DUCKDB_TO_CHAR: Final = ToCharTemplates(
    "varchar",
    lambda parts: f"({' || '.join(parts)})",
    {
        "D": "dayofweek({x}) + 1",
        "ID": "isodow({x})",
        "IW": "week({x})",
        "IYYY": "isoyear({x})",
        "MS": "millisecond({x}) % 1000",
        "US": "microsecond({x}) % 1000000",
        "WW": "(dayofyear({x}) - 1) // 7 + 1",
        "W": "(day({x}) - 1) // 7 + 1",
    },
)
_NUMBERS: Final = {
    "YYYY": "year({x})", "YY": "year({x}) % 100", "MM": "month({x})", "DD": "day({x})",
    "DDD": "dayofyear({x})", "HH24": "hour({x})", "HH12": "(hour({x}) + 11) % 12 + 1",
    "HH": "(hour({x}) + 11) % 12 + 1", "MI": "minute({x})", "SS": "second({x})",
    "Q": "quarter({x})",
}  # fmt: skip
_WIDTHS: Final = {
    "YYYY": 4, "IYYY": 4, "YY": 2, "MM": 2, "DD": 2, "DDD": 3, "HH24": 2, "HH12": 2, "HH": 2,
    "MI": 2, "SS": 2, "IW": 2, "WW": 2, "MS": 3, "US": 6,
}  # fmt: skip
_ALWAYS_WIDE: Final = frozenset({"MS", "US"})


def native_to_char(
    template: str, x: str, words: ToCharTemplates, string: Callable[[str], str]
) -> str | None:
    """The text of `to_char(x, template)`, or None (T1). `string`: a bound string."""
    parts: list[str] = []
    literal = ""
    for node in parse_template(template):
        if isinstance(node, TemplateLiteral):
            literal += node.character
            continue
        if literal:
            parts.append(string(literal))
            literal = ""
        text = _field(node, words)
        if text is None:
            return None
        parts.append(text.replace("{x}", x))
    if not parts:
        return None
    return words.concat([*parts, string(literal)] if literal else parts)


def _field(node: TemplateField, words: ToCharTemplates) -> str | None:
    if node.ordinal or node.spelled or node.localized:
        return None
    if node.name in ("DAY", "DY"):
        return _names(DAY_NAMES, words.numbers["D"], 3 if node.name == "DY" else None, node)
    named = _NAMED.get(node.name)
    if named is not None:
        return named(node)
    number = words.numbers.get(node.name) or _NUMBERS.get(node.name)
    if number is None:
        return None
    text = f"cast({number} as {words.text})"
    width = _WIDTHS.get(node.name, 0)
    if not width or (node.fill and node.name not in _ALWAYS_WIDE):
        return text
    return f"lpad({text}, {width}, '0')"


def _names(names: Sequence[str], number: str, length: int | None, node: TemplateField) -> str:
    width = 0 if node.fill or length is not None else _NAME_WIDTH
    whens = " ".join(
        f"when {index} then '{node.cased(name[:length]).ljust(width)}'"
        for index, name in enumerate(names, 1)
    )
    return f"case {number} {whens} end"


def _half_of_day(node: TemplateField) -> str:
    dots = "." if "." in node.name else ""
    morning, evening = (node.cased(f"{letter}{dots}M{dots}") for letter in "AP")
    return f"case when hour({{x}}) >= 12 then '{evening}' else '{morning}' end"


_NAMED: Final[Mapping[str, Callable[[TemplateField], str]]] = {
    "MONTH": partial(_names, MONTH_NAMES, "month({x})", None),
    "MON": partial(_names, MONTH_NAMES, "month({x})", 3),
    "AM": _half_of_day, "PM": _half_of_day, "A.M.": _half_of_day, "P.M.": _half_of_day,
}  # fmt: skip
