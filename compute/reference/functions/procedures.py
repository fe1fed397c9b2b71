"""Catalog functions that describe functions: pg_get_functiondef() .. (ruleutils.c, regproc.c)."""

from compute.reference.registry import implements
from sql.errors import SqlError
from sql.functions.pg_proc import procedures_by_oid
from sql.functions.pg_proc_texts import (
    function_arguments_text,
    function_definition,
    function_result_text,
    regproc_text,
    regprocedure_text,
)


@implements("pg_get_function_result(oid)")
def pg_get_function_result(oid: int) -> str | None:
    """The result type of a function, as PostgreSQL writes it."""
    found = procedures_by_oid().get(oid)
    return None if found is None else function_result_text(found)


@implements("pg_get_function_arguments(oid)")
def pg_get_function_arguments(oid: int) -> str | None:
    """The arguments of a function, as PostgreSQL writes them."""
    found = procedures_by_oid().get(oid)
    return None if found is None else function_arguments_text(found, defaults=True)


@implements("pg_get_function_identity_arguments(oid)")
def function_identity_text(oid: int) -> str | None:
    """pg_get_function_identity_arguments()."""
    found = procedures_by_oid().get(oid)
    return None if found is None else function_arguments_text(found, defaults=False)


@implements("pg_get_function_arg_default(oid,int4)")
def argument_default_text(oid: int, place: int) -> str | None:
    """pg_get_function_arg_default()."""
    found = procedures_by_oid().get(oid)
    if found is None or not 0 < place <= len(found.arguments):
        return None
    return found.arguments[place - 1].default


@implements("pg_get_functiondef(oid)")
def function_definition_text(oid: int) -> str | None:
    """pg_get_functiondef(): not of an aggregate."""
    found = procedures_by_oid().get(oid)
    if found is None:
        return None
    if found.kind == "a":
        raise SqlError("42809", f'"{found.name}" is an aggregate function')
    return function_definition(found)


@implements("pg_get_function_sqlbody(oid)")
def function_body_text(oid: int) -> str | None:
    """pg_get_function_sqlbody()."""
    found = procedures_by_oid().get(oid)
    return None if found is None else found.body


@implements("pg_function_is_visible(oid)")
def is_function_visible(oid: int) -> bool | None:
    """pg_function_is_visible(): true, as no user-defined function can hide another one."""
    return True if oid in procedures_by_oid() else None


@implements("meridian_function_name(oid)")
def regproc_name(oid: int) -> str:
    """The text of a regproc."""
    found = procedures_by_oid().get(oid)
    if found is None:
        return str(oid) if oid else "-"
    return regproc_text(found)


@implements("meridian_function_signature(oid)")
def regprocedure_name(oid: int) -> str:
    """The text of a regprocedure."""
    found = procedures_by_oid().get(oid)
    if found is None:
        return str(oid) if oid else "-"
    return regprocedure_text(found)
