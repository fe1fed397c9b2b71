"""Expressions for every row of the function table: sample values (`samples.py`), combined by rule.

Combinations are chosen by arithmetic, so that the same table always yields the same expressions.
Rows of pseudo-types are asked as rows of several concrete types (`polymorphic.py`).

Not here: rows that need a table, a type or a role of their own, which `tests/postgres/queries`
asks.
"""

from collections.abc import Iterator, Sequence
from math import gcd
from pathlib import Path
from typing import Final

from sql.binder.resolve.function_choice import returns_set
from sql.functions.table import FUNCTION_FILES, Function, FunctionKind, rows_of_file
from tests.postgres.functions.polymorphic import concrete, is_polymorphic
from tests.postgres.functions.samples import (
    CAST_TEXTS,
    IN_DOCUMENTS,
    NULL,
    NUMBER_TEMPLATES,
    PATTERNS,
    PLACED,
    SAMPLES,
    SMALL,
    TEXTS,
    TIME_TEMPLATES,
    WORDS,
    literal,
)

_FIRST = ("operators.txt", "functions.txt", "aggregates.txt", "casts.txt")
STATEMENTS = (
    "catalog_functions.txt",
    "registered.txt",
    "session.txt",
    "enums.txt",
    "variadic.txt",
    "extensions.txt",
)
"""Their cases are statements, in `tests/postgres/queries`."""
FAMILIES = {
    "postgresql": _FIRST,
    **{
        name.removesuffix(".txt"): (name,)
        for name in FUNCTION_FILES
        if name not in _FIRST + STATEMENTS
    },
}
"""Cases and answers are kept by family: the data files of the function table that it covers. What
stands in `cases/<family>.txt`, an expression a line, is asked besides.
"""
_CASES = Path(__file__).parent / "cases"
CASES_PER_ROW = 6
_CONCRETE: Final = {"any": "text", "anyelement": "int4"}
_DOCUMENTS: Final = ("json", "jsonb")
_TIMED: Final = ("time", "timetz", "timestamp", "timestamptz", "interval")
_PAIRED: Final = frozenset({"json_each", "json_each_text", "jsonb_each", "jsonb_each_text"})


def expressions(family: str) -> list[str]:
    """Expressions for every row of a family that SQL can reach, each once."""
    found: list[str] = []
    for row in (row for file in FAMILIES[family] for row in rows_of_file(file)):
        # What is ours is reached by what is written with it.
        ours = row.internal or "." in row.name or row.name.startswith("meridian_")
        if not ours and row.volatility != "volatile":
            for variant in concrete(row) if family != "postgresql" else (row,):
                found += _cases(variant)
    path = _CASES / f"{family}.txt"
    written = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return list(dict.fromkeys([*found, *(line for line in written if line[:2] not in ("", "--"))]))


def _cases(row: Function) -> Iterator[str]:
    match row.kind:
        case FunctionKind.CAST:
            yield from _casts(row)
        case FunctionKind.OPERATOR:
            yield from _operators(row)
        case FunctionKind.AGGREGATE:
            yield from _aggregates(row)
        case FunctionKind.FUNCTION:
            yield from _functions(row)
        case FunctionKind.WINDOW:
            yield from _windows(row)
        case FunctionKind.SET:
            pass  # their arguments are few and chosen: cases/sets.txt, cases/json.txt


def _casts(row: Function) -> Iterator[str]:
    source, target = row.args[0], row.result
    from_text = source in ("text", "varchar", "bpchar", "name") and target in CAST_TEXTS
    if from_text:
        values = TEXTS[CAST_TEXTS[target]]
        values = values if source == "text" else (*values[:3], NULL)
    elif source == "jsonb" and target not in ("json", "text", "varchar", "bpchar", "name"):
        values = TEXTS["to_scalar"]
    else:
        values = SAMPLES[source]
    shown = {"varchar": "varchar(3)", "bpchar": "char(4)", "numeric": "numeric(12,3)"}
    for index, value in enumerate(values):
        name = target
        # A modifier every other time; char is char(1) without one, so bpchar keeps its name.
        if index % 2 and target in shown:
            name = shown[target]
        elif source == target and target in _TIMED:
            name = f"{target}({index % 4})"
        # Over a column: the binder computes casts of constants itself.
        if source == "record":
            fields = "1, x" if value is None else f"{value}, x"
            yield f"(select cast(row({fields}) as {name}) from (values ('a,b'::text)) v(x))"
            continue
        yield f"(select cast(x as {name}) from (values ({literal(source, value)})) v(x))"


