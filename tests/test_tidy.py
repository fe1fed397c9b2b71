"""The shape of the code, as tests: lengths, names, docstrings, forbidden texts.

Not here: what ruff, mypy, pyright and the import contracts already see (docstrings of public
functions, unused names, layers).
"""

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("coordinator", "sql", "storage", "compute", "ingest")
PROSE = ("README.md", "ARCHITECTURE.md", "Dockerfile", "Makefile", "pyproject.toml")

FUNCTION_LINES_MAX = 70
FILE_LINES_END = 800
FILE_LINES_MAX = 500  # the aim is 400

# Files above the limit for which a reason is good enough, up to the end, and why.
LONG_FILES = {
    "coordinator/driver/driver.py": "one method for each request of the protocol, and one loop",
    "coordinator/driver/timelines.py": "one method for each request of the protocol",
    "coordinator/transaction/transaction.py": "one state machine, whose states share all of it",
    "sql/catalog/catalog.py": "table, index of tables and catalog refer to each other",
    "sql/plan/nodes.py": "expressions, frames and plans refer to each other: one recursive type",
}

# Words that say nothing about what is inside.
EMPTY_NAMES = frozenset({"utils", "util", "helpers", "helper", "common", "manager", "data", "info"})

# Put together here, so that this file does not find itself.
MACHINE_PATHS = re.compile("/" + r"(?:work|root|home/\w+|Users/\w+)/[\w.]")
REGISTRY_HOSTS = re.compile(
    r"\b(?:pypi|pythonhosted|npmjs|crates|maven|docker|ghcr|quay|gcr)\."
    + r"(?:org|com|io|apache)\b"
)
UNFINISHED = re.compile("contract" + " only|FIX" + r"ME\b|Not" + r"ImplementedError")


