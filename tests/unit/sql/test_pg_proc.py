"""`sql/data/pg_proc.txt` has what the function table has; `postgresql_functions.py` writes it."""

from sql.functions.pg_proc import procedures
from sql.functions.postgresql_names import postgresql_names
from sql.functions.table import FunctionKind, all_functions


def test_every_function_of_the_table_is_listed() -> None:
    names = {
        row.name
        for row in all_functions()
        if row.kind not in (FunctionKind.CAST, FunctionKind.OPERATOR) and not row.internal
    }
    callable_ = {one.name for one in procedures() if not one.refused}
    missing = (names & postgresql_names().functions.keys()) - callable_
    assert not missing, "python -m tests.unit.sql.postgresql_functions"


def test_rows_of_the_table_are_listed_with_their_types() -> None:
    known = {
        (one.name, tuple(given.type for given in one.inputs[:end]))
        for one in procedures()
        if not one.refused
        for end in range(len(one.inputs) + 1)
        if all(given.default is not None for given in one.inputs[end:])
    }
    theirs = postgresql_names().functions
    missing = [
        row.id
        for row in all_functions()
        if row.kind in (FunctionKind.FUNCTION, FunctionKind.SET, FunctionKind.WINDOW)
        and not row.internal
        and not row.variadic
        and row.args in theirs.get(row.name, ())
        and (row.name, row.args) not in known
    ]
    assert not missing, "python -m tests.unit.sql.postgresql_functions"


def test_no_oid_twice() -> None:
    oids = [one.oid for one in procedures()]
    assert len(oids) == len(set(oids))