def _operators(row: Function) -> Iterator[str]:
    pattern = next(
        (
            p
            for p in ("~~", "~")
            if p == row.name.lstrip("!").rstrip("*") or (p == "~~" and "~~" in row.name)
        ),
        None,
    )
    if pattern is not None and len(row.args) == 2:
        column = SAMPLES[row.args[0]]
        for index, value in enumerate(PATTERNS[pattern]):
            right = literal(row.args[1], value)
            yield f"({literal(row.args[0], column[index % len(column)])} {row.name} {right})"
            other = column[(index * 3 + 1) % len(column)]
            yield f"({literal(row.args[0], other)} {row.name} {right})"
        return
    if len(row.args) == 1:
        for value in SAMPLES[row.args[0]]:
            yield f"({row.name} {literal(row.args[0], value)})"
        return
    left, right = (SAMPLES["text" if t == "anynonarray" else t] for t in row.args)
    if row.args[0] in _DOCUMENTS and row.args[1] in IN_DOCUMENTS:
        right = IN_DOCUMENTS[row.args[1]] if row.args[1] != "jsonb" else right
    types = ["int4" if t == "anynonarray" else t for t in row.args]
    if "anynonarray" in row.args:
        for other in ("int4", "bool", "float8", "numeric", "date", "bytea", "bpchar"):
            value = literal(other, SAMPLES[other][0])
            parts = [value if t == "anynonarray" else "'<'::text" for t in row.args]
            yield f"({parts[0]} {row.name} {parts[1]})"
        return
    if row.name in ("<<", ">>"):
        right = ("1", "33", "0", NULL, "5")
    count = max(len(left), len(right))
    for index in range(count):
        a, b = left[index % len(left)], right[index % len(right)]
        yield f"({literal(types[0], a)} {row.name} {literal(types[1], b)})"
        a, b = left[(index + 1) % len(left)], right[(index * 3 + 2) % len(right)]
        if index < CASES_PER_ROW:
            yield f"({literal(types[0], a)} {row.name} {literal(types[1], b)})"


def _within(row: Function) -> Iterator[str]:
    type_ = {"anyelement": "text"}.get(row.args[0], row.args[0])
    values = SAMPLES[type_]
    direct = ("0.5", "0", "1", "0.3", "null::float8", "1.5") if len(row.args) == 2 else ("",)
    for index, argument in enumerate(direct):
        chosen = [values[(index + at) % len(values)] for at in range(5 - index % 3)]
        rows = ", ".join(f"({literal(type_, value)})" for value in [*chosen, chosen[0]])
        for order in ("x", "x desc"):
            call = f"{row.name}({argument}) within group (order by {order})"
            yield f"(select {call} from (values {rows}) v(x))"
        yield f"(select {call} filter (where x is null) from (values {rows}) v(x))"


def _two_floats(row: Function) -> Iterator[str]:
    values = [value for value in SAMPLES["float8"] if value not in ("1e308", "1e-310")]
    for index, size in enumerate((4, 3, 2, 1, 0, 5)):
        chosen = [
            (values[(index + at) % len(values)], values[(index * 2 + at * 3 + 1) % len(values)])
            for at in range(size)
        ]
        rows = ", ".join(
            f"({literal('float8', y)}, {literal('float8', x)})" for y, x in [*chosen, (NULL, "1")]
        )
        yield f"(select {row.name}(y, x) from (values {rows}) v(y, x))"
        yield f"(select {row.name}(y, x) filter (where y < 3) from (values {rows}) v(y, x))"


