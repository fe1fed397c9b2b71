"""Session statements: BEGIN, COMMIT, SAVEPOINT, SET, RESET, SHOW, DISCARD, LISTEN and the like."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pglast import ast
from pglast.enums import DiscardMode, TransactionStmtKind, VariableSetKind

from sql.binder.state import Binding
from sql.errors import SqlError, not_supported
from sql.parser.syntax import Node, is_a, offset_to_position
from sql.parser.type_names import resolve_type_name
from sql.statements.session import (
    Discard,
    Listen,
    NotificationStatement,
    Notify,
    ResetVariable,
    SetVariable,
    ShowVariable,
    TransactionControl,
    TransactionVerb,
    Unlisten,
)
from sql.types.styled_output import styled_text
from sql.types.text_input import apply_typmod, parse_text

_VERBS: Final = {
    TransactionStmtKind.TRANS_STMT_BEGIN: TransactionVerb.BEGIN,
    TransactionStmtKind.TRANS_STMT_START: TransactionVerb.START,
    TransactionStmtKind.TRANS_STMT_COMMIT: TransactionVerb.COMMIT,
    TransactionStmtKind.TRANS_STMT_ROLLBACK: TransactionVerb.ROLLBACK,
    TransactionStmtKind.TRANS_STMT_SAVEPOINT: TransactionVerb.SAVEPOINT,
    TransactionStmtKind.TRANS_STMT_RELEASE: TransactionVerb.RELEASE,
    TransactionStmtKind.TRANS_STMT_ROLLBACK_TO: TransactionVerb.ROLLBACK_TO,
}
_REFUSED: Final = {
    TransactionStmtKind.TRANS_STMT_PREPARE: "PREPARE TRANSACTION",
    TransactionStmtKind.TRANS_STMT_COMMIT_PREPARED: "COMMIT PREPARED",
    TransactionStmtKind.TRANS_STMT_ROLLBACK_PREPARED: "ROLLBACK PREPARED",
}
_NAME_LISTS: Final = frozenset({
    "local_preload_libraries", "search_path", "session_preload_libraries", "temp_tablespaces",
})  # fmt: skip
_LISTS: Final = _NAME_LISTS | {
    "createrole_self_grant", "datestyle", "debug_io_direct", "listen_addresses", "log_connections",
    "log_destination", "output_plugin_libraries", "restrict_nonsystem_relation_kind",
    "shared_preload_libraries", "synchronized_standby_slots", "synchronous_standby_names",
    "unix_socket_directories", "wal_consistency_checking",
}  # fmt: skip
"""Settings that take several values (GUC_LIST_INPUT); those of names are quoted."""


def transaction_statement(node: Node) -> TransactionControl:
    """BEGIN, COMMIT, ROLLBACK with their modes; savepoints."""
    verb = _VERBS.get(node.kind)
    if verb is None:
        raise not_supported(_REFUSED[node.kind], offset_to_position(node.location))
    isolation, read_only, deferrable = _modes(node.options or ())
    chain = bool(node.chain)
    return TransactionControl(verb, isolation, read_only, deferrable, chain, node.savepoint_name)


def _modes(options: Sequence[Node]) -> tuple[str | None, bool | None, bool | None]:
    isolation: str | None = None
    read_only: bool | None = None
    deferrable: bool | None = None
    for option in options:
        value = option.arg.val
        match option.defname:
            case "transaction_isolation":
                isolation = value.sval
            case "transaction_read_only":
                read_only = bool(value.ival)
            case _:
                deferrable = bool(value.ival)
    return isolation, read_only, deferrable


def set_variable(binding: Binding, node: Node) -> SetVariable | ResetVariable | TransactionControl:
    """SET in all its forms, and RESET."""
    name: str = (node.name or "").lower()
    match node.kind:
        case VariableSetKind.VAR_RESET_ALL:
            return ResetVariable("all")
        case VariableSetKind.VAR_RESET:
            return ResetVariable(name)
        case VariableSetKind.VAR_SET_DEFAULT:
            return SetVariable(name, None, local=bool(node.is_local))
        case VariableSetKind.VAR_SET_VALUE:
            value = flattened_values(binding, name, node.args)
            return SetVariable(name, value, local=bool(node.is_local))
        case VariableSetKind.VAR_SET_MULTI:
            return _set_multi(node)
        case _:
            raise not_supported("SET FROM CURRENT", None)


def flattened_values(binding: Binding, name: str, args: Sequence[Node]) -> str:
    """The values as one text, lists joined as PostgreSQL does (flatten_set_variable_args)."""
    if len(args) > 1 and name not in _LISTS:
        raise SqlError("22023", f"SET {name} takes only one argument")
    parts = [_argument(binding, name, arg) for arg in args]
    return ", ".join(parts)


def _argument(binding: Binding, name: str, node: Node) -> str:
    if is_a(node, ast.TypeCast):
        return f"INTERVAL '{_interval(binding, node)}'"
    if is_a(node, ast.ParamRef):
        # The parser is pg_query's, which lets a parameter stand where PostgreSQL's refuses it.
        raise SqlError(
            "42601", f'syntax error at or near "${node.number}"', offset_to_position(node.location)
        )
    value: Node = node.val
    match node.val:
        case ast.Integer():
            return str(value.ival or 0)
        case ast.Float():
            return str(value.fval)
        case ast.Boolean():
            return "true" if value.boolval else "false"
        case _:
            text: str = value.sval
            return _quoted(text) if name in _NAME_LISTS else text


def _interval(binding: Binding, node: Node) -> str:
    """The text of SET TIME ZONE INTERVAL '..', with its fields and digits applied."""
    type_, styles = resolve_type_name(node.typeName), binding.context.styles
    value = parse_text("interval", node.arg.val.sval, styles=styles, typmod=type_.typmod)
    fitted = apply_typmod(value, type_, explicit=False)
    return styled_text(fitted, type_, styles, timezone=binding.context.timezone)


def _quoted(name: str) -> str:
    """An identifier as a list of identifiers shows it."""
    plain = name.isidentifier() and name == name.lower() and name.isascii()
    return name if plain else '"' + name.replace('"', '""') + '"'


def _set_multi(node: Node) -> SetVariable | TransactionControl:
    """SET TRANSACTION and SET SESSION CHARACTERISTICS."""
    if node.name == "TRANSACTION SNAPSHOT":
        return TransactionControl(TransactionVerb.SET, snapshot=node.args[0].val.sval)
    isolation, read_only, deferrable = _modes(node.args or ())
    if node.name == "TRANSACTION":
        return TransactionControl(TransactionVerb.SET, isolation, read_only, deferrable)
    settings: list[SetVariable] = []
    if isolation is not None:
        settings.append(SetVariable("default_transaction_isolation", isolation))
    if read_only is not None:
        settings.append(SetVariable("default_transaction_read_only", "on" if read_only else "off"))
    if deferrable is not None:
        word = "on" if deferrable else "off"
        settings.append(SetVariable("default_transaction_deferrable", word))
    first, *more = settings
    return replace(first, also=tuple(more))


def show_variable(node: Node) -> ShowVariable:
    """SHOW name."""
    return ShowVariable(node.name.lower())


def discard_statement(node: Node) -> Discard:
    """DISCARD, DEALLOCATE, CLOSE ALL."""
    statement: Node = node
    match statement:
        case ast.DiscardStmt():
            words = {
                DiscardMode.DISCARD_ALL: "all",
                DiscardMode.DISCARD_PLANS: "plans",
                DiscardMode.DISCARD_SEQUENCES: "sequences",
                DiscardMode.DISCARD_TEMP: "temp",
            }
            return Discard(words[node.target])
        case ast.DeallocateStmt():
            if node.name is None:
                return Discard("deallocate all")
            return Discard("deallocate", node.name)
        case _:
            if node.portalname is None:
                return Discard("close all")
            return Discard("close", node.portalname)


def notification_statement(node: Node) -> NotificationStatement:
    """LISTEN, UNLISTEN, NOTIFY."""
    statement: Node = node
    match statement:
        case ast.ListenStmt():
            return Listen(node.conditionname)
        case ast.UnlistenStmt():
            return Unlisten(node.conditionname)
        case _:
            return Notify(node.conditionname, node.payload or "")
