"""What the runs of a session have judged is told at its end: proof without numbers is none."""

import pytest

from tests.resilience.faults.running import REPORTS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if REPORTS:
        terminalreporter.section("histories judged")
        for report in REPORTS:
            terminalreporter.line(str(report))
