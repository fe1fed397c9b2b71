"""The judge that looks at answers only: no timestamps, just who saw what and real time.

    history ─▶ direct checks (impossible values) ─▶ dependency graph + real time ─▶ cycles

Each check takes the operations of its own model from every transaction and ignores the rest, and
one graph holds all keys, so that transactions over several keys and tables are judged as a whole.

INVARIANTS
  B1  sound: every edge holds in *any* serial order that explains the answers, so a cycle is a
      proof. A transaction of unknown outcome counts as soon as somebody saw one of its writes:
      then all of it happened. Otherwise it gets no edges.
  B2  complete for grow-only sets: what a read saw comes before it, what it did not see comes
      after; no cycle means that the answers are strictly serializable.
  B3  complete for lists up to the longest read of each key. For registers (`registers.py`) the
      order of the versions is only what reads and real time give.

After Adya's thesis (anomalies) and Kingsbury and Alvaro, "Elle" (inference from lists and sets).
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from tests.resilience.history.cycles import Graph
from tests.resilience.history.events import (
    Add,
    Append,
    Finding,
    History,
    Key,
    Kind,
    ReadList,
    ReadSet,
    Transaction,
    Value,
    Write,
)

# Above it, edges that real time implies are left out: the verdict is the same, but a cycle may be
# explained by real time where it would not have to be. Larger: memory, some 300 bytes an edge.
FULL_EDGES_MAX = 200_000


class Writers:
    """Who wrote each value of each key; the workload writes a value once."""

    def __init__(
        self, transactions: Iterable[Transaction], write: type[Add] | type[Append] | type[Write]
    ) -> None:
        self._writers: dict[Key, dict[Value, Transaction]] = {}
        for transaction in transactions:
            for operation in transaction.operations:
                if isinstance(operation, write):
                    written = self._writers.setdefault(operation.key, {})
                    assert operation.value not in written, f"the workload repeats {operation}"
                    written[operation.value] = transaction

    def of(self, key: Key, value: Value) -> Transaction | None:
        """The transaction that writes this value, whatever became of it."""
        return self._writers.get(key, {}).get(value)

    def all(self, key: Key) -> Iterator[tuple[Value, Transaction]]:
        """Every value that somebody tried to write."""
        yield from self._writers.get(key, {}).items()

    def observed(self, answers: Iterable[tuple[Key, Iterable[Value]]]) -> set[int]:
        """Numbers of the transactions that certainly happened: acknowledged, or seen (B1)."""
        seen = {
            writer.number
            for key, values in answers
            for value in values
            if (writer := self.of(key, value)) is not None
        }
        acknowledged = {
            writer.number
            for written in self._writers.values()
            for writer in written.values()
            if writer.is_ok
        }
        return seen | acknowledged

    def impossible(self, reader: Transaction, key: Key, values: Iterable[Value]) -> list[Finding]:
        """Values that nobody wrote, and values of transactions that did not happen (E3)."""
        found: list[Finding] = []
        for value in values:
            writer = self.of(key, value)
            if writer is None:
                found.append(Finding("phantom", f"{key} holds {value}: nobody wrote it", (reader,)))
            elif writer.status is Kind.FAIL:
                why = f"{key} holds {value} of a transaction that failed"
                found.append(Finding("G1a", why, (writer, reader)))
        return found


def repeats(reader: Transaction, key: Key, values: Sequence[Value]) -> list[Finding]:
    """A value that stands in one answer more than once."""
    twice = sorted({value for value in values if values.count(value) > 1})
    if not twice:
        return []
    return [Finding("duplicate", f"{key} holds {twice} more than once", (reader,))]


def check_real_time_set(history: History) -> list[Finding]:
    """Judge the grow-only sets (Add, ReadSet) of a history; complete (B2)."""
    transactions = history.transactions()
    writers = Writers(transactions, Add)
    reads = [(t, read) for t in transactions if t.is_ok for read in _set_reads(t)]
    happened = writers.observed((key, values) for _, (key, values, _) in reads)
    graph = Graph(transactions)
    found: list[Finding] = []
    full = len(reads) * len(transactions) <= FULL_EDGES_MAX
    for reader, (key, values, own) in reads:
        found += repeats(reader, key, values)
        found += writers.impossible(reader, key, values)
        if not own <= set(values):
            missing = sorted(own - set(values))
            found.append(Finding("internal", f"{key} misses its own {missing}", (reader,)))
        seen = set(values)
        for value, writer in writers.all(key):
            if value in seen:
                if full or not writer.ended_before(reader):
                    graph.add("wr", writer, reader, f"{key} holds {value}")
            elif writer.number in happened and (full or not reader.ended_before(writer)):
                graph.add("rw", reader, writer, f"{key} does not hold {value}")
    graph.add_real_time()
    return found + graph.findings()


def _set_reads(
    transaction: Transaction,
) -> Iterator[tuple[Key, tuple[Value, ...], set[Value]]]:
    """Key, answer, and the transaction's own adds before it."""
    own: dict[Key, set[Value]] = {}
    for operation in transaction.operations:
        match operation:
            case Add(key, value):
                own.setdefault(key, set()).add(value)
            case ReadSet(key, values) if values is not None:
                yield key, values, set(own.get(key, ()))
            case _:
                pass


