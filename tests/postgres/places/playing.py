"""Fill the places with the types, and play them: a share of them, drawn by a seed."""

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TypeVar

from psycopg.pq import Format

from tests.postgres.places import protocol
from tests.postgres.places.copying import copies
from tests.postgres.places.kinds import Kind, Value
from tests.postgres.places.running import Parameters, Peers, literal, typed
from tests.postgres.places.templates import fill, queries, scripts

_T = TypeVar("_T")

DROP = (
    "deallocate all",
    "drop view if exists x1",
    "drop table if exists x2",
    "drop table if exists x1",
    "drop function if exists x1f",
    "drop domain if exists x1d",
)
"""What scripts make; a name of theirs begins with x (R2)."""

PARTS = ("reading", "extended", "copy", "writing", "pairs", "assigning")


class Player:
    """All parts over some types."""

    def __init__(
        self, peers: Peers, kinds: Sequence[Kind], seed: int, share: float, place: str
    ) -> None:
        self._peers = peers
        self._kinds = kinds
        self._random = random.Random(seed)
        self._share = share
        self._place = place

    def reading(self) -> None:
        """Queries over one type."""
        for place, text, kind in self._drawn(queries("reading")):
            self._peers.compare(place, fill(text, self._tokens(kind)))

    def writing(self) -> None:
        """Scripts over one type."""
        for place, texts, kind in self._drawn(scripts("writing")):
            tokens = self._tokens(kind)
            self._peers.script(place, [fill(text, tokens) for text in texts], DROP)

    def extended(self) -> None:
        """Parameters and binary results."""
        for place, text, kind in self._drawn(queries("parameters")):
            tokens = self._tokens(kind)
            query = fill("select v from {t} order by id", tokens)
            for parameters in protocol.sent_values(self._peers, kind, query):
                self._peers.compare(place, fill(text, tokens), parameters)
        for place, text, kind in self._drawn(queries("array_parameters")):
            tokens = self._tokens(kind)
            query = fill("select array_agg(v order by id) from {t} union all select '{}'", tokens)
            for parameters in protocol.sent_values(self._peers, kind, query):
                self._peers.compare(place, fill(text, tokens), parameters)
        shown = Parameters(shown=Format.BINARY)
        for place, text, kind in self._drawn(queries("binary")):
            if protocol.shows_alike(kind):
                self._peers.compare(place, fill(text, self._tokens(kind)), shown)

    def copy(self) -> None:
        """COPY out and in."""
        for kind in self._kinds:
            if self._wanted("copy"):
                copies(self._peers, kind)

    def pairs(self) -> None:
        """Queries over two types."""
        for (place, text), kind, other in product(
            queries("pairs").items(), self._kinds, self._kinds
        ):
            if kind is not other and self._wanted(place):
                self._peers.compare(f"two: {place}", fill(text, self._both(kind, other)))

    def assigning(self) -> None:
        """INSERT of one type into a column of another."""
        script = scripts("assigning")["assignment"]
        for kind, other in product(self._kinds, self._kinds):
            if not other.stored and self._wanted("assignment"):
                tokens = self._both(kind, other)
                texts = [fill(text, tokens) for text in script]
                self._peers.script("two: assignment", texts, DROP)

    def _drawn(self, places: Mapping[str, _T]) -> Iterator[tuple[str, _T, Kind]]:
        for (place, text), kind in product(places.items(), self._kinds):
            if self._wanted(place):
                yield place, text, kind

    def _wanted(self, place: str) -> bool:
        return self._place in place and self._random.random() < self._share

    def _tokens(self, kind: Kind) -> dict[str, str]:
        return tokens_of(kind, self._random)

    def _both(self, kind: Kind, other: Kind) -> dict[str, str]:
        return tokens_of_two(kind, other, self._random)


def tokens_of(kind: Kind, drawn_by: random.Random) -> dict[str, str]:
    """What the tokens of a template stand for."""
    values: list[Value] = [value for value in kind.values if value is not None]
    values = [*drawn_by.sample(values, min(3, len(values))), values[0], values[-1]]
    tokens = {"T": kind.type}
    tokens |= {table: f"{table}_{kind.name}" for table in "tpu"}
    for name, value in zip("abc", values, strict=False):
        tokens |= {name: literal(value), name.upper(): typed(kind, value)}
    return tokens


def tokens_of_two(kind: Kind, other: Kind, drawn_by: random.Random) -> dict[str, str]:
    """Those of the one, and those of the other with a 2 behind them."""
    more = {f"{name}2": text for name, text in tokens_of(other, drawn_by).items()}
    return tokens_of(kind, drawn_by) | more
