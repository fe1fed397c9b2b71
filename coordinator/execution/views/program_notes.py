"""What EXPLAIN CREATE MATERIALIZED VIEW says of how a view would be maintained."""

from collections.abc import Iterator

from coordinator.execution.explain_output import Json
from sql.incremental.derive import maintenance_program
from sql.incremental.program import MaintenanceProgram, NotIncremental
from sql.statements.bound import BoundStatement, CreateTableAs


def explained_program(statement: BoundStatement) -> MaintenanceProgram | NotIncremental | None:
    """The program of a view that is to follow its inputs; None: the statement makes none."""
    if not isinstance(statement, CreateTableAs) or not statement.is_view:
        return None
    query = statement.table.query
    if query is None or not query.on_commit:
        return None
    return maintenance_program(statement.source)


def program_properties(program: MaintenanceProgram | NotIncremental) -> Json:
    """As JSON."""
    if isinstance(program, NotIncremental):
        return {"Strategy": "none", "Reason": program.reason}
    found: dict[str, Json] = {"Strategy": program.strategy.value}
    if program.reason is not None:
        found["Reason"] = program.reason
    found["Nodes"] = [
        {"Depth": one.depth, "Node": one.title, "Way": one.way} for one in program.notes
    ]
    return found


def program_lines(program: MaintenanceProgram | NotIncremental) -> Iterator[str]:
    """As text, each node below the one that it is an input of."""
    if isinstance(program, NotIncremental):
        yield f"Maintenance: none ({program.reason})"
        return
    reason = "" if program.reason is None else f" ({program.reason})"
    yield f"Maintenance: {program.strategy.value}{reason}"
    for note in program.notes:
        yield f"{'  ' * (note.depth + 1)}{note.title}: {note.way}"
