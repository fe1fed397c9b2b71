"""The hash of a certificate, by the hash of its signature."""

import hashlib

import pytest

from coordinator.authentication.channel_binding import server_end_point
from tests.unit.authentication.certificates import HASHES, self_signed


@pytest.mark.parametrize("algorithm", HASHES)
def test_the_hash_is_that_of_the_signature(algorithm: str) -> None:
    made = self_signed(algorithm, "rsa" if algorithm != "sha3-256" else "ec")
    name = algorithm.replace("-", "_")
    assert made.hash == hashlib.new(name, made.der).digest()


def test_a_signature_without_a_hash_has_no_binding() -> None:
    assert server_end_point(self_signed("", "ed25519").der) is None
