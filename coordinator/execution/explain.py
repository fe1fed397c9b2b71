"""EXPLAIN: show the plan, the engine and the files of each table; with ANALYZE, run and measure.

    statement ─▶ views, choice ─▶ Shown ─┬────────────────────────▶ text or JSON
                                         └─ ANALYZE: run, count ──▶

INVARIANTS
  X2  without ANALYZE nothing runs and no sequence moves. With it the statement runs as it would
      alone, and its writes are committed before the client sees anything (Q1 of `context.py`).
"""

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import assert_never

from compute.arrow import batch_schema
from coordinator.execution.context import Execution, Outcome, Rows, stream_table
from coordinator.execution.create_table_as import execute_create_as
from coordinator.execution.dml.transient_relations import transient_view
from coordinator.execution.engine_choice import EngineChoice, choose_engine
from coordinator.execution.explain_columns import explain_columns
from coordinator.execution.explain_output import (
    INPUT,
    ActualCost,
    Json,
    Number,
    OutputNode,
    json_document,
    json_text,
    output_node,
    text_lines,
)
from coordinator.execution.keyed_access import plan_keyed_access
from coordinator.execution.keyed_query import plan_point_read, read_rows_by_key
from coordinator.execution.modify import execute_compound, execute_modify
from coordinator.execution.query import query_inputs, run_query
from coordinator.execution.read_predicates import read_predicates
from coordinator.execution.sequence_calls import evaluate_row_calls
from coordinator.execution.settings import text_table
from coordinator.execution.views.program_notes import (
    explained_program,
    program_lines,
    program_properties,
)
from coordinator.hidden_secrets import without_secrets
from coordinator.variables.table import DEFAULT_ENGINE
from sql.catalog.catalog import Table
from sql.explain.plan_tree import explained_plan
from sql.plan.depth import check_depth
from sql.plan.nodes import Plan, RelationId, output_columns
from sql.statements.bound import (
    BoundQuery,
    CreateTableAs,
    Explain,
    Modify,
    ModifyingWith,
)
from storage.batch import ShardView
from storage.types import Timestamp


async def execute_explain(
    execution: Execution, statement: Explain, *, as_of: Timestamp | None
) -> Rows:
    """See the module."""
    began = perf_counter()
    work = _Explaining(execution, statement, as_of)
    root = await work.root()
    planned = perf_counter()
    if statement.options.analyze:
        root.actual = await work.run()
    times = (planned - began, perf_counter() - planned)
    tell = work.told_json if statement.options.json else work.told_text
    columns = explain_columns(statement)
    table = text_table(columns, [(line,) for line in tell(root, times)])
    return Rows(columns, stream_table(table), lambda _count: "EXPLAIN")


