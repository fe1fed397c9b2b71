"""How fast COPY reads values in other forms than the engine's: `python -m tests.bench.copy_forms`.

    100,000 values of one column, as text ─▶ `CopyReader` ─▶ Arrow

Processor time of the reader alone, without a server; the goal is 500,000 values a second.
"""

import argparse
import json
import time
from collections.abc import Callable, Mapping

from coordinator.pgwire.copy_in import CopyReader
from sql.statements.copy_options import CopyOptions
from sql.types.sql_type import SqlType

_GOAL = 500_000
_PRICE = SqlType("numeric", (12 << 16 | 2) + 4, 12, 2)


def _document(n: int) -> str:
    return json.dumps({"id": n, "name": f"n {n}", "at": n / 7, "tags": ["a", "b"], "ok": n % 2 < 1})


FORMS: Mapping[str, tuple[SqlType, Callable[[int], str]]] = {
    "2020-1-2": (SqlType("date"), lambda n: f"{1990 + n % 40}-{n % 12 + 1}-{n % 28 + 1}"),
    "01/02/2020": (SqlType("date"), lambda n: f"{n % 12 + 1:02}/{n % 28 + 1:02}/{1990 + n % 40}"),
    "2020-01-01 00:00Z": (
        SqlType("timestamptz"), lambda n: f"2020-{n % 12 + 1:02}-01 {n % 24:02}:{n % 60:02}Z"
    ),
    "+5": (SqlType("int4"), lambda n: f"+{n}"),
    "+1.005 of numeric(12,2)": (_PRICE, lambda n: f"+{n}.{n % 1000:03}"),
    "1 day 5 hours": (SqlType("interval"), lambda n: f"1 day {n} hours"),
    "5 years 1 mon -3 days 01:02:03": (
        SqlType("interval"), lambda n: f"{n % 9} years 1 mon -{n % 30} days {n % 24:02}:02:03"
    ),
    "5 minutes 6 seconds": (SqlType("interval"), lambda n: f"{n} minutes {n % 60} seconds"),
    "{1,2,3}": (SqlType("_int4"), lambda n: f"{{{n},{-n},{n % 7}}}"),
    "{1, NULL, 3}": (SqlType("_int4"), lambda n: f"{{{n}, NULL, {n % 7}}}"),
    '{"a b","c d",x}': (SqlType("_text"), lambda n: f'{{"name {n}","c d",x}}'),
    '{"a\\"b"}': (SqlType("_text"), lambda n: f'{{"name \\\\"{n}","c d",x}}'),
    "jsonb, five keys": (SqlType("jsonb"), _document),
    "jsonb, one key": (SqlType("jsonb"), lambda n: f'{{"a": {n}}}'),
    "jsonb, arrays": (SqlType("jsonb"), lambda n: f"[{n}, {', '.join(['1.50'] * (n % 6 + 1))}]"),
    "jsonb, escapes": (SqlType("jsonb"), lambda n: f'{{"a": "x\\\\u00e4 {n}\\\\n"}}'),
    "json, five keys": (SqlType("json"), _document),
}  # fmt: skip


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(prog="tests.bench.copy_forms")
    parser.add_argument("--values", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for name, (type_, form) in FORMS.items():
        data = "".join(f"{form(n)}\n" for n in range(options.values)).encode()
        seconds = min(_seconds(type_, data, options.values) for _ in range(options.rounds))
        rate = options.values / seconds
        print(f"{name:32} {rate / 1e3:8,.0f} k/s{'' if rate >= _GOAL else '   misses'}", flush=True)


def _seconds(type_: SqlType, data: bytes, values: int) -> float:
    reader = CopyReader(CopyOptions(), [type_], ["c"])
    began = time.process_time()
    rows = sum(batch.num_rows for batch in reader.feed(data))
    rows += sum(batch.num_rows for batch in reader.finish())
    assert rows == values, "every value is read"
    return time.process_time() - began


if __name__ == "__main__":
    main()
