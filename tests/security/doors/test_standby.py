"""A stand-by checks its own files at its start, not when it takes over (item 6 of the doors)."""

import time
from pathlib import Path

import pytest

from tests.resilience.failover.coordinators import sharing
from tests.security.doors.conftest import refusal, value

RULES = "host all meridian all trust\n"


def test_a_stand_by_takes_over_with_the_rules_of_its_start(tmp_path: Path) -> None:
    hba = tmp_path / "hba"
    hba.write_text(RULES)
    with sharing(tmp_path, 2, f"hba_file={hba}") as shared:
        leader, other = (one.server for one in shared.coordinators)
        leader.start()
        other.launch("--standby")
        until = time.monotonic() + 120
        while "standing by" not in other.log and time.monotonic() < until:
            time.sleep(0.1)
        hba.write_text("nonsense\n")
        leader.kill()
        other.wait_until_ready()
        assert value(other, "select current_user") == "meridian"
        assert refusal(other, user="ann").startswith("no pg_hba.conf entry")
        with pytest.raises(RuntimeError, match="hba"):
            leader.start()