def check_list_append(history: History) -> list[Finding]:
    """Judge the lists (Append, ReadList) of a history (B3)."""
    transactions = history.transactions()
    writers = Writers(transactions, Append)
    reads = [(t, read) for t in transactions if t.is_ok for read in _list_reads(t)]
    longest: dict[Key, tuple[Value, ...]] = {}
    graph = Graph(transactions)
    found: list[Finding] = []
    for reader, (key, values, own) in reads:
        found += repeats(reader, key, values)
        found += writers.impossible(reader, key, values)
        if values[len(values) - len(own) :] != own:
            found.append(Finding("internal", f"{key} does not end in {list(own)}", (reader,)))
        if len(values) > len(longest.get(key, ())):
            longest[key] = values
    for reader, (key, values, _) in reads:
        if longest.get(key, ())[: len(values)] != values:
            why = f"{key} is {list(values)} here and {list(longest[key])} there"
            found.append(Finding("incompatible-order", why, (reader,)))
    if found:
        # Without one order of the versions, edges would be guesses (B1).
        return found
    happened = writers.observed(longest.items())
    orders = {
        key: _Order(key, longest.get(key, ()), writers, happened)
        for key in sorted({key for _, (key, _, _) in reads})
    }
    for order in orders.values():
        order.add_versions(graph)
    for reader, (key, values, own) in reads:
        orders[key].add_read(graph, reader, values[: len(values) - len(own)])
    graph.add_real_time()
    return graph.findings()


def _list_reads(
    transaction: Transaction,
) -> Iterator[tuple[Key, tuple[Value, ...], tuple[Value, ...]]]:
    """Key, answer, and the transaction's own appends before it."""
    own: dict[Key, tuple[Value, ...]] = {}
    for operation in transaction.operations:
        match operation:
            case Append(key, value):
                own[key] = (*own.get(key, ()), value)
            case ReadList(key, values) if values is not None:
                yield key, values, own.get(key, ())
            case _:
                pass


class _Order:
    """The versions of one list: its longest read, then the appends that no read saw."""

    def __init__(
        self, key: Key, longest: Sequence[Value], writers: Writers, happened: set[int]
    ) -> None:
        self._key = key
        self._longest = longest
        self._writers = [_writer(writers, key, value) for value in longest]
        known = set(longest)
        self._unseen = [
            (value, writer)
            for value, writer in writers.all(key)
            if writer.number in happened and value not in known
        ]

    def add_versions(self, graph: Graph) -> None:
        """ww edges along the longest read, and from its end to every append outside."""
        numbered = list(zip(self._longest, self._writers, strict=True))
        for (value, writer), (following, next_writer) in pairwise(numbered):
            graph.add("ww", writer, next_writer, f"{self._key}: {value} before {following}")
        for last, last_writer in numbered[-1:]:
            for value, writer in self._unseen:
                graph.add("ww", last_writer, writer, f"{self._key}: {last} before {value}")

    def add_read(self, graph: Graph, reader: Transaction, seen: Sequence[Value]) -> None:
        """A read comes after the writer of its last element and before that of the next one."""
        if seen:
            writer = self._writers[len(seen) - 1]
            graph.add("wr", writer, reader, f"{self._key} ends in {seen[-1]}")
        reason = f"{self._key} is read as {list(seen)}, without"
        if len(seen) < len(self._longest):
            following = self._longest[len(seen)]
            graph.add("rw", reader, self._writers[len(seen)], f"{reason} {following}")
            return
        for value, writer in self._unseen:
            graph.add("rw", reader, writer, f"{reason} {value}")


def _writer(writers: Writers, key: Key, value: Value) -> Transaction:
    writer = writers.of(key, value)
    assert writer is not None, "phantoms were reported before"
    return writer
