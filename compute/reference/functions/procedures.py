"""Catalog functions that describe functions: pg_get_functiondef() .. (ruleutils.c, regproc.c)."""

from compute.reference.registry import implements
from sql.errors import SqlError
from sql.functions.pg_proc import by_oid
from sql.functions.pg_proc_texts import (
    arguments_text,
    definition,
    result_text,
    shown_name,
    signature,
)


@implements("pg_get_function_result(oid)")
def result(oid: int) -> str | None:
    """pg_get_function_result()."""
    found = by_oid().get(oid)
    return None if found is None else result_text(found)


@implements("pg_get_function_arguments(oid)")
def arguments(oid: int) -> str | None:
    """pg_get_function_arguments()."""
    found = by_oid().get(oid)
    return None if found is None else arguments_text(found, defaults=True)


@implements("pg_get_function_identity_arguments(oid)")
def identity(oid: int) -> str | None:
    """pg_get_function_identity_arguments()."""
    found = by_oid().get(oid)
    return None if found is None else arguments_text(found, defaults=False)


@implements("pg_get_function_arg_default(oid,int4)")
def default(oid: int, place: int) -> str | None:
    """pg_get_function_arg_default()."""
    found = by_oid().get(oid)
    if found is None or not 0 < place <= len(found.arguments):
        return None
    return found.arguments[place - 1].default


@implements("pg_get_functiondef(oid)")
def defined(oid: int) -> str | None:
    """pg_get_functiondef(): not of an aggregate."""
    found = by_oid().get(oid)
    if found is None:
        return None
    if found.kind == "a":
        raise SqlError("42809", f'"{found.name}" is an aggregate function')
    return definition(found)


@implements("pg_get_function_sqlbody(oid)")
def body(oid: int) -> str | None:
    """pg_get_function_sqlbody()."""
    found = by_oid().get(oid)
    return None if found is None else found.body


@implements("pg_function_is_visible(oid)")
def is_visible(oid: int) -> bool | None:
    """pg_function_is_visible(): true, as no user-defined function can hide another one."""
    return True if oid in by_oid() else None


@implements("meridian_function_name(oid)")
def name(oid: int) -> str:
    """The text of a regproc."""
    found = by_oid().get(oid)
    if found is None:
        return str(oid) if oid else "-"
    return shown_name(found)


@implements("meridian_function_signature(oid)")
def called(oid: int) -> str:
    """The text of a regprocedure."""
    found = by_oid().get(oid)
    if found is None:
        return str(oid) if oid else "-"
    return signature(found)
