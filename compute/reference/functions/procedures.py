"""Catalog functions that describe functions: pg_get_functiondef() .. (ruleutils.c, regproc.c)."""

from typing import Final

from compute.reference.functions.numbers import Function
from sql.errors import SqlError
from sql.functions.pg_proc import by_oid
from sql.functions.pg_proc_texts import (
    arguments_text,
    definition,
    result_text,
    shown_name,
    signature,
)


def result(oid: int) -> str | None:
    """pg_get_function_result()."""
    found = by_oid().get(oid)
    return None if found is None else result_text(found)


def arguments(oid: int) -> str | None:
    """pg_get_function_arguments()."""
    found = by_oid().get(oid)
    return None if found is None else arguments_text(found, defaults=True)


def identity(oid: int) -> str | None:
    """pg_get_function_identity_arguments()."""
    found = by_oid().get(oid)
    return None if found is None else arguments_text(found, defaults=False)


def default(oid: int, place: int) -> str | None:
    """pg_get_function_arg_default()."""
    found = by_oid().get(oid)
    if found is None or not 0 < place <= len(found.arguments):
        return None
    return found.arguments[place - 1].default


def defined(oid: int) -> str | None:
    """pg_get_functiondef(): not of an aggregate."""
    found = by_oid().get(oid)
    if found is None:
        return None
    if found.kind == "a":
        raise SqlError("42809", f'"{found.name}" is an aggregate function')
    return definition(found)


def body(oid: int) -> str | None:
    """pg_get_function_sqlbody()."""
    found = by_oid().get(oid)
    return None if found is None else found.body


def is_visible(oid: int) -> bool | None:
    """pg_function_is_visible(): true, as no user-defined function can hide another one."""
    return True if oid in by_oid() else None


def name(oid: int) -> str:
    """The text of a regproc."""
    found = by_oid().get(oid)
    if found is None:
        return str(oid) if oid else "-"
    return shown_name(found)


def called(oid: int) -> str:
    """The text of a regprocedure."""
    found = by_oid().get(oid)
    if found is None:
        return str(oid) if oid else "-"
    return signature(found)


PROCEDURES: Final[dict[str, Function]] = {
    "meridian_function_name(oid)": name,
    "meridian_function_signature(oid)": called,
    "pg_function_is_visible(oid)": is_visible,
    "pg_get_function_arg_default(oid,int4)": default,
    "pg_get_function_arguments(oid)": arguments,
    "pg_get_function_identity_arguments(oid)": identity,
    "pg_get_function_result(oid)": result,
    "pg_get_function_sqlbody(oid)": body,
    "pg_get_functiondef(oid)": defined,
}
