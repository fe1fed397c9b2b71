"""The shape of the packages, as tests: folders, imports, names, and what prose says of files.

Not here: the shape of single files (`test_tidy.py`), of pages (`test_prose.py`), and the layers
(`make layers`).
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("coordinator", "sql", "storage", "compute", "ingest")

MODULES_MAX = 40
"""A folder with more has two subjects."""
PACKAGE_DOCSTRING_LINES_MIN = 5

# Words of the private dialect that the code was once written in, with the field's word.
DIALECT = {
    "asked": "demanded",
    "told": "reported",
    "met": "matched",
    "gone": "dropped",
    "kept": "stored",
    "remarks": "annotations",
    "holes": "deleted rows",
    "resting": "dependent",
    "fitting": "consistent",
    "interim": "recent",
    "stand_in": "inlined",
    "blanks": "padding",
    "unbound": "broken",
}

# Public names that stand for two things. The list may only shrink; methods do not count, nor the
# same concept on both engines.
TWICE = frozenset(
    {
        "Bound", "CACHED_BYTES_MAX", "COLLECTION", "Close", "Column", "Committed", "Connection",
        "DELETED", "DEPTH_MAX", "Definition", "ENGINE", "ERROR_TAG", "FILES_MAX", "Floats", "Frame",
        "Function", "INDEXED_ROWS_MAX", "Interval", "Json", "KEYS_MAX", "Key", "Mask", "Node",
        "ON_LOOP_MAX", "PIECE_ROWS", "Protocol", "REGISTERING", "ROWS_MAX", "ReadFile", "Reader",
        "Result", "Row", "RowEncoder", "Rows", "Run", "RunBlocking", "SMALL_ROWS_MAX", "SPECIALS",
        "SYSTEM", "Savepoint", "Scan", "Scope", "Session", "Severity", "Source", "Statement",
        "TEXT_MAX", "Thing", "Vacuumed", "Write", "as_aggregate", "expression", "functions",
        "in_range", "is_json", "overlay", "scan", "spark_type", "sqrt", "substr",
        "to_array", "to_timestamp", "to_values",
    }
)  # fmt: skip

TWIN_FOLDERS = (
    ("sql/emit/spark", "sql/emit/duckdb"),
    ("compute/spark", "compute/duckdb", "compute/reference"),
)


@cache
def _modules() -> Mapping[str, Path]:
    """By dotted name, packages included."""
    return {
        path.relative_to(ROOT).as_posix()[:-3].replace("/", ".").removesuffix(".__init__"): path
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    }


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def _imports() -> Mapping[str, frozenset[str]]:
    """The modules that each one imports, wherever the import stands in it."""
    return {module: frozenset(_imported(path)) for module, path in _modules().items()}


def _imported(path: Path) -> Iterator[str]:
    modules = _modules()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in modules:
                    yield inner
                elif node.module in modules:
                    yield node.module


def circle(graph: Mapping[str, frozenset[str]]) -> list[str]:
    """Some way that leads back to where it began; empty if there is none."""
    done: set[str] = set()
    for start in graph:
        way: list[str] = []
        waiting: list[tuple[str, bool]] = [(start, False)]
        while waiting:
            module, left = waiting.pop()
            if left:
                done.add(way.pop())
            elif module in way:
                return [*way[way.index(module) :], module]
            elif module not in done:
                way.append(module)
                waiting.append((module, True))
                waiting += [(other, False) for other in graph[module]]
    return []


def test_a_circle_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": set[str](), "d": {"b"}}
    assert circle({name: frozenset(to) for name, to in graph.items()}) == ["b", "d", "b"]


def test_imports_have_no_circle() -> None:
    assert not circle(_imports())


def test_folders_are_small() -> None:
    folders: dict[str, int] = defaultdict(int)
    for path in _modules().values():
        folders[path.parent.relative_to(ROOT).as_posix()] += path.name != "__init__.py"
    crowded = {folder: count for folder, count in folders.items() if count > MODULES_MAX}
    assert not crowded


def test_packages_say_what_flows_through_them() -> None:
    short = [
        module
        for module, path in _modules().items()
        if path.name == "__init__.py"
        and len((ast.get_docstring(_tree(path)) or "").splitlines()) < PACKAGE_DOCSTRING_LINES_MIN
    ]
    assert not short


# --- names -------------------------------------------------------------------------------------


def _defined(path: Path) -> Iterator[str]:
    """Names of functions, classes and constants at the top of a module."""
    for node in _tree(path).body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                yield name
            case _:
                pass


@cache
def _public() -> Mapping[str, tuple[str, ...]]:
    """Public names, with the modules that define them."""
    found: dict[str, list[str]] = defaultdict(list)
    for module, path in _modules().items():
        for name in _defined(path):
            if not name.startswith("_") and name not in {"T", "K", "V", "R", "log"}:
                found[name].append(module)
    return {name: tuple(modules) for name, modules in found.items()}


def _is_one_concept(modules: tuple[str, ...]) -> bool:
    """Whether they are twins: the same concept on several engines."""
    folders = [module.rpartition(".")[0].replace(".", "/") for module in modules]
    return any(
        len(set(folders)) == len(folders) and set(folders) <= set(twins) for twins in TWIN_FOLDERS
    )


def test_public_names_stand_for_one_thing() -> None:
    twice = {
        name
        for name, modules in _public().items()
        if len(modules) > 1 and not _is_one_concept(modules)
    }
    more = {name: _public()[name] for name in sorted(twice - TWICE)}
    assert not more, f"call one of them otherwise: {more}"
    assert not TWICE - twice, f"take them off the list: {sorted(TWICE - twice)}"


def test_names_are_the_fields() -> None:
    words = re.compile(rf"(?:^|_)({'|'.join(DIALECT)})(?:_|$)")
    found = [
        f"{where}: say {DIALECT[match[1]]}"
        for where, name in (
            *((path.relative_to(ROOT).as_posix(), path.stem) for path in _modules().values()),
            *((f"{modules[0]}.{name}", name) for name, modules in _public().items()),
        )
        if (match := words.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()))
    ]
    assert not found, "\n".join(found)


# --- files named in prose ----------------------------------------------------------------------

_FILE = re.compile(r"(?<![\w/.*<>{-])((?:[\w-]+/)*[\w-]+\.(?:py|txt|md|toml|jsonl))(?![\w*])")


def _files() -> frozenset[str]:
    """Every ending of the path of every file, from a whole component on."""
    found: set[str] = set()
    for place in (*PACKAGES, "tests", "docs", "deploy", ".ci"):
        for path in (ROOT / place).rglob("*"):
            parts = path.relative_to(ROOT).parts
            found.update("/".join(parts[start:]) for start in range(len(parts)))
    found.update(path.name for path in ROOT.iterdir())
    return frozenset(found)


def _prose(path: Path) -> Iterator[str]:
    """Docstrings, those below names too, and comments."""
    text = path.read_text()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)
    yield from re.findall(r"(?m)^\s*#.*$|  #.*$", text)


def test_files_named_in_prose_exist() -> None:
    known = _files()
    missing = [
        f"{path.relative_to(ROOT).as_posix()}: {name}"
        for place in (*PACKAGES, "tests")
        for path in sorted((ROOT / place).rglob("*.py"))
        for prose in _prose(path)
        for name in _FILE.findall(prose)
        if name not in known
    ]
    assert not missing, "\n".join(missing)
