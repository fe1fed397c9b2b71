"""Print `docs/reference/sql.md`, the function table as a page: `python -m sql.function_list`.

Not here: what the functions do; that is PostgreSQL's manual.
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from sql.binder.expressions.acting_calls import ROW_CALL_FUNCTIONS
from sql.binder.expressions.session_calls import SIDE_EFFECT_FUNCTIONS
from sql.functions.table import FUNCTION_FILES, Function, FunctionKind, rows_of_file
from sql.types.sql_type import TYPE_OIDS, SqlType, format_type

_TITLES: Final = {
    "operators.txt": "Operators",
    "functions.txt": "Functions",
    "aggregates.txt": "Aggregates",
    "windows.txt": "Window functions",
    "sets.txt": "Table functions",
    "casts.txt": "Casts",
    "arrays.txt": "Arrays",
    "patterns.txt": "LIKE, SIMILAR TO and regular expressions",
    "texts.txt": "Text, bytea and uuid",
    "formats.txt": "Templates, dates, times and intervals",
    "mathematics.txt": "Mathematics",
    "statistics.txt": "Statistics and ordered sets",
    "json.txt": "JSON",
    "times.txt": "Times of day",
    "catalog_functions.txt": "Catalogs",
    "registered.txt": "Oids as names (regclass, regtype ..)",
    "system.txt": "The system",
    "session.txt": "The session: in the list of a SELECT without FROM",
    "enums.txt": "Enums",
    "aliases.txt": "Other names",
    "extensions.txt": "Extensions, after CREATE EXTENSION",
}
_HEAD: Final = """\
# Functions, operators, aggregates and casts

`make docs` generates this page from the function table (`sql/data/`); do not edit it.
PostgreSQL's manual says what each function does. Every row answers as PostgreSQL 18 does, or the
server refuses it with `0A000`.

The columns **Spark** and **local** are the engines (`SET engine = spark | local | auto`). Their
cells say how an engine computes a row:

| cell | meaning |
| --- | --- |
| `yes` | The engine computes it in its own SQL. |
| `Arrow UDF` | Spark computes it row by row in its Python workers, which is slower. |
| `by row` | The local engine computes it row by row in Python, outside of DuckDB: slower. |
| `–` | The server refuses it on this engine. |

- For some arguments, a computed pattern for example, Spark uses its Python workers even for `yes`.
- `…` means that the last argument repeats. `VARIADIC array` may stand in its place: `concat` and
  `concat_ws` then run as `array_to_string` does, `json_extract_path` and its kin as `#>` does, and
  all others by row or as an Arrow UDF.
- A statement without tables runs on neither engine: the server answers it itself, and every row
  below works there.

{count} functions, operators, aggregates and casts.
"""
_ABSENT: Final = "–"


def function_list_page() -> str:
    """The whole page."""
    rows = {file: list(filter(_is_shown, rows_of_file(file))) for file in FUNCTION_FILES}
    count = sum(map(len, rows.values()))
    parts = [_HEAD.format(count=count)]
    parts += [_section(_TITLES.get(file, file), found) for file, found in rows.items() if found]
    return "\n".join(parts)


def _is_shown(row: Function) -> bool:
    return not (row.internal or row.name.startswith("meridian_"))


def _section(title: str, rows: Sequence[Function]) -> str:
    lines = [f"## {title}", "", "| | Spark | local |", "| --- | --- | --- |"]
    lines += _lines(rows)
    return "\n".join([*lines, ""])


def _lines(rows: Sequence[Function]) -> Iterator[str]:
    def key(row: Function) -> tuple[str, str, str]:
        name = "" if row.kind is FunctionKind.CAST else row.name
        return name, _spark(row), _local(row)

    order = {name: index for index, name in enumerate(dict.fromkeys(key(row)[0] for row in rows))}
    ordered = sorted(rows, key=lambda row: (order[key(row)[0]], *key(row)[1:]))
    for (_, spark, local), group in groupby(ordered, key):
        signatures = ", ".join(f"`{_signature(row)}`" for row in group).replace("|", "\\|")
        yield f"| {signatures} | {spark} | {local} |"


def _spark(row: Function) -> str:
    if (
        row.spark is not None
        or row.rewrite is not None
        or row.name in SIDE_EFFECT_FUNCTIONS | ROW_CALL_FUNCTIONS
    ):
        return "yes"
    # Every aggregate of the evaluator is one of the local engine's too.
    missing = row.kind is FunctionKind.AGGREGATE and row.duckdb is None
    return _ABSENT if missing or row.kind is FunctionKind.WINDOW else "Arrow UDF"


def _local(row: Function) -> str:
    if row.rewrite is not None or row.name in SIDE_EFFECT_FUNCTIONS | ROW_CALL_FUNCTIONS:
        return "yes"
    if row.duckdb is None:
        return _ABSENT
    return "by row" if row.duckdb in ("@reference", "@lists") else "yes"


def _signature(row: Function) -> str:
    args = [_type(arg) for arg in row.args]
    match row.kind:
        case FunctionKind.CAST:
            return f"{args[0]} → {_type(row.result)}"
        case FunctionKind.OPERATOR:
            return " ".join([*args[:-1], row.name, args[-1]])
        case _:
            listed = ", ".join(args[1:] if row.within else args) + (", …" if row.variadic else "")
            within = f" within group (order by {args[0]})" if row.within else ""
            return f"{row.name}({listed}){within}"


def _type(name: str) -> str:
    return format_type(SqlType(name)) if name in TYPE_OIDS else name


if __name__ == "__main__":
    sys.stdout.write(function_list_page())