class _Explaining:
    """One statement that is explained."""

    def __init__(self, execution: Execution, statement: Explain, as_of: Timestamp | None) -> None:
        self._execution = execution
        self._statement = statement.statement
        self._options = statement.options
        self._views = statement.views
        self._as_of = as_of
        self._program = explained_program(statement.statement)
        self._choice: EngineChoice | None = None
        self._sql: str | None = None
        self._inputs: dict[RelationId, ShardView] = {}
        self._made: dict[RelationId, ShardView] = {}

    # --- the plan ------------------------------------------------------------------------------

    async def root(self) -> OutputNode:
        """The whole statement."""
        match self._statement:
            case BoundQuery() as query:
                shown = await self._query(query)
                reading = plan_point_read(self._execution, query.plan, query.tables)
                if reading is not None:
                    (view,) = self._inputs.values()
                    if await read_rows_by_key(self._execution, reading, view) is not None:
                        self._take(EngineChoice(None, "rows by key"), query.plan)
                return shown
            case Modify() as modify:
                return await self._modify(modify)
            case CreateTableAs() as created:
                return await self._planned(created.source, created.tables)
            case ModifyingWith() as compound:
                return await self._compound(compound)
            case _:
                assert_never(self._statement)

    async def _query(self, query: BoundQuery) -> OutputNode:
        check_depth(query.plan)
        self._inputs = await query_inputs(self._execution, query, as_of=self._as_of)
        return self._over(query.plan, self._inputs)

    async def _planned(self, plan: Plan, tables: Sequence[Table]) -> OutputNode:
        check_depth(plan)
        inputs = await self._execution.views(tables, plan=plan)
        return self._over(plan, inputs)

    def _over(self, plan: Plan, inputs: dict[RelationId, ShardView]) -> OutputNode:
        choice = choose_engine(self._execution, plan, {**inputs, **self._made})
        self._take(choice, plan)
        return output_node(explained_plan(plan), inputs, verbose=self._options.verbose)

    def _take(self, choice: EngineChoice, plan: Plan) -> None:
        self._choice = choice
        if self._options.verbose:
            # Both engines' dialects, of which nobody else needs Spark's without Spark.
            from compute.engine_sql import engine_sql

            sql = engine_sql(choice.name, plan, self._execution.parameters)
            self._sql = None if sql is None else without_secrets(sql)

    async def _modify(self, modify: Modify) -> OutputNode:
        table, kind = modify.table, modify.kind.value.title()
        name = f"{table.schema}.{table.name}" if self._options.verbose else table.name
        found = OutputNode(f"{kind} on {name}", "ModifyTable")
        found.properties |= {"Operation": kind, "Relation Name": table.name}
        if modify.conflict is not None:
            action = "NOTHING" if modify.conflict.update is None else "UPDATE"
            found.details.append(("Conflict Resolution", action))
        inputs = await self._execution.views(modify.tables, plan=modify.source)
        found.below.append((INPUT, self._over(modify.source, inputs)))
        access = await plan_keyed_access(self._execution, modify.source, modify.tables, inputs)
        if access is not None:
            self._take(EngineChoice(None, "rows by key"), modify.source)
        return found

    async def _compound(self, compound: ModifyingWith) -> OutputNode:
        below: list[tuple[str, OutputNode]] = []
        for part in compound.parts:
            shown = await self._modify(part.modify)
            assert self._choice is not None, "an engine was chosen for the part"
            shown.details.append(("Engine", self._choice.text))
            below.append((f"CTE {part.relation}", shown))
            if part.modify.returning is not None:
                rows = batch_schema(output_columns(part.modify.returning)).empty_table()
                self._made[part.relation] = transient_view(part.relation, rows)
        main = compound.main
        root = await (self._query(main) if isinstance(main, BoundQuery) else self._modify(main))
        root.below = below + root.below
        return root

    # --- running it ----------------------------------------------------------------------------

    async def run(self) -> ActualCost:
        """Run the statement, to its end."""
        began = perf_counter()
        execution = self._execution
        match self._statement:
            case BoundQuery() as query:
                batches = await run_query(execution, query, self._inputs)
                batches = evaluate_row_calls(execution, batches, query.calls)
                outcome: Outcome = Rows(query.columns, batches)
            case Modify() as modify:
                # Nobody sees the rows, which are gone before the commit.
                unseen = replace(modify, xmins=())
                outcome = await execute_modify(execution, unseen, "")
            case ModifyingWith(main=Modify() as main) as compound:
                unseen_too = replace(compound, main=replace(main, xmins=()))
                outcome = await execute_compound(execution, unseen_too, "")
            case ModifyingWith() as compound:
                outcome = await execute_compound(execution, compound, "")
            case CreateTableAs() as created:
                outcome = await execute_create_as(execution, created)
            case _:
                assert_never(self._statement)
        rows, first = 0, None
        if isinstance(outcome, Rows):
            async for batch in outcome.batches:
                first = first or perf_counter()
                rows += batch.num_rows
        elif isinstance(self._statement, CreateTableAs):
            rows = int(outcome.tag.rpartition(" ")[2]) if outcome.tag.startswith("SELECT") else 0
        ended = perf_counter()
        times = (1000 * ((first or ended) - began), 1000 * (ended - began))
        return ActualCost(rows, times if self._options.timing else None)

    # --- telling it ----------------------------------------------------------------------------

    def told_text(self, root: OutputNode, times: tuple[float, float]) -> list[str]:
        """The lines; `times`: seconds of planning and running."""
        lines = [*text_lines(root)]
        if self._sql is not None:
            lines.append(f"Engine SQL: {self._sql}")
        lines += [f"Reads {name}: {what}" for name, what in self._reads()]
        lines += [f"Materialized View: {way}" for way in self._views]
        if self._program is not None:
            lines += program_lines(self._program)
        if self._choice is not None:
            lines.append(f"Engine: {self._choice.text}")
        settings = self._settings()
        if settings:
            shown = ", ".join(f"{name} = '{value}'" for name, value in settings.items())
            lines.append(f"Settings: {shown}")
        if self._options.summary:
            lines.append(f"Planning Time: {1000 * times[0]:.3f} ms")
            if self._options.analyze:
                lines.append(f"Execution Time: {1000 * times[1]:.3f} ms")
        return lines

    def told_json(self, root: OutputNode, times: tuple[float, float]) -> list[str]:
        """The same as one document."""
        found: dict[str, Json] = {"Plan": json_document(root)}
        if self._choice is not None:
            found["Engine"] = self._choice.name
            if self._choice.reason:
                found["Engine Reason"] = self._choice.reason
        if self._sql is not None:
            found["Engine SQL"] = self._sql
        reads = self._reads()
        if reads:
            found["Reads"] = dict(reads)
        if self._views:
            found["Materialized Views"] = [*self._views]
        if self._program is not None:
            found["Maintenance"] = program_properties(self._program)
        if self._options.settings:
            found["Settings"] = self._settings()
        if self._options.summary:
            found["Planning Time"] = Number(1000 * times[0], 3)
        if self._options.analyze:
            found["Triggers"] = []
            if self._options.summary:
                found["Execution Time"] = Number(1000 * times[1], 3)
        return [json_text([found])]

    def _settings(self) -> dict[str, str]:
        """What was set and bears on plans."""
        engine = self._execution.variables.get("engine")
        shown = self._options.settings and engine != DEFAULT_ENGINE
        return {"engine": engine} if shown else {}

    def _reads(self) -> list[tuple[str, str]]:
        """What validation will look at, table by table, for VERBOSE."""
        match self._statement:
            case BoundQuery(plan=plan, tables=tables) | Modify(source=plan, tables=tables):
                pass
            case _:
                return []
        if not self._options.verbose:
            return []
        predicates = read_predicates(plan, tables, self._execution.parameters)
        shown = ("all rows" if one is None else one.describe() for one in predicates)
        return [
            (table.name, without_secrets(what)) for table, what in zip(tables, shown, strict=True)
        ]
