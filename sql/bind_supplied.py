"""Parameters that the session supplies: numbered behind the client's, once these are known."""

import dataclasses
from typing import TypeVar

from sql.binding import SUPPLIED_BASE
from sql.functions import Function
from sql.plan import Param

T = TypeVar("T")


def numbered(value: T, own: int) -> T:
    """A bound statement whose supplied parameters follow its `own` ones."""
    return _numbered(value, own)  # type: ignore[return-value] # parts keep their types


def _numbered(value: object, own: int) -> object:
    if isinstance(value, Param):
        if value.index <= SUPPLIED_BASE:
            return value
        return Param(value.index - SUPPLIED_BASE + own, value.type)
    if isinstance(value, tuple):
        made = tuple([_numbered(item, own) for item in value])
        return made if any(a is not b for a, b in zip(made, value, strict=True)) else value
    if not dataclasses.is_dataclass(value) or isinstance(value, type | Function):
        return value
    changed: dict[str, object] = {}
    for field in dataclasses.fields(value):
        if field.init:
            old = getattr(value, field.name)
            new = _numbered(old, own)
            if new is not old:
                changed[field.name] = new
    return dataclasses.replace(value, **changed) if changed else value