def _aggregates(row: Function) -> Iterator[str]:
    if row.within:
        yield from _within(row)
        return
    if row.args == ("float8", "float8"):
        yield from _two_floats(row)
        return
    if row.args == ("any", "any"):
        yield from _object_aggregates(row)
        return
    if row.nulls:
        yield from _listing(row)
        return
    if not row.args:
        yield "(select count(*) from (values (1), (null)) v(x))"
        yield "(select count(*) from (values (1), (null)) v(x) where x > 5)"
        yield "(select count(*) filter (where x is null) from (values (1), (null)) v(x))"
        return
    type_ = "int4" if row.args[0].startswith("any") else row.args[0]
    # PostgreSQL's avg(float8) fails when the squares overflow that only stddev needs; ours does
    # not.
    values = [value for value in SAMPLES[type_] if value not in ("1e308", "3e38")]
    second = (
        ", ','::text" if row.args[1:] == ("text",) else ", '\\x2c'::bytea" if row.args[1:] else ""
    )
    order = " order by x" if second else ""
    for index, size in enumerate((3, 4, 2, 1, 0)):
        chosen = [values[(index * 2 + at) % len(values)] for at in range(size)] or [None]
        rows = ", ".join(f"({literal(type_, value)})" for value in [*chosen, None])
        yield f"(select {row.name}(x{second}{order}) from (values {rows}) v(x))"
        if index == 1:
            call, twice = f"(x{second}{order})", f"(values {rows}, {rows}) v(x)"
            yield f"(select {row.name}(distinct {call[1:]} from {twice})"
            yield f"(select {row.name}{call} filter (where x is null) from (values {rows}) v(x))"


def _listing(row: Function) -> Iterator[str]:
    """Aggregates that keep all values, in the order of the rows."""
    type_ = row.args[0]
    values = SAMPLES[type_]
    for index, size in enumerate((3, 4, 2, 1, 0)):
        chosen = [values[(index * 2 + at) % len(values)] for at in range(size)]
        parts = [f"({n}, {literal(type_, value)})" for n, value in enumerate([*chosen, NULL])]
        rows = f"(values {', '.join(parts)}) v(n, x)"
        yield f"(select {row.name}(x order by n) from {rows})"
        yield f"(select {row.name}(x order by n desc) filter (where n > {index}) from {rows})"


def _object_aggregates(row: Function) -> Iterator[str]:
    """Aggregates of keys and values."""
    for keys, type_ in (
        ("ab", "int4"),
        ("aa", "text"),
        ("ba-", "jsonb"),
        ("", "bool"),
        ("cab", "numeric"),
    ):
        values = SAMPLES[type_]
        shown = [literal("text", NULL if key == "-" else key) for key in keys]
        parts = [
            f"({n}, {key}, {literal(type_, values[n * 3 % len(values)])})"
            for n, key in enumerate(shown)
        ]
        rows = [*parts, f"(9, 'z'::text, null::{type_})"]
        yield f"(select {row.name}(k, x order by n) from (values {', '.join(rows)}) v(n, k, x))"
        rows = [*parts, f"(9, null::text, null::{type_})"]
        yield f"(select {row.name}(k, x order by n) from (values {', '.join(rows)}) v(n, k, x))"
        yield f"(select {row.name}(n, x order by n) from (values {', '.join(rows)}) v(n, k, x))"


_FRAMES: Final = ("", " rows between 1 preceding and 1 following", " groups current row")


def _windows(row: Function) -> Iterator[str]:
    """The values over five rows, two of them peers, as an array."""
    values = SAMPLES["int4"]
    # What peers have is told by functions that look at whole groups of them only.
    over_peers = row.name in ("rank", "dense_rank", "percent_rank", "cume_dist")
    for index, order in enumerate(
        ("k" if over_peers else "k, n", "k desc nulls last, n", "n", "n desc")
    ):
        parts = [
            f"({n}, {literal('int4', k)}, {literal('int4', values[(n * 2 + index) % len(values)])})"
            for n, k in enumerate(("1", "2", "2", NULL, "3"))
        ]
        rows = f"(values {', '.join(parts)}) v(n, k, x)"
        for number in (2, 1, 0, NULL) if len(row.args) > 1 or row.name == "ntile" else (1,):
            shown = literal("int4", None if number is None else str(number))
            arguments = ", ".join(["x", shown, literal("int4", values[index])][: len(row.args)])
            called = f"{row.name}({shown if row.name == 'ntile' else arguments})"
            frame = _FRAMES[index % 3] if "value" in row.name else ""
            over = (
                f"order by {order}{frame}" if index < 3 else f"partition by n % 2 order by {order}"
            )
            made = f"select n, {called} over ({over}) as y from {rows}"
            yield f"(select array_agg(y order by n) from ({made}) w)"


