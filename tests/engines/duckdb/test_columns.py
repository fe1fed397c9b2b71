"""Every row of the function table on DuckDB over columns with NULLs, against the evaluator."""

from collections.abc import Iterator
from itertools import islice, product

from compute.reference.executor import execute_plan
from sql.errors import SqlError
from sql.functions.table import Function, FunctionKind, rows_of_file
from sql.plan.nodes import Plan, output_columns
from sql.types.text_output import format_text
from tests.engines.duckdb.local_engine import Engine
from tests.postgres.functions.generating import FAMILIES
from tests.postgres.functions.recorded import Answer
from tests.postgres.functions.samples import SAMPLES, TEXTS, WORDS, literal, spelled
from tests.postgres.functions.test_reference import plan_of
from tests.postgres.functions.test_spark import close_floats

ROWS_MAX = 24
PLAIN = ("postgresql", "patterns", "texts", "formats", "mathematics", "statistics", "system")
"""Families whose rows have types of plain samples."""
PATTERNS = ("h%", "%l%", "", "l+", "[a-c]", "o$", None)


def samples(row: Function, position: int) -> list[str | None]:
    type_ = row.args[position]
    if row.kind is FunctionKind.CAST and type_ in ("text", "varchar", "bpchar"):
        return [*(TEXTS.get(f"to_{row.result}") or TEXTS["to_int"]), *SAMPLES["text"]]
    if type_ == "text" and row.name in WORDS:
        return list(WORDS[row.name])
    if row.kind is FunctionKind.OPERATOR and "~" in row.name and position:
        return list(PATTERNS)
    return list(SAMPLES["text" if type_ in ("any", "anynonarray", "anyelement") else type_])


def call(row: Function) -> str:
    names = [f"c{position}" for position in range(len(row.args))]
    if row.kind is FunctionKind.CAST:
        return f"cast(c0 as {spelled(row.result)})"
    if row.kind is FunctionKind.OPERATOR:
        return f"(c0 {row.name} c1)" if len(names) == 2 else f"({row.name} c0)"
    return f"{row.name}({', '.join(names)})"


def rows(row: Function) -> Iterator[str]:
    """Arguments of a row, as in VALUES; neighbours differ in all of them."""
    columns = [samples(row, position) for position in range(len(row.args))]
    combined = list(product(*columns))
    step = max(1, len(combined) // ROWS_MAX) | 1
    for index in range(min(len(combined), ROWS_MAX)):
        values = combined[index * step % len(combined)]
        types = [
            "text" if type_ in ("any", "anynonarray", "anyelement") else type_ for type_ in row.args
        ]
        yield f"({', '.join(map(literal, types, values))})"


def over(row: Function, values: list[str]) -> Plan:
    names = ", ".join(f"c{position}" for position in range(len(row.args)))
    numbered = [f"({number}, {value[1:]}" for number, value in enumerate(values)]
    text = f"select {call(row)} as x from (values {', '.join(numbered)}) v(n, {names}) order by n"
    return plan_of(text.removeprefix("select "))


def shown(value: object, plan: Plan) -> Answer:
    type_ = output_columns(plan)[0].type
    text = None if value is None else format_text(value, type_)  # type: ignore[arg-type]
    return Answer(type_.name, text)


def test_functions_over_columns(engine: Engine) -> None:
    wrong: list[str] = []
    compared = 0
    for row in (row for family in PLAIN for file in FAMILIES[family] for row in rows_of_file(file)):
        if row.kind is FunctionKind.AGGREGATE or row.internal or row.duckdb is None:
            continue
        if not row.args or row.volatility == "volatile" or row.name == "extract":
            continue
        good: list[str] = []
        for values in islice(rows(row), ROWS_MAX):
            try:
                list(execute_plan(over(row, [values]), {}))
            except SqlError:
                continue
            good.append(values)
        if not good:
            continue
        plan = over(row, good)
        try:
            expected = [value for (value,) in execute_plan(plan, {})]
            found = [value for (value,) in engine.values(plan)]
        except SqlError as error:
            if error.sqlstate != "0A000":
                wrong.append(f"{row.id}: {error.sqlstate} {error.message}")
            continue
        compared += 1
        for values, one, other in zip(good, expected, found, strict=True):
            right, ours = shown(one, plan), shown(other, plan)
            if right != ours and not close_floats(ours, right):
                wrong.append(f"{row.id} of {values}: {ours.text} instead of {right.text}")
    assert not wrong, "\n".join(wrong[:50])
    assert compared > 350, compared
