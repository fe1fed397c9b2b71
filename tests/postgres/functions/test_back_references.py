"""Searches that could go on for ever end."""

import pytest

from compute.reference.functions import regexp as reference_regex
from compute.reference.functions.regexp import regexp_like
from sql.errors import SqlError


def test_a_search_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_regex, "SECONDS_MAX", 0.01)
    groups, again = r"(a+)" * 8, "".join(rf"\{number}" for number in range(1, 7))
    with pytest.raises(SqlError) as refused:
        regexp_like("a" * 60 + "b", f"^{groups}{again}c$")
    assert refused.value.sqlstate == "54000"
    assert regexp_like("abab", r"^(ab)\1$")
