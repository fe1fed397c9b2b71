"""`docs/reference/sql.md` is what the function table says.

REWRITE=1 pytest tests/unit/sql/test_function_list.py    writes it again
"""

import os
from pathlib import Path

from sql.function_list import function_list_page

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "sql.md"


def test_the_page_is_the_table() -> None:
    if os.environ.get("REWRITE") == "1":
        PAGE.write_text(function_list_page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == function_list_page(), "make docs writes it again"


def test_enough_functions_are_listed() -> None:
    lines = [line for line in function_list_page().splitlines() if line.startswith("| `")]
    assert sum(line.split(" | ")[0].count("`") // 2 for line in lines) >= 500
