"""Storage parameters of PostgreSQL that are kept and shown, and that change nothing.

    WITH (fillfactor = 70, autovacuum_enabled = off, toast.autovacuum_enabled = off)

INVARIANTS
  O3  a parameter is kept as it was written, if PostgreSQL accepts its value; else it is 22023.
  O4  those of `toast.` are checked and forgotten: PostgreSQL has them at another relation.

Not here: the parameters that mean something (`storage_options.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from pglast import ast

from sql.errors import SqlError
from sql.parser.syntax import Node, is_a, string_values

_Bounds: TypeAlias = tuple[int, int] | tuple[float, float] | type[bool] | frozenset[str]

CHANGES_NOTHING: Final = "0A000"
"""The SQLSTATE of notices that something is accepted and changes nothing."""

_INT_MAX: Final = (1 << 31) - 1
_SWITCH: Final = frozenset({"auto", "on", "off"})

_OF_VACUUM: Final[Mapping[str, _Bounds]] = {
    "autovacuum_enabled": bool,
    "autovacuum_vacuum_threshold": (0, _INT_MAX),
    "autovacuum_vacuum_max_threshold": (-1, _INT_MAX),
    "autovacuum_vacuum_insert_threshold": (-1, _INT_MAX),
    "autovacuum_vacuum_cost_limit": (1, 10_000),
    "autovacuum_freeze_min_age": (0, 1_000_000_000),
    "autovacuum_freeze_max_age": (100_000, 2_000_000_000),
    "autovacuum_freeze_table_age": (0, 2_000_000_000),
    "autovacuum_multixact_freeze_min_age": (0, 1_000_000_000),
    "autovacuum_multixact_freeze_max_age": (10_000, 2_000_000_000),
    "autovacuum_multixact_freeze_table_age": (0, 2_000_000_000),
    "log_autovacuum_min_duration": (-1, _INT_MAX),
    "autovacuum_vacuum_cost_delay": (0.0, 100.0),
    "autovacuum_vacuum_scale_factor": (0.0, 100.0),
    "autovacuum_vacuum_insert_scale_factor": (0.0, 100.0),
    "vacuum_max_eager_freeze_failure_rate": (0.0, 1.0),
    "vacuum_index_cleanup": _SWITCH,
    "vacuum_truncate": bool,
}
"""Of tables and of their TOAST tables."""

_OF_TABLES: Final[Mapping[str, _Bounds]] = {
    **_OF_VACUUM,
    "fillfactor": (10, 100),
    "autovacuum_analyze_threshold": (0, _INT_MAX),
    "autovacuum_analyze_scale_factor": (0.0, 100.0),
    "toast_tuple_target": (128, 8160),
    "parallel_workers": (0, 1024),
    "user_catalog_table": bool,
}

_OF_INDEXES: Final[Mapping[str, Mapping[str, _Bounds]]] = {
    "btree": {"fillfactor": (10, 100), "deduplicate_items": bool},
    "hash": {"fillfactor": (10, 100)},
    "gist": {"fillfactor": (10, 100), "buffering": _SWITCH},
    "spgist": {"fillfactor": (10, 100)},
    "gin": {"fastupdate": bool, "gin_pending_list_limit": (64, _INT_MAX)},
    "brin": {"pages_per_range": (1, 131_072), "autosummarize": bool},
}

_TRUE: Final = ("on", "yes", "true")
_FALSE: Final = ("off", "no", "false")


def refuse_other_tablespace(name: str | None) -> None:
    """42704, 22023 for a tablespace that no table may be in; there is the default one only."""
    if name in (None, "", "pg_default"):
        return
    if name == "pg_global":
        raise SqlError("22023", "only shared relations can be placed in pg_global tablespace")
    raise SqlError("42704", f'tablespace "{name}" does not exist')


def is_stored_parameter(option: Node) -> bool:
    """Whether it is a parameter of PostgreSQL's tables. Raises 22023 for an unknown namespace."""
    if option.defnamespace not in (None, "toast"):
        message = f'unrecognized parameter namespace "{option.defnamespace}"'
        raise SqlError("22023", message)
    known = _OF_TABLES if option.defnamespace is None else _OF_VACUUM
    if option.defnamespace is not None and option.defname not in known:
        raise SqlError("22023", f'unrecognized parameter "{option.defname}"')
    return option.defname in known


