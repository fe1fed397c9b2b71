"""SqlError and its constructors: failures that clients see, with PostgreSQL's SQLSTATE and wording.

For failures that the client or the moment causes; bugs raise other exceptions. Made by named
constructors only. `position` counts characters of the statement's text from 1. Messages: lower
case, no full stop, identifiers quoted; detail and hint are sentences.
"""

from dataclasses import dataclass, replace


@dataclass(slots=True)
class SqlError(Exception):
    """A failure with a SQLSTATE that a client should see."""

    sqlstate: str
    message: str
    position: int | None = None
    detail: str | None = None
    hint: str | None = None
    schema: str | None = None
    table: str | None = None
    column: str | None = None
    constraint: str | None = None
    context: str | None = None
    datatype: str | None = None
    routine: str | None = None
    """PostgreSQL's C function, where drivers tell errors of one SQLSTATE apart by it."""

    def __post_init__(self) -> None:
        Exception.__init__(self, self.message)

    def at(self, position: int | None) -> "SqlError":
        """The same error with a position, if it has none yet."""
        return self if self.position is not None else replace(self, position=position)


class OutOfEngineRange(SqlError):
    """A value that PostgreSQL can hold and our engines cannot. Code that tests whether input is
    valid, or handles invalid input, must not treat it as invalid.
    """


def out_of_engine_range(
    sqlstate: str, message: str, *, detail: str | None = None, hint: str | None = None
) -> SqlError:
    """22003 or 22008, worded as PostgreSQL words it for values beyond its own range."""
    return OutOfEngineRange(sqlstate, message, detail=detail, hint=hint)


def syntax_error(message: str, position: int | None = None) -> SqlError:
    """42601; the parser's own words."""
    return SqlError("42601", message, position)


def not_supported(what: str, position: int | None = None, *, hint: str | None = None) -> SqlError:
    """0A000: valid PostgreSQL that Meridian does not do."""
    return SqlError("0A000", f"{what} is not supported", position, hint=hint)


def undefined_table(name: str, position: int | None = None) -> SqlError:
    """42P01."""
    return SqlError("42P01", f'relation "{name}" does not exist', position)


def undefined_column(
    name: str,
    position: int | None = None,
    *,
    detail: str | None = None,
    hint: str | None = None,
) -> SqlError:
    """42703; `name` already carries its quotes or its qualifier as PostgreSQL writes it."""
    message = f"column {name} does not exist"
    return SqlError("42703", message, position, detail=detail, hint=hint)


def undefined_function(
    signature: str,
    position: int | None = None,
    *,
    operator: bool = False,
    prefix: bool = False,
) -> SqlError:
    """42883; `signature` like `foo(integer)`, `text + integer` or, `prefix`, `- text`."""
    if operator:
        hint = (
            "No operator matches the given name and argument types. "
            "You might need to add explicit type casts."
        )
        if prefix:
            hint = (
                "No operator matches the given name and argument type. "
                "You might need to add an explicit type cast."
            )
        return SqlError("42883", f"operator does not exist: {signature}", position, hint=hint)
    hint = (
        "No function matches the given name and argument types. "
        "You might need to add explicit type casts."
    )
    return SqlError("42883", f"function {signature} does not exist", position, hint=hint)


def ambiguous_function(
    signature: str, position: int | None = None, *, operator: bool = False
) -> SqlError:
    """42725: several overloads fit equally well."""
    kind = "operator" if operator else "function"
    message = (
        f"operator is not unique: {signature}"
        if operator
        else (f"function {signature} is not unique")
    )
    hint = f"Could not choose a best candidate {kind}. You might need to add explicit type casts."
    return SqlError("42725", message, position, hint=hint)


def datatype_mismatch(
    message: str, position: int | None = None, *, hint: str | None = None
) -> SqlError:
    """42804: a type that does not fit where it is used."""
    return SqlError("42804", message, position, hint=hint)


def grouping_error(message: str, position: int | None = None) -> SqlError:
    """42803: aggregates and grouping."""
    return SqlError("42803", message, position)


def duplicate_table(name: str) -> SqlError:
    """42P07."""
    return SqlError("42P07", f'relation "{name}" already exists')


def duplicate_constraint(name: str, table: str) -> SqlError:
    """42710."""
    return SqlError("42710", f'constraint "{name}" for relation "{table}" already exists')


def undefined_schema(name: str, position: int | None = None) -> SqlError:
    """3F000."""
    return SqlError("3F000", f'schema "{name}" does not exist', position)


def statement_too_complex(hint: str = "Write the statement with less nesting.") -> SqlError:
    """54001: nested too deeply."""
    return SqlError("54001", "stack depth limit exceeded", hint=hint)


def invalid_text_representation(type_name: str, text: str, position: int | None = None) -> SqlError:
    """22P02: text that is no value of the type."""
    return SqlError("22P02", f'invalid input syntax for type {type_name}: "{text}"', position)


def out_of_range(type_name: str) -> SqlError:
    """22003: a number that does not fit, e.g. `integer out of range`."""
    return SqlError("22003", f"{type_name} out of range")


def division_by_zero() -> SqlError:
    """22012."""
    return SqlError("22012", "division by zero")