def _python_files() -> list[Path]:
    return sorted(path for place in (*PACKAGES, "tests") for path in (ROOT / place).rglob("*.py"))


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _text_files() -> Iterator[Path]:
    yield from _python_files()
    yield from (ROOT / name for name in PROSE if (ROOT / name).exists())
    for place in (*PACKAGES, "deploy", "tests", ".ci"):
        for path in sorted((ROOT / place).rglob("*")):
            if path.is_file() and path.suffix in {".md", ".yml", ".toml", ".txt", ".sql", ".test"}:
                yield path


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def _is_type_name(node: ast.AST) -> bool:
    """`type(x).__name__`."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr in ("__name__", "__qualname__")
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "type"
    )


def _asks_names_of_types(node: ast.AST) -> bool:
    """Whether a class is told by its name: compared, looked up, or kept for that."""
    match node:
        case ast.Compare():
            asked = [node.left, *node.comparators]
        case ast.Subscript():
            asked = [node.slice]
        case ast.Match():
            asked = [node.subject]
        case ast.Assign() | ast.AnnAssign() | ast.NamedExpr():
            asked = [] if node.value is None else [node.value]
        case ast.Call(func=ast.Attribute(attr="get")):
            asked = [*node.args]
        case ast.Attribute(attr="__class__"):
            return True
        case _:
            asked = []
    return any(map(_is_type_name, asked))


def test_classes_are_not_told_by_their_names() -> None:
    found = [
        f"{_name(path)}:{getattr(node, 'lineno', 0)}: isinstance, match or a table keyed by class"
        for path in _python_files()
        if path.relative_to(ROOT).parts[0] in PACKAGES
        for node in ast.walk(_tree(path))
        if _asks_names_of_types(node)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "type(node).__name__ == 'SelectStmt'",
        "type(node).__name__ not in _NAMES",
        "_BINDERS[type(node).__name__]",
        "_BINDERS.get(type(node).__name__)",
        "name = type(node).__name__",
        "node.__class__ is SelectStmt",
    ],
)
def test_a_class_that_is_told_by_its_name_is_found(text: str) -> None:
    assert any(map(_asks_names_of_types, ast.walk(ast.parse(text))))


def test_functions_fit_on_a_screen() -> None:
    long = [
        f"{_name(path)}:{node.lineno} {node.name} has {length} lines"
        for path in _python_files()
        for node in _functions(path)
        if (length := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES_MAX
    ]
    assert not long, "\n".join(long)


def test_files_stop_at_a_length() -> None:
    long = {_name(p): n for p in _python_files() if (n := _lines(p)) > FILE_LINES_MAX}
    unexplained = {name: n for name, n in long.items() if name not in LONG_FILES}
    assert not unexplained, f"split by responsibility: {unexplained}"
    assert max(long.values(), default=0) <= FILE_LINES_END
    shrunk = {name for name in LONG_FILES if name not in long}
    assert not shrunk, f"no longer long, take them off the list: {shrunk}"


def test_every_module_says_what_it_is() -> None:
    silent = [_name(path) for path in _python_files() if not ast.get_docstring(_tree(path))]
    assert not silent


def test_init_files_hold_a_docstring_and_nothing_else() -> None:
    crowded = [
        _name(path)
        for path in _python_files()
        if path.name == "__init__.py" and len(_tree(path).body) > 1
    ]
    assert not crowded


def test_names_say_something() -> None:
    found: list[str] = []
    for path in _python_files():
        # A directory `sql/data` holds data files, not a module.
        found += [_name(path)] if EMPTY_NAMES & set(path.stem.split("_")) else []
        for node in ast.walk(_tree(path)):
            name = node.name if isinstance(node, ast.ClassDef) else ""
            if re.search("(Manager|Helper|Util)s?$", name):
                found.append(f"{_name(path)}:{node.lineno} {name}")
    assert not found


def test_nothing_is_left_unfinished() -> None:
    found = [
        f"{_name(path)}: {match[0]}"
        for path in _python_files()
        for match in UNFINISHED.finditer(path.read_text())
    ]
    assert not found


@pytest.mark.parametrize(
    ("what", "pattern"),
    [("path of one machine", MACHINE_PATHS), ("registry host", REGISTRY_HOSTS)],
    ids=["machine-paths", "registry-hosts"],
)
def test_files_belong_to_no_machine(what: str, pattern: re.Pattern[str]) -> None:
    found = [
        f"{_name(path)}: {what} {match[0]}"
        for path in _text_files()
        for match in pattern.finditer(path.read_text(errors="replace"))
    ]
    assert not found


def test_testdata_is_used() -> None:
    """A file of testdata is named, or matched by a pattern, in the tests beside it."""
    unused: list[str] = []
    for directory in (ROOT / "tests").rglob("testdata"):
        words = {
            node.value
            for path in directory.parent.rglob("*.py")
            for node in ast.walk(_tree(path))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        files = sorted(path for path in directory.rglob("*") if path.is_file())
        used = {
            path
            for path in files
            if any(_mentions(word, path, path.relative_to(directory)) for word in words)
        }
        # The other half of a pair: `*.sql` is matched, `.expected` is the suffix of the answers.
        stems = {path.with_suffix("") for path in used}
        used |= {p for p in files if p.suffix in words and p.with_suffix("") in stems}
        unused += [_name(path) for path in files if path not in used]
    assert not unused


def _mentions(word: str, path: Path, relative: Path) -> bool:
    if "*" in word:
        return fnmatch(path.name, word) or fnmatch(relative.as_posix(), word)
    return word in {path.name, path.stem, relative.as_posix(), relative.parts[0]}


def test_make_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[0].split()
    documented = re.findall(r"^([\w-]+):.*## ", makefile, re.MULTILINE)
    assert set(phony) - set(documented) == {"formatted"}


def test_every_dependency_has_a_reason() -> None:
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    bare = [
        line for line in lines if re.match(r'\s+"[\w\[\]-]+\W*[=<>]=', line) and "#" not in line
    ]
    assert not bare
