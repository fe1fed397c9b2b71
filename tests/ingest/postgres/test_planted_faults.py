"""Readers with one fault each: the tests that are there for it find it."""

from __future__ import annotations

import pytest

from ingest.postgres import fold
from ingest.postgres.reader import PostgresReader
from ingest.postgres.table_decoder import Decoded, RowMessage, TableDecoder
from ingest.postgres.transaction_assembler import TransactionAssembler, UpstreamTransaction
from ingest.reader import ChangeRow, ReadLimits, RecordPlace
from tests.ingest.postgres.random_statements import RandomUpstream, check_reader
from tests.ingest.postgres.test_bad_records import check_bad_records
from tests.ingest.postgres.test_idle_positions import check_open_transaction
from tests.ingest.postgres.test_publication_watch import check_leaving_table
from tests.ingest.subjects import Follower, PostgresSubject, assert_whole, fill
from tests.ingest.upstream_database import UpstreamDatabase, run


def test_the_last_record_of_a_key_instead_of_all_folded(
    database: UpstreamDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def last_wins(new: ChangeRow, before: ChangeRow) -> ChangeRow:
        return new

    monkeypatch.setattr(fold, "_fill", last_wins)
    with pytest.raises(AssertionError, match=r"differs|unchanged values"):
        run(check_reader(RandomUpstream(database, 1), database.reader(), 120))


class ChecksTooEarly(PostgresReader):
    """The publication is checked before the messages come, not after."""

    async def _gather(self, limits: ReadLimits) -> None:
        await super()._watch(self._given + 1)
        await super()._gather(limits)

    async def _watch(self, upto: int) -> None:
        pass


def test_the_publication_is_checked_before_the_message(database: UpstreamDatabase) -> None:
    with pytest.raises(AssertionError, match="left out without a word"):
        run(check_leaving_table(database, ChecksTooEarly))


class SplitsTransactions(PostgresReader):
    """A transaction is cut where the limit is."""

    def _take(self, size: int) -> list[UpstreamTransaction]:
        taken: list[UpstreamTransaction] = []
        for one in super()._take(size):
            for reference, changes in one.changes.items():
                if len(changes) > 1:
                    rest = UpstreamTransaction(one.end_lsn, {reference: changes[1:]}, [], 100)
                    self._ready.insert(0, rest)
                    one = UpstreamTransaction(one.end_lsn, {reference: changes[:1]}, [], 100)  # noqa: PLW2901
            taken.append(one)
        return taken


def test_an_upstream_transaction_is_split(database: UpstreamDatabase) -> None:
    async def scenario() -> None:
        subject = PostgresSubject(database)
        follower = Follower(database.reader(kind=SplitsTransactions))
        await follower.load()
        fill(subject)
        newest = (await follower.reader.newest())["lsn"]
        while follower.progress.position["lsn"] < newest:
            await follower.read(ReadLimits(size=1))
        assert_whole(follower)

    with pytest.raises(AssertionError, match="split over two batches"):
        run(scenario())


def test_a_keepalive_counts_within_an_open_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TransactionAssembler, "is_open", False)
    with pytest.raises(AssertionError, match="passes an open transaction"):
        run(check_open_transaction())


def test_a_bad_record_is_skipped(
    database: UpstreamDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode = TableDecoder.changes

    def skipping(
        self: TableDecoder, message: RowMessage, place: RecordPlace, *, skip: bool
    ) -> Decoded:
        changes, bad = decode(self, message, place, skip=skip)
        return (changes, None) if bad is None else ([], None)

    monkeypatch.setattr(TableDecoder, "changes", skipping)
    with pytest.raises(AssertionError, match="neither in the table nor an error"):
        run(check_bad_records(database))
