"""Print functions as PostgreSQL does: signatures, results and definitions (ruleutils.c)."""

from typing import Final

from sql.functions.pg_proc import (
    Procedure,
    ProcedureArgument,
    argument_type_text,
    is_ambiguous_function,
)
from sql.types.sql_type import quoted_name


def regproc_text(procedure: Procedure) -> str:
    """The name as regproc shows it: with its schema if the name alone is ambiguous."""
    text = quoted_name(procedure.name)
    return f"pg_catalog.{text}" if is_ambiguous_function(procedure.name) else text


def regprocedure_text(procedure: Procedure) -> str:
    """The function as regprocedure shows it."""
    types = ",".join(argument_type_text(given.type) for given in procedure.inputs)
    return f"{quoted_name(procedure.name)}({types})"


def function_result_text(procedure: Procedure) -> str:
    """pg_get_function_result()."""
    return f"{'SETOF ' if procedure.is_set else ''}{argument_type_text(procedure.result)}"


def function_arguments_text(procedure: Procedure, *, defaults: bool) -> str:
    """pg_get_function_arguments(), or without defaults pg_get_function_identity_arguments()."""
    texts = [_argument_text(given, defaults=defaults) for given in procedure.arguments]
    if "direct" not in procedure.numbers:
        return ", ".join(texts)
    direct = int(procedure.numbers["direct"])
    # What repeats stands for the keys of ORDER BY, too.
    keys = texts[direct:] or texts[-1:]
    return f"{', '.join(texts[:direct])} ORDER BY {', '.join(keys)}".lstrip()


_SHOWN_MODES: Final = {"o": "OUT ", "b": "INOUT ", "v": "VARIADIC "}


def _argument_text(given: ProcedureArgument, *, defaults: bool) -> str:
    name = f"{quoted_name(given.name)} " if given.name else ""
    text = f"{_SHOWN_MODES.get(given.mode, '')}{name}{argument_type_text(given.type)}"
    if defaults and given.default is not None:
        return f"{text} DEFAULT {given.default}"
    return text


def function_definition(procedure: Procedure) -> str:
    """pg_get_functiondef() of a function that is no aggregate."""
    arguments = function_arguments_text(procedure, defaults=True)
    library = f"'{procedure.library}', " if procedure.library else ""
    return "\n".join(
        [
            f"CREATE OR REPLACE FUNCTION pg_catalog.{quoted_name(procedure.name)}({arguments})",
            f" RETURNS {function_result_text(procedure)}",
            f" LANGUAGE {procedure.language}",
            *filter(None, [_options(procedure)]),
            procedure.body or f"AS {library}$function${procedure.source}$function$",
            "",
        ]
    )


_VOLATILITIES: Final = {"i": "IMMUTABLE", "s": "STABLE", "v": ""}
_PARALLEL: Final = {"s": "PARALLEL SAFE", "r": "PARALLEL RESTRICTED", "u": ""}
_ROWS: Final = 1000.0


def _options(procedure: Procedure) -> str:
    """What is not as CREATE FUNCTION has it if nothing is said."""
    usual_cost = 100.0 if procedure.language == "sql" else 1.0
    told = [
        "WINDOW" if procedure.kind == "w" else "",
        _VOLATILITIES[procedure.volatility],
        _PARALLEL[procedure.parallel],
        "" if "nonstrict" in procedure.words else "STRICT",
        "LEAKPROOF" if "leakproof" in procedure.words else "",
        "" if procedure.cost == usual_cost else f"COST {procedure.cost:g}",
        f"ROWS {procedure.rows:g}" if procedure.is_set and procedure.rows != _ROWS else "",
        "" if procedure.support == "-" else f"SUPPORT {procedure.support}",
    ]
    return "".join(f" {word}" for word in told if word)
