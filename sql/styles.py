"""How a session writes and reads values: DateStyle, IntervalStyle, floats, bytea.

INVARIANTS
  L1  results, COPY, literals, parameters, rows as values and texts that expressions make of values
      follow the styles (`bind_styles.py`); what else functions and casts make inside of expressions
      is computed in PostgreSQL's default styles, so where another one would matter they are refused
      (0A000).
  L2  what a table or a view keeps as text is read in the default styles, whoever uses it; literals
      that mean something else there are written anew when it is defined (`read_literals.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sql.errors import SqlError, not_supported
from sql.functions import Function, FunctionKind

DATES: Final = frozenset({"date", "timestamp", "timestamptz"})
_FLOATS: Final = frozenset({"float4", "float8"})
_TEXTS: Final = frozenset({"text", "varchar", "bpchar", "name", "unknown"})
_JSON: Final = frozenset({"json", "jsonb"})
_OWN_FORMAT: Final = frozenset({"to_char", "encode", "md5", "convert_from"})
"""Functions that make texts of values in a form of their own."""


@dataclass(frozen=True, slots=True)
class Styles:
    """The settings. `dates` and `order` are DateStyle: ISO, SQL, Postgres, German; MDY, DMY, YMD.
    `digits` 0 and below: a float with so many fewer than all of its digits, not its shortest text.
    """

    dates: str = "ISO"
    order: str = "MDY"
    intervals: str = "postgres"
    digits: int = 1
    bytea: str = "hex"

    def writes(self, type_name: str) -> bool:
        """Whether values of the type, or arrays of them, look otherwise than by default."""
        name = type_name.removeprefix("_")
        return (
            (name in DATES and self.dates != "ISO")
            or (name == "interval" and self.intervals != "postgres")
            or (name in _FLOATS and self.digits <= 0)
            or (name == "bytea" and self.bytea != "hex")
        )

    def packed(self) -> str:
        """As one text, which `unpacked` reads: a constant of a plan."""
        return "/".join((self.dates, self.order, self.intervals, str(self.digits), self.bytea))

    def reads(self, type_name: str) -> bool:
        """Whether texts of the type may mean something else than by default."""
        name = type_name.removeprefix("_")
        return (name in DATES and self.order != "MDY") or (
            name == "interval" and self.intervals == "sql_standard"
        )


PLAIN: Final = Styles()


def unpacked(text: str) -> Styles:
    """The inverse of `packed`."""
    dates, order, intervals, digits, bytea = text.split("/")
    return Styles(dates, order, intervals, int(digits), bytea)


def styles_of(date_style: str, interval_style: str, digits: str, bytea: str) -> Styles:
    """From the settings as SHOW prints them."""
    dates, order = date_style.split(", ")
    return Styles(dates, order, interval_style, 1 if int(digits) > 0 else int(digits), bytea)


def shows_texts(row: Function, result: str) -> bool | None:
    """Whether a call makes JSON of its arguments' texts, false if it makes text of them; None if
    it makes neither, or in a form of its own.
    """
    made = result.removeprefix("_")
    if made not in _TEXTS | _JSON or row.name in _OWN_FORMAT:
        return None
    return made in _JSON


def check_style(styles: Styles, row: Function, args: Sequence[str], result: str) -> None:
    """0A000 for a call whose answer depends on a style that is not the default (L1)."""
    in_json = shows_texts(row, result)
    if in_json is not None:
        for name in args:
            dated = in_json and name.removeprefix("_") in DATES  # always ISO there
            if styles.writes(name) and not dated:
                raise _depends(name)
    is_input = row.kind is FunctionKind.CAST and args[0].removeprefix("_") in _TEXTS
    if is_input and styles.reads(result):
        raise _depends(result)


def _depends(type_name: str) -> SqlError:
    setting = {"bytea": "bytea_output", "interval": "IntervalStyle"}
    name = type_name.removeprefix("_")
    word = "extra_float_digits" if name in _FLOATS else setting.get(name, "DateStyle")
    hint = f"Only results, literals and parameters follow {word}; expressions need its default."
    return not_supported(f"{word} other than the default within an expression", hint=hint)
