"""Many seeds over several processes: `python -m tests.resilience.sim.many --seeds 100000`.

    seeds ── blocks ──▶ workers ── Sum of a block ──▶ progress line, total
                                └─ first finding ──▶ report, and how to replay it

INVARIANTS
  Y1  memory is bounded: a worker gives back a sum, never a history, and is replaced now and then.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import TextIO

from tests.resilience.history.events import Kind
from tests.resilience.sim.odds import WEATHER
from tests.resilience.sim.run import WORKLOADS, Outcome, simulate
from tests.resilience.sim.world import Tally

BLOCK = 25
"""Seeds for a worker at a time. Larger: fewer messages. Smaller: a smoother progress line."""

BLOCKS_PER_WORKER = 200
"""Of a round; then fresh processes take over, whatever the old ones have piled up (Y1)."""


@dataclass(slots=True)
class Sum:
    """What some runs showed together."""

    runs: int = 0
    told: Counter[Kind] = field(default_factory=Counter[Kind])
    by_place: Counter[tuple[str, Kind]] = field(default_factory=Counter[tuple[str, Kind]])
    """The same, for each workload and each weather."""
    tally: Counter[str] = field(default_factory=Counter[str])
    failures: list[str] = field(default_factory=list[str])

    def add(self, outcome: Outcome) -> None:
        """Another run."""
        self.runs += 1
        told = Counter(t.status for t in outcome.history.transactions())
        self.told += told
        for place in (outcome.scenario.workload, outcome.scenario.weather):
            self.by_place.update({(place, kind): count for kind, count in told.items()})
        for entry in fields(Tally):
            self.tally[entry.name] += getattr(outcome.tally, entry.name)
        if outcome.findings:
            self.failures.append(outcome.report())

    def merge(self, other: "Sum") -> None:
        """Other runs."""
        self.runs += other.runs
        self.told += other.told
        self.by_place += other.by_place
        self.tally += other.tally
        self.failures += other.failures

    def share(self, kind: Kind, place: str | None = None) -> float:
        """Of all transactions, or of those of a workload or a weather."""
        told = self.told
        if place is not None:
            told = Counter(
                {k: count for (where, k), count in self.by_place.items() if where == place}
            )
        return told[kind] / max(1, told.total())

    def __str__(self) -> str:
        kinds = (Kind.OK, Kind.FAIL, Kind.INFO)
        shares = ", ".join(f"{kind} {self.share(kind):.1%}" for kind in kinds)
        faults = ", ".join(
            f"{count} {name.replace('_', ' ')}" for name, count in self.tally.items()
        )
        return f"{self.runs} runs, {self.told.total()} transactions: {shares}; {faults}"


def run_block(seeds: Iterable[int], workload: str | None, weather: str | None) -> Sum:
    """Some seeds, up to the first finding."""
    total = Sum()
    for seed in seeds:
        total.add(simulate(seed, workload, weather))
        if total.failures:
            break
    return total


def run_many(
    seeds: range,
    workload: str | None = None,
    weather: str | None = None,
    *,
    workers: int | None = None,
    tell: bool = False,
) -> Sum:
    """All seeds, spread over processes, up to the first finding."""
    began = time.perf_counter()
    total = Sum()
    processes = workers or os.cpu_count() or 1
    blocks = [seeds[first : first + BLOCK] for first in range(0, len(seeds), BLOCK)]
    for done in _round_by_round(blocks, processes, workload, weather):
        total.merge(done)
        if total.failures:
            break
        if tell:
            pace = (time.perf_counter() - began) / total.runs
            left = (len(seeds) - total.runs) * pace
            _say(f"\r{total.runs} of {len(seeds)} runs, {left:.0f} s left   ", sys.stderr)
    return total


def _round_by_round(
    blocks: Sequence[range], workers: int, workload: str | None, weather: str | None
) -> Iterator[Sum]:
    """Fresh processes for every round (Y1): a pool that replaces them itself comes to a standstill
    now and then (CPython issue 115634).
    """
    size = workers * BLOCKS_PER_WORKER
    # A fork would inherit threads of Arrow that are not there.
    spawn = multiprocessing.get_context("spawn")
    for first in range(0, len(blocks), size):
        with ProcessPoolExecutor(workers, mp_context=spawn) as pool:
            try:
                yield from _in_turn(pool, iter(blocks[first : first + size]), workload, weather)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


def _in_turn(
    pool: ProcessPoolExecutor,
    blocks: Iterator[range],
    workload: str | None,
    weather: str | None,
) -> Iterator[Sum]:
    """Never more blocks under way than keep the workers busy."""
    running: set[Future[Sum]] = set()
    while True:
        room = 4 * (os.cpu_count() or 1) - len(running)
        running |= {
            pool.submit(run_block, block, workload, weather) for block in islice(blocks, room)
        }
        if not running:
            return
        done, running = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            yield future.result()


def main() -> int:
    """Many seeds, or one again; exit 1 at the first finding."""
    parser = argparse.ArgumentParser(description="simulate seeds")
    parser.add_argument("--seeds", type=int, default=2_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--replay", type=int, default=None)
    parser.add_argument("--workload", choices=sorted(WORKLOADS), default=None)
    parser.add_argument("--weather", choices=sorted(WEATHER), default=None)
    parser.add_argument("--workers", type=int, default=None)
    arguments = parser.parse_args()
    workload, weather = arguments.workload, arguments.weather
    if arguments.replay is not None:
        return _replay(arguments.replay, workload, weather)
    began = time.perf_counter()
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    total = run_many(seeds, workload, weather, workers=arguments.workers, tell=True)
    seconds = time.perf_counter() - began
    _say(f"\r{total}; {seconds:.0f} s\n")
    for failure in total.failures:
        _say(f"{failure}\n")
    if not total.failures:
        _say("no anomaly\n")
    return 1 if total.failures else 0


def _replay(seed: int, workload: str | None, weather: str | None) -> int:
    """The whole story of one run."""
    outcome = simulate(seed, workload, weather)
    for line in outcome.trace:
        _say(f"{line}\n")
    for transaction in outcome.history.transactions():
        _say(f"{transaction}\n")
    _say(f"{outcome.report()}\n")
    return 1 if outcome.findings else 0


def _say(text: str, stream: TextIO = sys.stdout) -> None:
    stream.write(text)
    stream.flush()


if __name__ == "__main__":
    sys.exit(main())
