"""Constructors of the errors that sessions raise, in PostgreSQL's wording."""

from sql.errors import SqlError


def failed_transaction() -> SqlError:
    """25P02."""
    return SqlError(
        "25P02",
        "current transaction is aborted, commands ignored until end of transaction block",
    )


def read_only_transaction(command: str) -> SqlError:
    """25006."""
    return SqlError("25006", f"cannot execute {command} in a read-only transaction")


def only_in_block(command: str) -> SqlError:
    """25P01."""
    return SqlError("25P01", f"{command} can only be used in transaction blocks")


def required_before_any_query(command: str) -> SqlError:
    """25001."""
    return SqlError("25001", f"{command} must be called before any query")


def not_in_subtransaction(message: str) -> SqlError:
    """25001."""
    return SqlError("25001", message)


def serializable_with_bounded_staleness() -> SqlError:
    """0A000, as PostgreSQL's hot standby answers: nobody gets less than he asks for."""
    return SqlError(
        "0A000",
        "cannot use serializable mode with bounded staleness",
        hint="You can use REPEATABLE READ instead, or SET consistency = strict before.",
    )


def snapshot_import_not_supported() -> SqlError:
    """0A000: a level without one snapshot for all statements."""
    return SqlError(
        "0A000",
        "a snapshot-importing transaction must have isolation level SERIALIZABLE or"
        " REPEATABLE READ",
    )


def undefined_statement(name: str) -> SqlError:
    """26000."""
    if not name:
        return SqlError("26000", "unnamed prepared statement does not exist")
    return SqlError("26000", f'prepared statement "{name}" does not exist')


def duplicate_statement(name: str) -> SqlError:
    """42P05."""
    return SqlError("42P05", f'prepared statement "{name}" already exists')


def undefined_portal(name: str) -> SqlError:
    """34000."""
    return SqlError("34000", f'portal "{name}" does not exist')


def undefined_cursor(name: str) -> SqlError:
    """34000: CLOSE of a cursor that DECLARE would have made."""
    return SqlError("34000", f'cursor "{name}" does not exist')


def duplicate_portal(name: str) -> SqlError:
    """42P03."""
    return SqlError("42P03", f'cursor "{name}" already exists')


def finished_portal(name: str) -> SqlError:
    """55000."""
    return SqlError("55000", f'portal "{name}" cannot be run')


def multiple_statements_in_parse() -> SqlError:
    """42601: Parse takes one statement."""
    return SqlError("42601", "cannot insert multiple commands into a prepared statement")


def forbidden_in_block(command: str) -> SqlError:
    """25001."""
    return SqlError("25001", f"{command} cannot run inside a transaction block")


def statement_too_long() -> SqlError:
    """57014 of statement_timeout."""
    return SqlError("57014", "canceling statement due to statement timeout")


def lock_too_long() -> SqlError:
    """55P03 of lock_timeout."""
    return SqlError("55P03", "canceling statement due to lock timeout")


def transaction_too_long() -> SqlError:
    """25P04 of transaction_timeout."""
    return SqlError("25P04", "terminating connection due to transaction timeout")


def idle_too_long(*, in_transaction: bool) -> SqlError:
    """25P03, 57P05: time limits of idle sessions."""
    if in_transaction:
        return SqlError("25P03", "terminating connection due to idle-in-transaction timeout")
    return SqlError("57P05", "terminating connection due to idle-session timeout")


def session_internal_error() -> SqlError:
    """XX000: the session ends after a failure that was not foreseen."""
    return SqlError("XX000", "terminating connection after an internal error")


def undefined_database(name: str) -> SqlError:
    """3D000."""
    return SqlError("3D000", f'database "{name}" does not exist')


def too_many_connections() -> SqlError:
    """53300."""
    return SqlError("53300", "sorry, too many clients already")


def reserved_for_superusers() -> SqlError:
    """53300: the last sessions are for superusers."""
    return SqlError(
        "53300",
        "remaining connection slots are reserved for roles with the SUPERUSER attribute",
    )


def reserved_for_members() -> SqlError:
    """53300: those before them are for members of a role, too."""
    return SqlError(
        "53300",
        "remaining connection slots are reserved for roles with privileges of the"
        ' "pg_use_reserved_connections" role',
    )


def too_many_statements(most: int) -> SqlError:
    """53400: of this session."""
    return SqlError(
        "53400",
        "too many prepared statements",
        detail=f"A session may have {most} prepared statements (statements_max).",
        hint="DEALLOCATE those that are not needed any more.",
    )


def too_many_portals(most: int) -> SqlError:
    """53400: of this session."""
    return SqlError(
        "53400",
        "too many portals",
        detail=f"A session may have {most} portals and cursors (portals_max).",
        hint="CLOSE those that are not needed any more.",
    )


def parameter_count(statement: str, *, given: int, wanted: int) -> SqlError:
    """08P01."""
    return SqlError(
        "08P01",
        f"bind message supplies {given} parameters,"
        f' but prepared statement "{statement}" requires {wanted}',
    )
