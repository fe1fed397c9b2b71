"""Parse and check the options of EXPLAIN (ParseExplainOptionList).

INVARIANTS
  X1  an option that PostgreSQL refuses is refused in the same words. An option that has nothing to
      report here (COSTS, BUFFERS, WAL, MEMORY, SERIALIZE) is checked and has no effect.
"""

from typing import Final

from sql.errors import SqlError, not_supported
from sql.parser.option_values import option_boolean, option_text
from sql.parser.syntax import Node, offset_to_position
from sql.statements.explain_options import ExplainOptions

_BOOLEANS: Final = frozenset(
    {
        "analyze", "verbose", "costs", "settings", "generic_plan", "buffers", "wal", "timing",
        "summary", "memory",
    }
)  # fmt: skip
_VALUES: Final = {
    "format": frozenset({"text", "json", "xml", "yaml"}),
    "serialize": frozenset({"none", "off", "text", "binary"}),
}
_FORMATS: Final = frozenset({"text", "json"})
"""Those that there are here."""


def explain_options(node: Node) -> ExplainOptions:
    """The options of an EXPLAIN statement. Raises 42601, 22023, 0A000."""
    values: dict[str, str] = {}
    for option in node.options or ():
        values[option.defname] = _checked(option)
    analyze = values.get("analyze") == "true"
    for name in ("wal", "timing", "serialize"):
        if not analyze and values.get(name, "false") not in ("false", "none", "off"):
            message = f"EXPLAIN option {name.upper()} requires ANALYZE"
            raise SqlError("22023", message)
    if analyze and values.get("generic_plan") == "true":
        message = "EXPLAIN options ANALYZE and GENERIC_PLAN cannot be used together"
        raise SqlError("22023", message)
    if values.get("generic_plan") == "true":
        raise not_supported("EXPLAIN (GENERIC_PLAN)")
    return ExplainOptions(
        analyze,
        values.get("verbose") == "true",
        values.get("settings") == "true",
        analyze and values.get("timing", "true") == "true",
        values.get("summary", "true" if analyze else "false") == "true",
        values.get("format") == "json",
        frozenset(values),
    )


def _checked(option: Node) -> str:
    """The value of one option; of a Boolean `true` or `false`."""
    name: str = option.defname
    if name in _BOOLEANS:
        return "true" if option_boolean(option) else "false"
    if name not in _VALUES:
        message = f'unrecognized EXPLAIN option "{name}"'
        raise SqlError("42601", message, offset_to_position(option.location))
    if option.arg is None and name == "serialize":
        return "text"
    value = option_text(option)
    if value not in _VALUES[name]:
        message = f'unrecognized value for EXPLAIN option "{name}": "{value}"'
        raise SqlError("22023", message, offset_to_position(option.location))
    if name == "format" and value not in _FORMATS:
        raise not_supported(
            f"EXPLAIN (FORMAT {value.upper()})", offset_to_position(option.location)
        )
    return value
