"""Parse the templates of to_char(), to_date() and to_timestamp() for dates (formatting.c).

INVARIANTS
  D1  a template is parsed once, into fields with their modifiers and plain characters.

Not here: what the fields do (`compute/reference/functions/time_format.py`,
`compute/reference/functions/to_timestamp.py`, `sql/emit/time_templates.py`).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_CACHED_MAX: Final = 512
_UPPER: Final = (
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "Day", "Dy", "D",
    "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW",
    "IYYY", "IYY", "IY", "I", "J", "MI", "MM", "MONTH", "MON", "MS", "Month", "Mon", "OF", "P.M.",
    "PM", "Q", "RM", "SSSSS", "SSSS", "SS", "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY",
    "YYY", "YY", "Y",
)  # fmt: skip
_MODIFIERS: Final = ("FM", "fm", "TM", "tm")
_KEYS: Final = (*_UPPER, *(key.lower() for key in _UPPER if key == key.upper()))
DAY_NAMES: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTH_NAMES: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
ROMAN_MONTHS: Final = (
    "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TemplateField:
    """A field of a template: `name` in upper case, `text` as written."""

    name: str
    text: str
    fill: bool = False
    localized: bool = False
    ordinal: str = ""
    spelled: bool = False

    def cased(self, word: str) -> str:
        """The word in upper or lower case, as the field is written; as it is for a mixed one."""
        if self.text == self.text.upper():
            return word.upper()
        return word.lower() if self.text == self.text.lower() else word


@dataclass(frozen=True, slots=True)
class TemplateLiteral:
    """A character of a template; `quoted` ones are never separators."""

    character: str
    quoted: bool = False


@lru_cache(maxsize=_CACHED_MAX)
def parse_template(template: str) -> tuple[TemplateField | TemplateLiteral, ...]:
    """The parts of a template (D1)."""
    nodes: list[TemplateField | TemplateLiteral] = []
    at = 0
    while at < len(template):
        # Only one of them: a further one is made of plain characters and fields.
        modifier = template[at : at + 2] if template[at : at + 2] in _MODIFIERS else ""
        fill, localized = modifier in ("FM", "fm"), modifier in ("TM", "tm")
        at += len(modifier)
        key = next((key for key in _KEYS if template.startswith(key, at)), None)
        if key is not None:
            at += len(key)
            ending, spelled = "", False
            if template[at : at + 2] in ("TH", "th"):
                ending = template[at : at + 2]
                at += 2
            elif template[at : at + 2] == "SP":  # PostgreSQL knows no other case of it
                spelled = True
                at += 2
            nodes.append(TemplateField(key.upper(), key, fill, localized, ending, spelled))
        elif at == len(template):
            break
        elif template[at] == '"':
            at = _quoted(template, at + 1, nodes)
        else:
            at += template[at] == "\\" and template[at + 1 : at + 2] == '"'
            nodes.append(TemplateLiteral(template[at]))
            at += 1
    return tuple(nodes)


def _quoted(template: str, at: int, nodes: list[TemplateField | TemplateLiteral]) -> int:
    while at < len(template) and template[at] != '"':
        at += template[at] == "\\" and at + 1 < len(template)
        nodes.append(TemplateLiteral(template[at], quoted=True))
        at += 1
    return at + 1
