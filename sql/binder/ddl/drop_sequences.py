"""DROP SEQUENCE, with the dependents that CASCADE drops: defaults, views, domains with columns."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from pglast.enums import DropBehavior

from sql.binder.ddl.dropped_domains import DroppedDomains, domains_dropped_with
from sql.binder.ddl.user_types import DroppedTypeColumns, drop_columns_of_types
from sql.binder.resolve.catalog_lookup import look_up_sequence, missing_object_notice, relation_name
from sql.binder.state import Binding
from sql.binder.stored.relation_users import (
    StoredUse,
    cascade_notices,
    columns_fed_by,
    dependent_objects_still_exist,
    relation_display_name,
    stored_uses_of,
    use_dependency_details,
    views_without_defaults,
    without_defaults,
)
from sql.binder.stored.views import view_dependency_details, views_over
from sql.catalog.catalog import Catalog
from sql.catalog.objects import CatalogObject, SequenceDefinition
from sql.errors import SqlError
from sql.parser.syntax import Node, string_values
from sql.statements.ddl import ChangeObjects, drop_cascade_notices


def drop_sequences(binding: Binding, node: Node) -> ChangeObjects:
    """DROP SEQUENCE [IF EXISTS] .. [CASCADE]."""
    catalog = binding.context.catalog
    dropped: list[SequenceDefinition] = []
    notices: list[tuple[str, str, str | None]] = []
    for names in node.objects:
        schema, name = relation_name(binding, string_values(names))
        found = look_up_sequence(binding, name, schema=schema)
        if found is not None:
            dropped.append(found)
            continue
        missing = missing_object_notice(
            binding, "sequence", schema, name, missing_ok=node.missing_ok
        )
        notices.append(("00000", missing, None))
    dropped = list(dict.fromkeys(dropped))
    for sequence in dropped:
        if sequence.identity:
            raise _needed_by_identity(catalog, sequence)
    gone = {sequence.oid for sequence in dropped}
    path = binding.context.search_path
    used = _uses_in_order(catalog, dropped, path)
    domains = domains_dropped_with(catalog, used)
    views = views_over(catalog, gone)
    if (used or views) and node.behavior != DropBehavior.DROP_CASCADE:
        raise dependent_objects_still_exist(
            [f"sequence {relation_display_name(sequence, path)}" for sequence in dropped],
            [
                *use_dependency_details(used, domains.told),
                *view_dependency_details(catalog, views, gone),
            ],
        )
    told = [
        *cascade_notices(used, views=True, along=domains.told),
        *(f"drop cascades to {view.kind} {view.shown}" for view in views),
    ]
    notices += drop_cascade_notices(list(dict.fromkeys(told)))
    leaving: list[CatalogObject] = [*dropped, *views]
    lost = _lost(binding, domains, gone, leaving)
    leaving += [*domains.types, *lost.dropped]
    others = views_without_defaults(catalog, {thing.oid for thing in leaving})
    return ChangeObjects(
        "DROP SEQUENCE",
        dropped=tuple(leaving),
        objects=(*others, *lost.objects),
        tables=lost.tables,
        notices=tuple(notices),
    )


def _lost(
    binding: Binding,
    domains: DroppedDomains,
    gone: Collection[int],
    dropped: Sequence[CatalogObject],
) -> DroppedTypeColumns:
    """What tables lose: the columns of these domains, and the defaults that name what is gone."""
    lost, _ = drop_columns_of_types(binding, domains.types, gone, dropped, "DROP SEQUENCE")
    changed = without_defaults(binding.context.catalog, gone, lost.tables)
    return replace(lost, tables=changed)


def _uses_in_order(
    catalog: Catalog, dropped: Sequence[SequenceDefinition], path: Sequence[str]
) -> list[StoredUse]:
    """Who uses these sequences, each once, in PostgreSQL's order."""
    told: set[str] = set()
    used: list[StoredUse] = []
    for sequence in dropped:
        own = [u for u in stored_uses_of(catalog, {sequence.oid}, path) if u.kept.what not in told]
        told.update(use.kept.what for use in own)
        used = [*own, *used]
    return used


def _needed_by_identity(catalog: Catalog, sequence: SequenceDefinition) -> SqlError:
    ((table, column), *_) = columns_fed_by(catalog, sequence)
    message = (
        f"cannot drop sequence {sequence.shown} because column {column.name} of table "
        f"{table.shown} requires it"
    )
    hint = f"You can drop column {column.name} of table {table.shown} instead."
    return SqlError("2BP01", message, hint=hint)