def stored_parameters(options: Sequence[Node], before: Sequence[str] = ()) -> tuple[str, ...]:
    """The texts of a table's parameters, after those of `before` that are not set anew (O3, O4)."""
    return _merged(before, [o for o in options if _checked(o, _OF_TABLES)])


def without_parameters(options: Sequence[Node], before: Sequence[str]) -> tuple[str, ...]:
    """What RESET leaves."""
    names = {option.defname for option in options if option.defnamespace is None}
    return tuple(text for text in before if text.partition("=")[0] not in names)


def index_parameters(
    options: Sequence[Node], method: str, before: Sequence[str] = ()
) -> tuple[str, ...]:
    """The texts of an index's parameters."""
    known = _OF_INDEXES.get(method, {})
    for place, option in enumerate(options):
        if option.defnamespace is not None:
            message = f'unrecognized parameter namespace "{option.defnamespace}"'
            raise SqlError("22023", message)
        if option.defname not in known:
            raise SqlError("22023", f'unrecognized parameter "{option.defname}"')
        if option.defname in [other.defname for other in options[:place]]:
            raise SqlError("22023", f'parameter "{option.defname}" specified more than once')
    return _merged(before, [option for option in options if _checked(option, known)])


def parameter_notice(options: Sequence[Node]) -> str | None:
    """The notice about parameters that change nothing, if there are any."""
    names = [
        option.defname if option.defnamespace is None else f"toast.{option.defname}"
        for option in options
    ]
    if not names:
        return None
    shown = ", ".join(f'"{name}"' for name in names)
    return f"storage parameter {shown} changes nothing here"


def _merged(before: Sequence[str], options: Sequence[Node]) -> tuple[str, ...]:
    left = without_parameters(options, before)
    return (*left, *(f"{option.defname}={_text(option)}" for option in options))


def _checked(option: Node, known: Mapping[str, _Bounds]) -> bool:
    """Raises 22023 (O3); False for a parameter of the TOAST table (O4)."""
    of_toast = option.defnamespace is not None
    _check(option.defname, _text(option), (_OF_VACUUM if of_toast else known)[option.defname])
    return not of_toast


def _text(option: Node) -> str:
    """The value as PostgreSQL keeps it (defGetString)."""
    value = option.arg
    match value:
        case None:
            return "true"
        case ast.Integer():
            return str(value.ival or 0)
        case ast.Float():
            return str(value.fval)
        case ast.Boolean():
            return "true" if value.boolval else "false"
        case ast.TypeName():
            return string_values(value.names)[-1]
        case _ if is_a(value, ast.String):
            return str(value.sval)
        case _:
            message = f'invalid value for parameter "{option.defname}"'
            raise SqlError("22023", message)


def _check(name: str, text: str, bounds: _Bounds) -> None:
    if bounds is bool:
        if not _is_boolean(text):
            raise SqlError("22023", f'invalid value for boolean option "{name}": {text}')
        return
    if isinstance(bounds, frozenset):
        if text.lower() not in bounds and not (name.startswith("vacuum") and _is_boolean(text)):
            detail = 'Valid values are "on", "off", and "auto".'
            raise SqlError(
                "22023", f'invalid value for enum option "{name}": {text}', detail=detail
            )
        return
    assert isinstance(bounds, tuple), "the others have least and greatest values"
    whole = isinstance(bounds[0], int)
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        kind = "integer" if whole else "floating point"
        raise SqlError("22023", f'invalid value for {kind} option "{name}": {text}') from None
    if not bounds[0] <= value <= bounds[1]:
        low, high = bounds if whole else (f"{bounds[0]:f}", f"{bounds[1]:f}")
        detail = f'Valid values are between "{low}" and "{high}".'
        raise SqlError("22023", f'value {text} out of bounds for option "{name}"', detail=detail)


def _is_boolean(text: str) -> bool:
    """As parse_bool(): a beginning that is only one word's will do."""
    folded = text.lower()
    if folded in ("1", "0"):
        return True
    words = [word for word in (*_TRUE, *_FALSE) if folded and word.startswith(folded)]
    return folded != "o" and bool(words)
