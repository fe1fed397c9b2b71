"""`docs/clients.md`: the table of clients, cases and failures, made from the kept results.

INVARIANTS
  P1  the page follows from `tests/clients/results/` alone: the same results give the same page.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tests.clients.suites.suite import ROOT
from tests.clients.suites.verdicts import Verdict, needed_feature

PAGE = ROOT / "docs" / "clients.md"

_HEAD = """\
# Clients

`make clients` runs programs that were written for PostgreSQL, on PostgreSQL 18 and on Meridian.
It writes this page with `ARGS=--write`. A case counts if PostgreSQL passes it.
Cases that need a missing feature (stored functions, composite types, ..) are counted apart;
[Limitations](limitations.md) has these features.
"""


def written_page(results: Mapping[str, Sequence[Verdict]]) -> str:
    """The text of the page (P1)."""
    return "\n".join(_lines(results)) + "\n"


def _lines(results: Mapping[str, Sequence[Verdict]]) -> Iterator[str]:
    yield from _HEAD.splitlines()
    verdicts = [verdict for suite in results.values() for verdict in suite]
    yield ""
    yield "| suite | client | version | cases | passed | share |"
    yield "| --- | --- | --- | ---: | ---: | ---: |"
    for suite, found in results.items():
        for verdict in found:
            share = _share(verdict.passed, verdict.cases)
            names = f"{suite} | {verdict.client} | {verdict.version}"
            yield f"| {names} | {verdict.cases} | {verdict.passed} | {share} |"
    cases, passed = sum(v.cases for v in verdicts), sum(v.passed for v in verdicts)
    yield f"| all | {len(verdicts)} clients | | {cases} | {passed} | {_share(passed, cases)} |"
    yield from _apart(verdicts)
    yield from _failures(verdicts)


def _share(passed: int, cases: int) -> str:
    return f"{100 * passed / cases:.1f} %" if cases else "-"


def _apart(verdicts: Iterable[Verdict]) -> Iterator[str]:
    needed: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    for verdict in verdicts:
        for case, reason in verdict.apart.items():
            needed[needed_feature(case)] += 1
            passed[needed_feature(case)] += not reason
    if not needed:
        return
    yield from ("", "## Counted apart", "", "| needs | cases | passed |", "| --- | ---: | ---: |")
    for feature, cases in sorted(needed.items()):
        yield f"| {feature.replace('_', ' ')} | {cases} | {passed[feature]} |"


def _failures(verdicts: Iterable[Verdict]) -> Iterator[str]:
    rows = [
        f"| {verdict.client} | {case} | {_cell(reason)} |"
        for verdict in verdicts
        for case, reason in verdict.failures.items()
    ]
    if rows:
        yield from ("", "## Failures", "", "| client | case | reason |", "| --- | --- | --- |")
        yield from rows


def _cell(text: str) -> str:
    """Text that a table's cell can hold, and that is no markup."""
    for sign in ("\\", "|", "`", "*", "_", "<", "[", "]"):
        text = text.replace(sign, f"\\{sign}")
    return text
