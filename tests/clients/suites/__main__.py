"""`python -m tests.clients.suites [NAME ..] [--server meridian|postgresql|both] [--write]`.

Runs suites, prints a line for each client, and ends with 1 if a case that must pass does not (Q2).
"""

import argparse
import sys
from collections.abc import Iterable, Sequence

from tests.clients.suites.outcomes import Outcome
from tests.clients.suites.page import PAGE, written_page
from tests.clients.suites.running import SERVERS, NotRun, Ran, prepare, run_on
from tests.clients.suites.suite import Suite, all_suites
from tests.clients.suites.verdicts import (
    Verdict,
    allow_more,
    broken_promises,
    judge,
    keep_results,
    needed_feature,
    results,
)


def main(arguments: Sequence[str]) -> int:
    """Run what is named; the exit code."""
    suites = all_suites()
    options = _options(arguments, sorted(suites))
    if options.page:
        PAGE.write_text(written_page(results()))
        return 0
    servers = SERVERS if options.server == "both" else (options.server,)
    broken = 0
    for name in options.names or sorted(suites):
        broken += _run_suite(suites[name], servers, options)
    if options.write:
        PAGE.write_text(written_page(results()))
    return 1 if broken else 0


def _options(arguments: Sequence[str], names: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.clients.suites", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument("--server", choices=(*SERVERS, "both"), default="both")
    parser.add_argument("--write", action="store_true", help="allow files, results and the page")
    parser.add_argument("--page", action="store_true", help="only the page, from kept results")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(names):
        parser.error(f"no suite is called {', '.join(sorted(unknown))}")
    if options.write and options.server != "both":
        parser.error("--write needs both servers")
    return options


def _run_suite(suite: Suite, servers: Sequence[str], options: argparse.Namespace) -> int:
    """Run one suite; how many cases that must pass do not."""
    try:
        prepare(suite)
    except NotRun as reason:
        _say(f"{suite.name}: not run: {reason}")
        return 0
    ran = {server: run_on(suite, server) for server in servers}
    for run in ran.values():
        for complaint in run.complaints:
            _say(f"{suite.name} on {run.server}: {complaint}")
    if len(ran) == 1:
        _tell_one(next(iter(ran.values())))
    else:
        verdicts = judge(ran["postgresql"].outcomes, ran["meridian"].outcomes)
        for verdict in verdicts:
            _tell(verdict)
        if options.write:
            keep_results(suite.name, verdicts)
            more = sum(map(allow_more, verdicts))
            _say(f"{suite.name}: {more} more cases must pass from now on")
    if "meridian" not in ran:
        return 0
    return _tell_broken(suite, ran.values(), ran["meridian"].outcomes)


def _tell(verdict: Verdict) -> None:
    names = f"{verdict.client} {verdict.version}"
    apart = f", {len(verdict.apart)} apart" if verdict.apart else ""
    _say(f"{names}: {verdict.cases} cases, {verdict.passed} passed{apart}")
    for case, reason in verdict.failures.items():
        _say(f"  {case}: {reason}")
    for case, reason in verdict.wrong.items():
        _say(f"  {case}: fails on PostgreSQL: {reason}")


def _tell_one(run: Ran) -> None:
    clients: dict[str, list[Outcome]] = {}
    for outcome in run.outcomes:
        clients.setdefault(outcome.client, []).append(outcome)
    for client, outcomes in sorted(clients.items()):
        passed = sum(outcome.ok for outcome in outcomes)
        names = f"{client} {outcomes[0].version}"
        _say(f"{names} on {run.server}: {len(outcomes)} cases, {passed} passed")
        for outcome in outcomes:
            if not outcome.ok:
                apart = " (apart)" if needed_feature(outcome.case) else ""
                _say(f"  {outcome.case}{apart}: {outcome.reason}")


def _tell_broken(suite: Suite, runs: Iterable[Ran], ours: Sequence[Outcome]) -> int:
    kept = [verdict.client for verdict in results().get(suite.name, ())]
    clients = {outcome.client for run in runs for outcome in run.outcomes} | set(kept)
    broken = broken_promises(clients, ours)
    for client, case, reason in broken:
        _say(f"{client}: {case} must pass: {reason}")
    return len(broken)


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
