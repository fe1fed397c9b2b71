"""The session's styles of input and output: DateStyle, IntervalStyle, float digits, bytea_output.

INVARIANTS
  L1  results, COPY, literals, parameters, row values and text that expressions make of values
      follow the styles (`styled_arguments.py`). Other functions and casts inside expressions use
      PostgreSQL's default styles; where another style would matter they are refused (0A000).
  L2  expressions that a table or a view stores as text are read in the default styles, in every
      session. Literals that mean something else there are rewritten when the object is defined
      (`setting_literals.py`).
"""

from dataclasses import dataclass
from typing import Final

DATE_STYLE_TYPES: Final = frozenset({"date", "timestamp", "timestamptz"})
FLOAT_TYPES: Final = frozenset({"float4", "float8"})


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
        """Whether values of the type, or arrays of them, look different from the default style."""
        name = type_name.removeprefix("_")
        return (
            (name in DATE_STYLE_TYPES and self.dates != "ISO")
            or (name == "interval" and self.intervals != "postgres")
            or (name in FLOAT_TYPES and self.digits <= 0)
            or (name == "bytea" and self.bytea != "hex")
        )

    def packed(self) -> str:
        """The styles as one text, a constant of a plan; `unpack_styles` reads it."""
        return "/".join((self.dates, self.order, self.intervals, str(self.digits), self.bytea))

    def reads(self, type_name: str) -> bool:
        """Whether texts of the type may mean something else than in the default style."""
        name = type_name.removeprefix("_")
        return (name in DATE_STYLE_TYPES and self.order != "MDY") or (
            name == "interval" and self.intervals == "sql_standard"
        )


DEFAULT_STYLES: Final = Styles()


def unpack_styles(text: str) -> Styles:
    """The inverse of `packed`."""
    dates, order, intervals, digits, bytea = text.split("/")
    return Styles(dates, order, intervals, int(digits), bytea)


def styles_from_settings(date_style: str, interval_style: str, digits: str, bytea: str) -> Styles:
    """From the settings as SHOW prints them."""
    dates, order = date_style.split(", ")
    return Styles(dates, order, interval_style, 1 if int(digits) > 0 else int(digits), bytea)
