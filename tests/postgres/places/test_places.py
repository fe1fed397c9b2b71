"""The places and the types: all that is filled in is SQL, and always the same."""

import random

import pglast
import pytest

from tests.postgres.places.kinds import KINDS, Kind
from tests.postgres.places.playing import tokens_of, tokens_of_two
from tests.postgres.places.templates import fill, queries, scripts

ONE_TYPE = ("reading", "parameters", "array_parameters", "binary")
SEED = 1


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_every_place_of_a_type_is_sql(kind: Kind) -> None:
    tokens = tokens_of(kind, random.Random(SEED))
    texts = [text for name in ONE_TYPE for text in queries(name).values()]
    texts += [text for script in scripts("writing").values() for text in script]
    for text in texts:
        pglast.parse_sql(fill(text, tokens))


def test_every_place_of_two_types_is_sql() -> None:
    for kind, other in zip(KINDS, KINDS[::-1], strict=True):
        tokens = tokens_of_two(kind, other, random.Random(SEED))
        for text in (*queries("pairs").values(), *scripts("assigning")["assignment"]):
            pglast.parse_sql(fill(text, tokens))


def test_the_same_seed_fills_in_the_same() -> None:
    first, second = ([tokens_of(kind, random.Random(SEED)) for kind in KINDS] for _ in range(2))
    assert first == second


def test_names_of_types_are_their_own() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)
