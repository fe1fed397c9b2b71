"""The options of an EXPLAIN statement, as given."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """The requested options. `given`: the names that were written."""

    analyze: bool = False
    verbose: bool = False
    settings: bool = False
    timing: bool = False
    summary: bool = False
    json: bool = False
    given: frozenset[str] = frozenset()
