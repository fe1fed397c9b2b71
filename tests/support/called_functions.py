"""Record which functions of the evaluator are called with long values, and in which thread."""

import threading
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from compute.reference.registry import FUNCTIONS, Function, Maker
from sql.functions.table import function_by_id
from sql.plan.nodes import Call

LONG_BYTES = 20_000

_PASSING = frozenset({"assign", "narrow", "=", "<>", "<", "<=", ">", ">="})


def _size(value: Any) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    return sum(map(_size, value)) if isinstance(value, tuple) else 0


class CalledFunctions:
    """`here`: long calls in the thread that has made this; `elsewhere`: all others."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._thread = threading.get_ident()
        self.here: list[str] = []
        self.elsewhere: list[str] = []
        makers: Mapping[str, Maker] = FUNCTIONS.makers()
        made = MappingProxyType({id_: self._maker(id_, maker) for id_, maker in makers.items()})
        monkeypatch.setattr(FUNCTIONS, "_makers", made)

    def _maker(self, id_: str, maker: Maker) -> Maker:
        if function_by_id(id_).name in _PASSING:
            return maker

        def make(call: Call) -> Function:
            function = maker(call)

            def called(*args: Any) -> Any:
                found = function(*args)
                if isinstance(found, Iterator):
                    return found
                if _size(args) + _size(found) > LONG_BYTES:
                    is_here = threading.get_ident() == self._thread
                    (self.here if is_here else self.elsewhere).append(id_)
                return found

            return called

        return make
