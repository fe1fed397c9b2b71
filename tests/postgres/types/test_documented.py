"""`docs/reference/types.md` says what the code does."""

from tests.postgres.types.type_table import PAGE, table


def test_the_table_is_true() -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), "python -m tests.postgres.types.type_table"
