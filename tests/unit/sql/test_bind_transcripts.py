"""Transcripts of the binder: a statement, then its plan or its error."""

from dataclasses import fields, is_dataclass, replace
from enum import StrEnum

import pytest

from sql.binder.bind import bind
from sql.catalog.catalog import Catalog, Column, Table
from sql.errors import SqlError
from sql.explain.plan_tree import explain_lines, expression_text
from sql.parser.parse import parse
from sql.plan.nodes import Call, Const, Param, SortKey
from sql.statements.bound import (
    BoundQuery,
    CopyOut,
    CopySubscription,
    Explain,
    ExplainTimestamp,
    Modify,
    Subscribe,
)
from sql.statements.ddl import Redefinition
from sql.statements.explain_options import ExplainOptions
from sql.types.sql_type import SqlType, format_type
from tests.support.transcript import Command, run_transcript
from tests.unit.sql.described import TESTDATA, context

STORIES = sorted(path.stem for path in TESTDATA.glob("bind_*.txt"))


def _sort_key(key: SortKey) -> str:
    direction = "desc" if key.descending else "asc"
    nulls = "first" if key.nulls_first else "last"
    return f"{format_type(key.expr.type)} {direction} nulls {nulls}"


def _shown(value: object) -> str:
    match value:
        case SqlType():
            exact = f" as ({value.precision},{value.scale})" if value.name == "numeric" else ""
            return f"{format_type(value)}{exact}{' trimmed' if value.trim else ''}"
        case Column():
            words = [value.name, _shown(value.type)]
            words += ["not null"] if value.not_null else []
            words += [f"default {value.default!r}"] if value.has_default else []
            return " ".join(words)
        case Table():
            return f"{value.schema}.{value.name}"
        case Redefinition(before=before, after=after):
            changed = [
                f"{field.name}={_shown(getattr(after, field.name))}"
                for field in fields(after)
                if getattr(before, field.name) != getattr(after, field.name)
            ]
            return f"{_shown(before)} with {', '.join(changed)}"
        case StrEnum():
            return value.value
        case Const() | Param() | Call():
            return f"{expression_text(value, {})} {_shown(value.type)}"
        case tuple():
            return f"[{', '.join(map(_shown, value))}]"
        case _:
            return repr(value)


def _told(bound: object) -> list[str]:
    match bound:
        case BoundQuery() | Modify():
            columns = [f"{column.name} {_shown(column.type)}" for column in bound.columns]
            head = [f"columns: {', '.join(columns)}"] if columns else []
            return [*head, *explain_lines(bound)]
        case Subscribe():
            names = ", ".join(column.name for column in bound.columns)
            about = (
                f"snapshot={bound.snapshot} progress={bound.progress} up_to={_shown(bound.up_to)}"
            )
            how = [
                f"{name}: {_shown(value)}"
                for name, value in (
                    ("views", tuple(view.name for view in bound.views)),
                    ("envelope", bound.envelope),
                    ("order", bound.order and ", ".join(map(_sort_key, bound.order.keys))),
                )
                if value
            ]
            compared = ["compared"] if bound.is_compared else []
            told = [f"Subscribe {about}", *compared, *how, f"tells: {names}"]
            return [*told, *_told(bound.query)]
        case CopySubscription():
            return ["CopySubscription", *_told(bound.subscribe), *_told(bound.options)]
        case CopyOut():
            return ["CopyOut", *_told(bound.query), *_told(bound.options)]
        case Explain():
            return [f"Explain {_options(bound.options)}", *_told(bound.statement)]
        case ExplainTimestamp():
            shown = "json" if bound.json else "text"
            as_of = [] if bound.query.as_of is None else [f"as of: {_shown(bound.query.as_of)}"]
            return [f"ExplainTimestamp {shown}", *as_of, *_told(bound.query)]
        case _:
            assert is_dataclass(bound)
            parts = [
                f"{field.name}={_shown(getattr(bound, field.name))}"
                for field in fields(bound)
                if getattr(bound, field.name) != field.default
            ]
            return [f"{type(bound).__name__} {' '.join(parts)}".rstrip()]


def _options(options: ExplainOptions) -> str:
    on = [field.name for field in fields(options) if getattr(options, field.name) is True]
    return " ".join(on) or "-"


def _answer(command: Command) -> str:
    assert command.name == "bind", command.position
    lines: list[str] = []
    base = context()
    try:
        for statement in parse(command.body):
            prepared = bind(statement, base, ())
            if prepared.parameters:
                lines.append(f"parameters: {', '.join(map(_shown, prepared.parameters))}")
            lines.extend([*_told(prepared.bound), f"tag: {prepared.tag}"])
    except SqlError as error:
        place = "" if error.position is None else f" at {_pointed(command.body, error.position)}"
        extra = "".join(f"\n  {text}" for text in (error.detail, error.hint) if text)
        lines.append(f"{error.sqlstate}{place}: {error.message}{extra}")
    return "\n".join(lines)


def _pointed(text: str, position: int) -> str:
    """The place of an error by the text that stands there."""
    rest = text[position - 1 : position + 9]
    return f"{position} <{rest.splitlines()[0] if rest else ''}>"


@pytest.mark.parametrize("story", STORIES)
def test_story(story: str) -> None:
    run_transcript(TESTDATA / f"{story}.txt", _answer)


def test_a_schema_is_searched_in_order() -> None:
    here = Table(1, "a", "x", "first", (Column("c", SqlType("int4")),))
    there = Table(2, "b", "x", "second", (Column("c", SqlType("text")),))
    catalog = Catalog(1, frozenset({"a", "b"}), {("a", "x"): here, ("b", "x"): there})
    base = replace(context(), catalog=catalog, search_path=("nope", "b", "a"))
    (statement,) = parse("select c from x")
    bound = bind(statement, base, ()).bound
    assert isinstance(bound, BoundQuery)
    assert bound.tables == (there,)
    (statement,) = parse("create table y (c int)")
    created = bind(statement, base, ()).bound
    assert getattr(created, "schema", None) == "b"