_MIXED: Final = (
    ("text", "a"), ("int4", "-7"), ("text", "b"), ("numeric", "1.50"), ("bool", "true"),
    ("_int4", "{1,NULL}"), ("timestamptz", "2024-02-29 12:00:00+00"), ("jsonb", '{"x": [1]}'),
    ("text", NULL), ("float8", "-0"), ("int4", NULL), ("date", "1970-01-01"),
    ("json", ' {"b" : 1}'),
)  # fmt: skip


def _variadic(row: Function) -> Iterator[str]:
    """None to three of the arguments that repeat."""
    first = [literal(row.args[0], value) for value in SAMPLES[row.args[0]]] if row.args[1:] else []
    if row.args[-1] == "any":
        rest = [literal(type_, value) for type_, value in _MIXED]
    else:
        rest = [literal("text", value) for value in IN_DOCUMENTS["text"]]
    for index in range(len(_MIXED)):
        count = (1, 2, 3, 2)[index % 4]
        repeated = [rest[(index + at * 4) % len(rest)] for at in range(count)]
        yield f"{row.name}({', '.join([*first[index % max(len(first), 1) :][:1], *repeated])})"


def _functions(row: Function) -> Iterator[str]:
    if row.variadic and "json" in row.name:
        yield from _variadic(row)
        return
    arguments: list[Sequence[str | None]] = []
    for position, type_ in enumerate(row.args):
        words = WORDS.get(row.name)
        placed = _placed(row, position)
        if placed is not None:
            arguments.append(placed)
        elif words is not None and type_ == "text" and position == 0:
            arguments.append(words)
        elif row.name == "date_trunc" and position == 2:
            arguments.append(WORDS["timezone"])
        elif position and row.args[0] in _DOCUMENTS and type_ in IN_DOCUMENTS:
            arguments.append(IN_DOCUMENTS[type_])
        elif position and type_ == "int4":
            arguments.append(SMALL)
        elif position and type_ == "text":
            arguments.append(("l", "b_", "", "lo", NULL, "-", "b", "xyz", "€"))
        else:
            arguments.append(SAMPLES[_CONCRETE.get(type_, type_)])
    yield from _calls(row, arguments)


def _placed(row: Function, position: int) -> Sequence[str | None] | None:
    """The values that are special for this place, if the row has such a place."""
    if row.name == "to_char" and position:
        dated = row.args[0] in ("timestamp", "timestamptz", "interval")
        return TIME_TEMPLATES if dated else NUMBER_TEMPLATES
    if row.name == "to_timestamp" and len(row.args) == 1:
        return None
    if row.name == "timezone" and row.args[0] != "interval":
        # What a zone with a summer has now is no answer to record.
        fixed = ("UTC", "Asia/Tokyo", NULL, "Nowhere/None")
        return fixed if row.args == ("text", "timetz") and not position else None
    if row.name.startswith("text") and position and "regex" not in row.name:
        return PATTERNS["~~"] if row.name.endswith("like") else None
    return PLACED.get(row.name, {}).get(position)


def _calls(row: Function, arguments: Sequence[Sequence[str | None]]) -> Iterator[str]:
    if row.name == "make_date" or row.name == "make_timestamp":
        return
    count = max((len(values) for values in arguments), default=1)
    wanted = count if len(arguments) < 2 else max(count, CASES_PER_ROW * 2)
    for index in range(wanted):
        parts = [
            literal(
                type_ if is_polymorphic(row) else _CONCRETE.get(type_, type_),
                values[(index * _step(at, len(values)) + at) % len(values)],
            )
            for at, (type_, values) in enumerate(zip(row.args, arguments, strict=True))
        ]
        if row.name == "extract":
            field = parts[0].partition("::")[0]
            yield f"extract({field} from {parts[1]})"
        elif row.name in _PAIRED:
            yield f"(select array_agg(key || '=' || value::text) from {row.name}({parts[0]}))"
        elif row.name == "timestamp":
            yield f"pg_catalog.timestamp({', '.join(parts)})"
        elif returns_set(row.name):
            yield f"array(select {row.name}({', '.join(parts)}))"
        else:
            yield f"{row.name}({', '.join(parts)})"


def _step(position: int, count: int) -> int:
    """How far neighbours are apart, another way at each position; each value has its turn."""
    step = 2 * position + 1
    while gcd(step, count) > 1:
        step += 2
    return step
