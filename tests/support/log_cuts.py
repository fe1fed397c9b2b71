"""The cuts of a table's versions, as its log tells them to anybody."""

import json
from pathlib import Path


def cuts_of_versions(table: Path) -> dict[int, int]:
    """By version of a Delta table, the timestamp that it is of."""
    found: dict[int, int] = {}
    for path in sorted((table / "_delta_log").glob("*.json")):
        commit = json.loads(path.read_text().splitlines()[0])["commitInfo"]
        found[int(path.stem)] = commit["meridian"]["cut"]
    return found
