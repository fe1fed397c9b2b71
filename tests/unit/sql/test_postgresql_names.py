"""What PostgreSQL has and we do not is refused; what nobody has does not exist."""

import pytest

from sql.binder.resolve.postgresql_functions import (
    has_cast,
    has_function,
    has_operator,
    is_aggregate,
)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("now", ()),
        ("lower", ("unknown",)),
        ("lower", ("varchar",)),
        ("sum", ("interval",)),
        ("make_interval", ()),
        ("make_interval", ("int4", "int4")),
        ("concat", ("int4", "text", "bool")),
        ("corr", ("int4", "float8")),
        ("array_agg", ("int4",)),
    ],
)
def test_functions(name: str, args: tuple[str, ...]) -> None:
    assert has_function(name, args)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("nosuch", ()),
        ("lower", ("int4",)),
        ("lower", ("text", "text")),
        ("lower", ()),
        ("concat", ()),
        ("sum", ("text",)),
        ("array_length", ("int4", "int4")),
    ],
)
def test_no_such_functions(name: str, args: tuple[str, ...]) -> None:
    assert not has_function(name, args)


def test_operators() -> None:
    assert has_operator("||", ("text", "int4"))
    assert has_operator("@>", ("unknown", "unknown"))
    assert has_operator("-", ("int4",))
    assert not has_operator("-", ("text",))
    assert not has_operator("+", ("text", "int4"))
    assert not has_operator("===", ("int4", "int4"))


def test_casts() -> None:
    assert has_cast("int4", "bytea")
    assert has_cast("int8", "int2")
    assert not has_cast("int8", "bool")


def test_aggregates() -> None:
    assert is_aggregate("array_agg")
    assert not is_aggregate("lower")
