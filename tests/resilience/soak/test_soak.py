"""A crowd of 64 for a quarter of a minute; `make soak` for half an hour."""

from pathlib import Path

import pytest

from tests.resilience.soak.running import soak

SECONDS = 15.0


def test_nothing_leaks_and_nobody_hangs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    soaked = soak(tmp_path, SECONDS)
    with capsys.disabled():
        print(f"\n{soaked}")
    assert not soaked.findings, "\n".join(map(str, soaked.findings[:20]))
    # It proves something only if everybody came to do something.
    assert len(soaked.crowd.done) > 10
    assert soaked.crowd.states["57014"] > 20
    assert soaked.crowd.states["57P01"] > 5
