"""Rows of pg_proc, pg_cast, pg_language, routines and parameters: PostgreSQL's functions.

The functions are those of `sql/functions/pg_proc.py`. A row names the columns it has (W2 of
`pgcatalog/relations.py`).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from coordinator.pgcatalog.information_schema import yes_or_no
from coordinator.pgcatalog.named_row import NamedRow
from coordinator.pgcatalog.recorded import recorded_casts
from sql.binder.state import BindContext
from sql.catalog.acl import OWNER
from sql.catalog.extensions import PLPGSQL_FUNCTIONS, PLPGSQL_LANGUAGE_OID
from sql.catalog.oids import cast_oid, schema_oid
from sql.catalog.system_catalogs import PG_CATALOG
from sql.functions.pg_proc import (
    Procedure,
    argument_type_oid,
    argument_type_text,
    function_oid,
    procedures,
)
from sql.types.sql_type import SqlType, Value

_LANGUAGES: Final = {
    "internal": (12, ("-", "-", "fmgr_internal_validator")),
    "c": (13, ("-", "-", "fmgr_c_validator")),
    "sql": (14, ("-", "-", "fmgr_sql_validator")),
    "plpgsql": (PLPGSQL_LANGUAGE_OID, PLPGSQL_FUNCTIONS),
}
"""The oid of each language, its handlers of calls and of DO, and its validator."""


def _pg_proc(_context: BindContext) -> Iterator[NamedRow]:
    for procedure in procedures():
        inputs = procedure.inputs
        defaults = [given.default for given in inputs if given.default is not None]
        yield _arguments(procedure) | {
            "oid": procedure.oid,
            "proname": procedure.name,
            "pronamespace": schema_oid(PG_CATALOG),
            "proowner": OWNER,
            "prolang": _LANGUAGES[procedure.language][0],
            "procost": procedure.cost,
            "prorows": procedure.rows,
            "prosupport": function_oid(procedure.support),
            "provariadic": 0
            if procedure.repeated is None
            else argument_type_oid(procedure.repeated),
            "prokind": procedure.kind,
            "proleakproof": "leakproof" in procedure.words,
            "proisstrict": "nonstrict" not in procedure.words,
            "proretset": procedure.is_set,
            "provolatile": procedure.volatility,
            "proparallel": procedure.parallel,
            "pronargs": len(inputs),
            "pronargdefaults": len(defaults),
            "prorettype": argument_type_oid(procedure.result),
            "proargtypes": tuple(argument_type_oid(given.type) for given in inputs),
            "proargdefaults": ", ".join(defaults) or None,
            "prosrc": procedure.source,
            "probin": procedure.library,
        }


def _arguments(procedure: Procedure) -> dict[str, Value]:
    """What is NULL where a function has nothing but plain arguments without names."""
    given: dict[str, Value] = {}
    if procedure.has_modes:
        given["proallargtypes"] = tuple(argument_type_oid(one.type) for one in procedure.arguments)
        given["proargmodes"] = tuple(one.mode for one in procedure.arguments)
    if any(one.name for one in procedure.arguments):
        given["proargnames"] = tuple(one.name for one in procedure.arguments)
    return given


def _pg_cast(context: BindContext) -> Iterator[NamedRow]:
    yield from recorded_casts(context)
    for enum in context.catalog.enums():
        for text, outward, allowed in enum.casts:
            source, target = (enum.oid, SqlType(text).oid)[:: 1 if outward else -1]
            yield {
                "oid": cast_oid(enum.oid, text, outward=outward),
                "castsource": source,
                "casttarget": target,
                "castfunc": 0,
                "castcontext": allowed,
                "castmethod": "i",
            }


def _pg_language(_context: BindContext) -> Iterator[NamedRow]:
    for name, (oid, functions) in _LANGUAGES.items():
        call, inline, validator = map(function_oid, functions)
        yield {
            "oid": oid,
            "lanname": name,
            "lanowner": OWNER,
            "lanispl": name == "plpgsql",
            "lanpltrusted": name in ("sql", "plpgsql"),
            "lanplcallfoid": call,
            "laninline": inline,
            "lanvalidator": validator,
        }


# --- information_schema ------------------------------------------------------------------------

_KINDS: Final = {"f": "FUNCTION"}
_PASSED: Final = {"i": "IN", "v": "IN", "b": "INOUT", "o": "OUT", "t": "OUT"}
_NAME_BYTES_MAX: Final = 63
_VECTORS: Final = ("int2vector", "oidvector")


def _specific(context: BindContext, procedure: Procedure) -> dict[str, Value]:
    """What tells a function from its namesakes (nameconcatoid)."""
    end = f"_{procedure.oid}"
    return {
        "specific_catalog": context.database,
        "specific_schema": PG_CATALOG,
        "specific_name": procedure.name[: _NAME_BYTES_MAX - len(end)] + end,
    }


def _data_type(type_name: str) -> str:
    is_array = type_name.startswith("_") or type_name in _VECTORS
    return "ARRAY" if is_array else argument_type_text(type_name)


def _routines(context: BindContext) -> Iterator[NamedRow]:
    for procedure in procedures():
        yield _specific(context, procedure) | {
            "routine_catalog": context.database,
            "routine_schema": PG_CATALOG,
            "routine_name": procedure.name,
            "routine_type": _KINDS.get(procedure.kind),
            "data_type": _data_type(procedure.result),
            "type_udt_catalog": context.database,
            "type_udt_schema": PG_CATALOG,
            "type_udt_name": procedure.result,
            "dtd_identifier": "0",
            "routine_body": "SQL" if procedure.language == "sql" else "EXTERNAL",
            "routine_definition": procedure.source,
            "external_language": procedure.language.upper(),
            "parameter_style": "GENERAL",
            "is_deterministic": yes_or_no(procedure.volatility == "i"),
            "sql_data_access": "MODIFIES",
            "is_null_call": yes_or_no("nonstrict" not in procedure.words),
            "schema_level_routine": "YES",
            "max_dynamic_result_sets": 0,
            "security_type": "INVOKER",
            "as_locator": "NO",
            "is_udt_dependent": "NO",
        }


def _parameters(context: BindContext) -> Iterator[NamedRow]:
    for procedure in procedures():
        specific = _specific(context, procedure)
        for place, given in enumerate(procedure.arguments, 1):
            yield specific | {
                "ordinal_position": place,
                "parameter_mode": _PASSED[given.mode],
                "is_result": "NO",
                "as_locator": "NO",
                "parameter_name": given.name or None,
                "data_type": _data_type(given.type),
                "udt_catalog": context.database,
                "udt_schema": PG_CATALOG,
                "udt_name": given.type,
                "dtd_identifier": str(place),
                "parameter_default": given.default,
            }


FUNCTION_ROWS: Final[Mapping[str, Callable[[BindContext], Iterator[NamedRow]]]] = {
    "pg_cast": _pg_cast,
    "pg_language": _pg_language,
    "pg_proc": _pg_proc,
}

FUNCTION_INFORMATION_ROWS: Final[Mapping[str, Callable[[BindContext], Iterator[NamedRow]]]] = {
    "parameters": _parameters,
    "routines": _routines,
}
