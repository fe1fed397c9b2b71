"""One simulated run from one integer, and the command line for many: `python -m tests.sim.run`."""

import argparse
import asyncio
import logging
import sys
import time
from dataclasses import dataclass

from tests.history.black_box import check_list_append, check_real_time_set
from tests.history.events import Finding, History, Kind, Recorder
from tests.history.registers import check_registers
from tests.history.replay import check_replay
from tests.sim.loop import run
from tests.sim.workload import Client, Memory, Values, create_tables
from tests.sim.world import CALM, Odds, World

KEYS = ("s1", "s2", "r1", "r2", "l1", "l2")
CLIENTS = 5
TRANSACTIONS = 12


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run showed."""

    seed: int
    history: History
    findings: tuple[Finding, ...]
    trace: tuple[str, ...]
    crashes: int


async def _simulate(seed: int, odds: Odds) -> Outcome:
    world = World(seed, CALM)
    recorder = Recorder(lambda: int(asyncio.get_running_loop().time() * 1_000_000))
    async with asyncio.TaskGroup() as tasks:
        # In one group, so that a server that ends by a bug ends the run with that bug.
        tasks.create_task(world.serve())
        await _work(world, recorder, odds)
    history = recorder.history()
    findings = [
        *check_replay(history),
        *check_real_time_set(history),
        *check_list_append(history),
        *check_registers(history),
    ]
    return Outcome(seed, history, tuple(findings), tuple(world.trace), world.crashes)


async def _work(world: World, recorder: Recorder, odds: Odds) -> None:
    await create_tables(await world.server(), KEYS)
    world.odds = odds
    values = Values(CLIENTS)
    memory = Memory()
    clients = [
        Client(world, recorder, KEYS, memory).run(number, TRANSACTIONS, values)
        for number in range(CLIENTS)
    ]
    await asyncio.gather(*clients)
    world.odds = CALM
    await _read_everything(world, recorder, memory, values.process())
    await world.end()


async def _read_everything(world: World, recorder: Recorder, memory: Memory, process: int) -> None:
    """The last word: after one more crash, everything acknowledged must still be there."""
    world.crash()
    await asyncio.sleep(0.001)
    for _ in range(3):
        client = Client(world, recorder, KEYS, memory)
        await client.read_all(process)


def simulate(seed: int, odds: Odds | None = None) -> Outcome:
    """Run one seed: same seed, same outcome, word by word."""
    return run(_simulate(seed, odds or Odds()))


def report(outcome: Outcome) -> str:
    """The findings, and how to see them again."""
    lines = [str(finding) for finding in outcome.findings]
    return "\n".join([*lines, f"replay: make replay SEED={outcome.seed}"])


def main() -> int:
    """Many seeds; exit 1 at the first finding."""
    parser = argparse.ArgumentParser(description="simulate seeds")
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--replay", type=int, default=None)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if arguments.replay is not None:
        outcome = simulate(arguments.replay)
        print("\n".join(outcome.trace))
        print(report(outcome))
        return 1 if outcome.findings else 0
    began = time.perf_counter()
    crashes = 0
    told = dict.fromkeys((Kind.OK, Kind.FAIL, Kind.INFO), 0.0)
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        outcome = simulate(seed)
        crashes += outcome.crashes
        for kind, share in outcome.history.shares().items():
            told[kind] += share / arguments.seeds
        if outcome.findings:
            print(report(outcome))
            return 1
    shares = ", ".join(f"{kind} {share:.1%}" for kind, share in told.items())
    seconds = time.perf_counter() - began
    print(f"{arguments.seeds} seeds, {crashes} crashes, {shares}, no anomaly, {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
