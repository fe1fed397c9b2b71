"""N4, N5 of `strangers.py`: nobody shuts out everybody else."""

from collections.abc import Sequence

import pytest

from coordinator.server.strangers import Strangers


def admitted(strangers: Strangers, addresses: Sequence[str | None]) -> int:
    """How many of these connections are let in."""
    return sum(strangers.admit(address) for address in addresses)


@pytest.mark.parametrize(
    "of_one_site",
    [
        ["10.0.0.1"] * 100,
        ["10.0.0.1", "::ffff:10.0.0.1"] * 50,
        [f"2001:db8::{one:x}" for one in range(100)],
        [f"fe80::{one:x}%eth0" for one in range(1, 101)],
    ],
)
def test_one_site_takes_half_of_the_places(of_one_site: list[str]) -> None:
    strangers = Strangers(20)
    assert admitted(strangers, of_one_site) == 10
    assert admitted(strangers, [f"10.0.1.{one}" for one in range(100)]) == 10
    assert admitted(strangers, [None] * 100) == 20
    assert not strangers.admit("2001:db8:1::1")


def test_places_are_given_back() -> None:
    strangers = Strangers(2)
    for address in ("10.0.0.1", None, "2001:db8::1"):
        for _ in range(5):
            assert strangers.admit(address)
            strangers.forget(address)
    assert admitted(strangers, ["10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.3"]) == 2
