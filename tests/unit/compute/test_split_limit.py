"""A text that is split has a bound of parts."""

import pytest

from compute.reference.functions.arrays import ARRAY_ITEMS_MAX
from sql.types.limits import SPLIT_PARTS_MAX
from tests.support.connections import all_rows, connected, on_a_loop
from tests.support.stack import running

LONG = SPLIT_PARTS_MAX + 1


@pytest.mark.parametrize("separator", ["','", "null", "(select ',')"])
def test_too_many_parts_are_refused(separator: str) -> None:
    assert SPLIT_PARTS_MAX < ARRAY_ITEMS_MAX

    @on_a_loop
    async def story() -> None:
        async with running() as stack, connected(stack, 1) as (one,):
            text = f"select count(*) from string_to_table(repeat(',', {LONG}), {separator})"
            with pytest.raises(Exception, match="array size exceeds") as failed:
                await all_rows(one, text)
            assert getattr(failed.value, "sqlstate", None) == "54000"
            whole = f"select cardinality(string_to_array(repeat(',', {LONG}), ''))"
            assert await all_rows(one, whole) == [(1,)]

    story()
