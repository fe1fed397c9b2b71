"""What is told alike is the play's own time and names, and nothing that a script writes."""

from datetime import UTC, datetime

import pytest

from storage.types import Timestamp
from tests.support.alike import Alike


class Noon:
    """A clock that stands."""

    def now(self) -> Timestamp:
        return Timestamp(int(datetime(2030, 5, 6, 12, tzinfo=UTC).timestamp()) * 1_000_000)


def test_moments_of_the_play_have_numbers() -> None:
    alike = Alike(Noon())
    told = alike.told("('2030-05-06 12:00:00.123+00', '2030-05-06 12:00:00.1234+00', 7)")
    assert told == "('<moment 1>+00', '<moment 2>+00', 7)"
    assert alike.told("(2030-05-06 13:00:00.1234+01)") == "(<moment 2>+01)"
    assert alike.told("(2030-05-06 12:00:00.123)") == "(<moment 1>)"


@pytest.mark.parametrize(
    "text",
    [
        "2024-02-29 12:34:56.789",
        "2030-05-06 11:00:00.5+00",
        "2030-05-06 12:00:00.5+01",
        "2030-13-06 12:00:00",
        "2030-05-07",
        "datetime.date(2030, 5, 7)",
        "datetime.date(2030, 6, 5)",
    ],
)
def test_others_stay(text: str) -> None:
    assert Alike(Noon()).told(text) == text


def test_today() -> None:
    assert Alike(Noon()).told("(7, 2030-05-06, x)") == "(7, <today>, x)"
    assert Alike(Noon()).told("(7, datetime.date(2030, 5, 6))") == "(7, <today>)"


def test_made_up_names() -> None:
    assert Alike(Noon()).told("schema pg_temp_3 | table t") == "schema pg_temp | table t"
    assert Alike(Noon()).told("'pg_temp_12_0af'") == "'pg_temp'"
