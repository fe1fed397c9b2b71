"""Parse DateStyle for SET and print it for SHOW: `ISO, MDY`; unnamed parts keep their value."""

from typing import Final

from sql.errors import SqlError

_STYLES: Final = {"iso": "ISO", "sql": "SQL", "german": "German"}


def date_style(name: str, value: str) -> str:
    """The value as SHOW prints it (check_datestyle). Raises 22023."""
    style = order = ""
    for word in _words(value):
        found_style, found_order = _said(name, value, word)
        if (style and found_style not in ("", style)) or (order and found_order not in ("", order)):
            raise _invalid(name, value, 'Conflicting "DateStyle" specifications.')
        style, order = style or found_style, order or found_order
    if style == "German" and not order:
        order = "DMY"
    return f"{style or 'ISO'}, {order or 'MDY'}"


def merge_date_style(value: str, present: str, default: str) -> str:
    """The value, whose missing parts are taken from the present value."""
    said = [_said("DateStyle", value, word) for word in _words(value)]
    style, order = (default if "default" in _words(value) else present).split(", ")
    styles = {found for found, _ in said} - {""}
    if not styles:
        value = f"{value}, {style}"
    if not any(found for _, found in said) and "German" not in styles:
        value = f"{value}, {order}"
    return value


def _words(value: str) -> list[str]:
    return [part.strip().strip('"').lower() for part in value.split(",")]


def _said(name: str, value: str, word: str) -> tuple[str, str]:
    """What a word says of style and of order."""
    if word in _STYLES:
        return _STYLES[word], ""
    if word.startswith("postgres"):
        return "Postgres", ""
    if word == "default":
        return "", ""
    if word in ("mdy", "us") or word.startswith("noneuro"):
        return "", "MDY"
    if word == "dmy" or word.startswith("euro"):
        return "", "DMY"
    if word == "ymd":
        return "", "YMD"
    raise _invalid(name, value, f'Unrecognized key word: "{word}".')


def _invalid(name: str, value: str, detail: str) -> SqlError:
    message = f'invalid value for parameter "{name}": "{value}"'
    return SqlError("22023", message, detail=detail)
