"""Map each row of the function table to its Python implementation: the registry, filled.

INVARIANTS
  W1  every function, operator and cast of `sql/data/` that a plan can call is registered;
      `tests/postgres/functions/test_python_functions.py` says so. Aggregates:
      `reference/aggregates.py`, windows: `reference/windows.py`, sets:
      `reference/set_returning.py`.

Importing this module imports all modules that register functions.
"""

import sys
from collections.abc import Mapping
from typing import Final

from compute.reference.functions import (
    arrays,
    bytea,
    comparisons,
    date_trunc,
    datetime,
    enums,
    floats,
    generate_series,
    hashes,
    intervals,
    json,
    json_builders,
    json_modification,
    json_records,
    json_sets,
    jsonpath,
    mathematics,
    number_format,
    numbers,
    powers,
    procedures,
    reg_types,
    regexp,
    sql_json,
    strings,
    styled_text,
    system,
    text,
    time,
    to_number,
)
from compute.reference.registry import FUNCTIONS, Maker

REGISTERING: Final = (
    arrays, bytea, comparisons, date_trunc, datetime, enums, floats, generate_series, hashes,
    intervals, json, json_builders, json_modification, json_records, json_sets, jsonpath,
    mathematics, number_format, numbers, powers, procedures, reg_types, regexp, sql_json, strings,
    styled_text, system, text, time, to_number,
)  # fmt: skip
"""The modules that register functions."""

DIGITS_MAX: Final = 100_000
"""Of a number that is read from text. More: a longer stall. Fewer: numbers are refused before it is
known what is wrong with them."""

sys.set_int_max_str_digits(DIGITS_MAX)


def implementations() -> Mapping[str, Maker]:
    """The implementation of every function, operator and cast, by id."""
    return FUNCTIONS.makers()
