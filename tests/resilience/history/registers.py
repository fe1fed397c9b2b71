"""The black-box judge for registers: last writer wins, every value is written once.

The order of the versions of a key is inferred, never assumed:
  - the initial version comes first;
  - inside a transaction, what it read comes before what it wrote, and writes in their order;
  - what a transaction saw last comes before what a later one (in real time) saw first.

INVARIANTS
  R1  every inferred pair holds in any strictly serial order that explains the answers, so a cycle
      of versions, or of transactions, is a proof.
  R2  writes that nobody read and nobody acknowledged take no part (they may not have happened).

Not here: concurrent blind writes that nobody reads stay unordered; a search over all orders would
find a little more and take exponential time.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from tests.resilience.history.black_box import Writers
from tests.resilience.history.cycles import Graph, knots, real_time_edges, shortest_cycle
from tests.resilience.history.events import Finding, History, Key, Read, Transaction, Value, Write

Version: TypeAlias = Value | None
INITIAL: Version = None


@dataclass(frozen=True, slots=True)
class _Touch:
    """What one transaction does to one key: its versions in order, and the outside one it read."""

    transaction: Transaction
    versions: tuple[Version, ...]
    read: bool


def check_registers(history: History) -> list[Finding]:
    """Judge the registers (Write, Read) of a history (B3)."""
    transactions = history.transactions()
    writers = Writers(transactions, Write)
    found: list[Finding] = []
    for reader in (t for t in transactions if t.is_ok):
        found += _internal(reader)
        for key, value in _reads(reader):
            if value is not None:
                found += writers.impossible(reader, key, [value])
    if found:
        return found
    happened = {place for t in transactions if t.is_ok for place in _reads(t)}
    relevant = [t for t in transactions if t.is_ok or _was_seen(t, happened)]
    graph = Graph(transactions)
    for key in sorted({op.key for t in relevant for op in t.operations if _is_register(op)}):
        touches = [touch for t in relevant if (touch := _touch(t, key)) is not None]
        found += _order_key(graph, writers, key, touches)
    graph.add_real_time()
    return found or graph.findings()


def _is_register(operation: object) -> bool:
    return isinstance(operation, Read | Write)


def _reads(transaction: Transaction) -> Iterator[tuple[Key, Version]]:
    return ((op.key, op.value) for op in transaction.operations if isinstance(op, Read))


def _was_seen(transaction: Transaction, happened: set[tuple[Key, Version]]) -> bool:
    """An unknown outcome that somebody saw did happen."""
    return any(
        isinstance(op, Write) and (op.key, op.value) in happened for op in transaction.operations
    )


def _internal(reader: Transaction) -> list[Finding]:
    """A transaction sees one version of a key, then its own writes."""
    current: dict[Key, Version] = {}
    for operation in reader.operations:
        match operation:
            case Write(key, value):
                current[key] = value
            case Read(key, value):
                expected = current.setdefault(key, value)
                if expected != value:
                    why = f"{key} is {value} after {expected} in one transaction"
                    return [Finding("internal", why, (reader,))]
            case _:
                pass
    return []


def _touch(transaction: Transaction, key: Key) -> _Touch | None:
    """The answers of a transaction without acknowledgement are unknown: only its writes count."""
    versions: list[Version] = []
    read = False
    for operation in transaction.operations:
        match operation:
            case Read(k, value) if k == key and transaction.is_ok and not versions:
                versions.append(value)
                read = True
            case Write(k, value) if k == key:
                versions.append(value)
            case _:
                pass
    return _Touch(transaction, tuple(versions), read) if versions else None


def _order_key(
    graph: Graph, writers: Writers, key: Key, touches: Iterable[_Touch]
) -> list[Finding]:
    """Infer the versions' order and turn it into edges between transactions (R1)."""
    by_number = {touch.transaction.number: touch for touch in touches}
    after: dict[Version, list[Version]] = {INITIAL: []}
    for touch in by_number.values():
        for version in touch.versions:
            if version not in after:
                after[version] = []
                after[INITIAL].append(version)
        for earlier, later in pairwise(touch.versions):
            after[earlier].append(later)
    for before, then in real_time_edges(touch.transaction for touch in by_number.values()):
        last, first = by_number[before.number].versions[-1], by_number[then.number].versions[0]
        if last != first:
            after[last].append(first)
    if cycle := _version_cycle(after):
        involved = tuple(
            touch.transaction
            for touch in by_number.values()
            if len(set(touch.versions) & set(cycle)) > 0
        )
        words = ", ".join("nil" if version is None else str(version) for version in cycle)
        return [Finding("cyclic-versions", f"{key}: no order of {words} explains this", involved)]
    _add_edges(graph, writers, key, by_number.values(), after)
    return []


def _version_cycle(after: Mapping[Version, list[Version]]) -> list[Version]:
    numbers = {version: number for number, version in enumerate(after)}
    versions = list(after)
    successors = {numbers[v]: [numbers[w] for w in then] for v, then in after.items()}
    for knot in knots(successors):
        return [versions[number] for number in shortest_cycle(successors, knot)]
    return []


def _add_edges(
    graph: Graph,
    writers: Writers,
    key: Key,
    touches: Iterable[_Touch],
    after: Mapping[Version, list[Version]],
) -> None:
    for version, then in after.items():
        writer = None if version is None else writers.of(key, version)
        for later in then:
            assert later is not None, "nothing comes before the initial version"
            overwriter = writers.of(key, later)
            if writer is not None and overwriter is not None:
                graph.add("ww", writer, overwriter, f"{key}: {version} before {later}")
    for touch in touches:
        if not touch.read:
            continue
        version = touch.versions[0]
        seen = "nil" if version is None else str(version)
        if version is not None and (writer := writers.of(key, version)) is not None:
            graph.add("wr", writer, touch.transaction, f"{key} is {seen}")
        for later in after[version]:
            if later is not None and (overwriter := writers.of(key, later)) is not None:
                graph.add("rw", touch.transaction, overwriter, f"{key} is {seen}, not yet {later}")
