"""The functions of the data files that came family by family: which Python function is which row.

Not here: operators and functions by rules over their types (`function_table.py`).
"""

from typing import Final

from compute.reference.functions.bytea import BYTE_FUNCTIONS, BYTE_NAMES
from compute.reference.functions.enums import ENUM_MAKERS
from compute.reference.functions.intervals import FORMAT_FUNCTIONS, FORMAT_NAMES
from compute.reference.functions.jsonpath import JSON_PATHS, PATH_NAMES
from compute.reference.functions.mathematics import MATHEMATICS, MATHEMATICS_MAKERS
from compute.reference.functions.numbers import Function, Maker, numeric_result, plain
from compute.reference.functions.powers import POWERS
from compute.reference.functions.procedures import PROCEDURES
from compute.reference.functions.reg_types import REGISTERED
from compute.reference.functions.regexp import REGEX_FUNCTIONS, REGEX_NAMES
from compute.reference.functions.strings import STRING_FUNCTIONS, STRING_MAKERS, STRING_NAMES
from compute.reference.functions.system import SYSTEM, SYSTEM_MAKERS
from sql.functions.table import Function as Row
from sql.functions.table import FunctionKind

_FUNCTIONS: Final[dict[str, Function]] = {
    **REGEX_FUNCTIONS,
    **STRING_FUNCTIONS,
    **BYTE_FUNCTIONS,
    **FORMAT_FUNCTIONS,
    **MATHEMATICS,
    **PROCEDURES,
    **REGISTERED,
    **SYSTEM,
    **JSON_PATHS,
}
_NAMES: Final[dict[str, Function]] = {
    **PATH_NAMES,
    **REGEX_NAMES,
    **STRING_NAMES,
    **BYTE_NAMES,
    **FORMAT_NAMES,
}
_MAKERS: Final[dict[str, Maker]] = {
    **STRING_MAKERS,
    **MATHEMATICS_MAKERS,
    **POWERS,
    **ENUM_MAKERS,
    **SYSTEM_MAKERS,
}


def family_function(row: Row) -> Maker | None:
    """What computes the row: found by its id or, if it is a function, by its name."""
    made = _MAKERS.get(row.id)
    if made is not None:
        return made
    function = _FUNCTIONS.get(row.id)
    if function is None and row.kind is FunctionKind.FUNCTION:
        function = _NAMES.get(row.name)
    if function is None:
        return None
    return numeric_result(function) if row.result == "numeric" else plain(function)
