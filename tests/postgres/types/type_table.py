"""The table of `docs/reference/types.md`, made of the code: how each type is stored.

python -m tests.postgres.types.type_table      writes the table into the page again
"""

from pathlib import Path
from typing import Final

from compute.arrow import arrow_type
from sql.parser.parse import parse
from sql.parser.type_names import resolve_type_name
from sql.types.sql_type import SqlType, format_type
from storage.delta.schema import delta_type

PAGE: Final = Path(__file__).parents[3] / "docs" / "reference" / "types.md"
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"
_SHOWN: Final = (
    ("boolean", ""), ("smallint", ""), ("integer", ""), ("bigint", ""), ("oid", ""),
    ("real", "NaN and the infinities are kept"),
    ("double precision", "NaN and the infinities are kept"),
    ("numeric(10,2)", "up to 38 digits; no NaN, no infinities (`22003`)"),
    ("numeric", "20 digits before the point and 18 after it; other values are `22003`"),
    ("text", ""),
    ("character varying(10)", "the length is enforced when a row is written"),
    ("character(10)", "without the blanks at the end"),
    ("name", ""),
    ('"char"', "one ASCII character, or none for the byte 0; bytes beyond are refused"),
    ("bytea", ""),
    ("uuid", "36 characters, lower case"),
    ("json", "as it was written"),
    ("jsonb", "PostgreSQL's text: keys ordered, of equal keys the last one"),
    ("date", "years 1 to 5874897; no infinity"),
    ("time", "microseconds since midnight"),
    ("timetz", "an integer that sorts as the values do; its formula is below"),
    ("timestamp", "no zone; years 1 to 294247; no infinity"),
    ("timestamptz", "an instant"),
    ("interval", "PostgreSQL's three fields, which do not mix"),
    ("integer[]", "one dimension that begins at 1; every scalar type has its array"),
    ("numeric(10,2)[]", ""),
)  # fmt: skip


def _type(name: str) -> SqlType:
    node = parse(f"select null::{name}")[0].node.targetList[0].val.typeName  # type: ignore[union-attr]
    return resolve_type_name(node)


def _delta(type_: SqlType) -> str:
    found = delta_type(arrow_type(type_))
    return _described(found)


def _described(found: object) -> str:
    match found:
        case {"type": "array", "elementType": element}:
            return f"array<{_described(element)}>"
        case {"type": "struct", "fields": fields}:
            inside = ", ".join(f"{field['name']}: {_described(field['type'])}" for field in fields)  # type: ignore[union-attr]
            return f"struct<{inside}>"
        case _:
            return str(found)


def table() -> str:
    """The lines of the table."""
    lines = ["| PostgreSQL | Delta | `meridian.type` | notes |", "| --- | --- | --- | --- |"]
    for name, remark in _SHOWN:
        type_ = _type(name)
        lines.append(f"| `{name}` | `{_delta(type_)}` | `{format_type(type_)}` | {remark} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the table again."""
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}{table()}{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
