"""Predicate of a foreign key check: at the commit, look again for the keys that it looked for."""

from dataclasses import dataclass, replace

from compute.access.key_predicates import KeyPredicate
from storage.batch import DataFile
from storage.known_rows import KnownRows, Points


@dataclass(frozen=True, slots=True)
class ForeignKeyProbe:
    """A ReadPredicate: the rows with these keys, whichever rows have them. Unlike a look-up of new
    keys it does not concern rows that the transaction writes.
    """

    keys: KeyPredicate
    at_every_level: bool = True

    @property
    def nbytes(self) -> int:
        """See ReadPredicate."""
        return self.keys.nbytes

    @property
    def look_up(self) -> None:
        """See ReadPredicate: None, as no new keys are looked up."""
        return None

    @property
    def points(self) -> Points | None:
        """See ReadPredicate: a row may change as long as its key stays."""
        points = self.keys.points
        return None if points is None else replace(points, presence=True)

    def matches(self, rows: KnownRows) -> bool:
        """See ReadPredicate."""
        return self.keys.matches(rows)

    def may_match_file(self, file: DataFile) -> bool:
        """See ReadPredicate."""
        return self.keys.may_match_file(file)

    def describe(self) -> str:
        """See ReadPredicate."""
        return self.keys.describe()
