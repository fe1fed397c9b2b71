"""Encode jsonb values as bytes that sort as PostgreSQL sorts the values (compareJsonbContainers).

    null < strings < numbers < booleans < arrays < objects; arrays and objects by length, then by
    their content; an empty array at the top is the least of all.

INVARIANTS
  O1  `sort_key(a) < sort_key(b)` exactly if `a < b` in PostgreSQL, and equal exactly if `a = b`.
"""

from collections.abc import Mapping
from decimal import Decimal

from sql.types.json.parser import JsonTree, jsonb_key_order, parse_json_tree

_EXPONENT_ZERO = 1 << 20
_ALL = bytes(range(255, -1, -1))
"""Turns the order of bytes around."""


def jsonb_sort_key(text: str) -> bytes:
    """The key of a jsonb (O1)."""
    return b"\0" if text == "[]" else _key(parse_json_tree(text))


def _key(value: JsonTree) -> bytes:
    match value:
        case None:
            return b"\1"
        case str():
            # No text holds a zero byte.
            return b"\2" + value.encode() + b"\0"
        case bool():
            return b"\4" + bytes([value])
        case Decimal():
            return b"\3" + _number(value)
        case Mapping():
            parts = [
                key.encode() + b"\0" + _key(value[key])
                for key in sorted(value, key=jsonb_key_order)
            ]
            return b"\6" + len(parts).to_bytes(4, "big") + b"".join(parts)
        case _:
            return b"\5" + len(value).to_bytes(4, "big") + b"".join(map(_key, value))


def _number(value: Decimal) -> bytes:
    if not value:
        return b"\1"
    digits = "".join(map(str, value.as_tuple().digits)).rstrip("0").encode()
    size = (value.adjusted() + _EXPONENT_ZERO).to_bytes(4, "big") + digits + b"\0"
    return b"\2" + size if value > 0 else b"\0" + size.translate(_ALL)
