"""Rows of pg_catalog about types: PostgreSQL's own, enums and domains of users.

A row names the columns it has (W2 of `pgcatalog/relations.py`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from coordinator.pgcatalog.definition_texts import DefinitionTexts
from coordinator.pgcatalog.named_row import NamedRow
from coordinator.pgcatalog.privileges import PrivilegeColumns
from coordinator.pgcatalog.recorded import operator_class_oids, recorded_types
from coordinator.pgcatalog.server import METHODS
from sql.binder.ddl.index_methods import orders_rows, own_operator_class
from sql.binder.resolve.visible_names import type_is_visible
from sql.binder.state import BindContext
from sql.catalog.acl import OWNER
from sql.catalog.catalog import Table
from sql.catalog.objects import (
    DomainDefinition,
    EnumDefinition,
    UserType,
    ViewDefinition,
)
from sql.catalog.oids import derived_oid, row_array_oid, row_type_oid, schema_oid
from sql.catalog.system_catalogs import PG_CATALOG
from sql.functions.pg_proc import function_oid, support_functions
from sql.types.catalog_types import catalog_types, is_catalog_type
from sql.types.enums import is_enum
from sql.types.sql_type import (
    TYPE_OIDS,
    SqlType,
    Value,
    array_of,
    format_type,
    quoted_name,
)

_ARRAY: Final = "_int4"
_DEFAULT_COLLATION, _C_COLLATION = 100, 950
_COLLATIONS: Final = {
    "default": _DEFAULT_COLLATION,
    "C": _C_COLLATION,
    "POSIX": 951,
    "ucs_basic": 962,
    "pg_c_utf8": 811,
    "C.utf8": 12_359,
}
"""Oid of each that columns may have."""
_ALIGNED: Final = {1: "c", 2: "s", 4: "i", 8: "d"}


def storage_columns(type_: SqlType) -> dict[str, Value]:
    """What pg_type and pg_attribute say about storing a type, by the ends of the names."""
    if is_catalog_type(type_.name):
        known = catalog_types()[type_.name]
        return {
            "len": known.size,
            "byval": known.by_value,
            "align": known.alignment,
            "storage": known.storage,
            "collation": known.collation,
        }
    size = type_.size
    return {
        "len": size,
        "byval": size in _ALIGNED,
        "align": _alignment(type_),
        "storage": "m" if type_.name == "numeric" else "p" if size > 0 else "x",
        "collation": collation_of(type_),
    }


def _alignment(type_: SqlType) -> str:
    if type_.name in ("name", "uuid"):
        return "c"
    if type_.element is not None:
        return "d" if _alignment(type_.element) == "d" else "i"
    return _ALIGNED.get(min(type_.size, 8), "i")


def collation_of(type_: SqlType, named: str = "") -> int:
    """The oid of a type's collation, or of the one that a column names; 0: it has none."""
    if named:
        return _COLLATIONS[named]
    name = (type_.element or type_).name
    if name == "name":
        return _C_COLLATION
    return _DEFAULT_COLLATION if name in ("text", "varchar", "bpchar") else 0


def index_collation(type_: SqlType, column: str, option: str) -> int:
    """The oid of the collation of an index's column; `column`: that of its table's column, `option`
    as of `opclass_oid`.
    """
    words = option.split()
    named = words[1].strip('"') if words[:1] == ["COLLATE"] else column
    return collation_of(type_, named)


def opclass_oid(type_: SqlType, option: str = "", method: str = "btree") -> int:
    """The oid of the operator class that a column of an index has; `option`: what follows it
    there.
    """
    oids, of_method = operator_class_oids(), METHODS[method]
    words = [word for word in option.split() if (of_method, word) in oids]
    named = words[0] if words else _own_class(type_, method)
    return oids.get((of_method, named or ""), 0)


def _own_class(type_: SqlType, method: str) -> str | None:
    if not orders_rows(method):
        return own_operator_class(method, type_)
    name = "enum" if is_enum(type_.name) else type_.name
    name = "array" if type_.element is not None else name
    return "text_ops" if name == "varchar" else f"{name}_ops"


# --- types by name -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NamedType:
    """A type as it is called: `name` is pg_type.typname, `shown` what format_type() writes."""

    type: SqlType
    schema: str
    name: str
    shown: str
    visible: bool = True
    domain: DomainDefinition | None = None
    relation: Table | ViewDefinition | None = None
    """Of a row type, and of arrays of these rows."""

    @property
    def oid(self) -> int:
        """pg_type.oid."""
        if self.relation is not None:
            oid_of = row_type_oid if self.type.element is None else row_array_oid
            return oid_of(self.relation.oid)
        return self.type.oid if self.domain is None else self.domain.oid


def user_defined_types(context: BindContext) -> Iterator[NamedType]:
    """Types that users have made, and the arrays of enums."""
    for found in context.catalog.enums():
        shown, visible = _shown(context, found)
        yield NamedType(found.type, found.schema, found.name, shown, visible)
        array, name = array_of(found.type), f"_{found.name}"
        yield NamedType(array, found.schema, name, f"{shown}[]", visible)
    for domain in context.catalog.domains():
        shown, visible = _shown(context, domain)
        yield NamedType(domain.type, domain.schema, domain.name, shown, visible, domain)


def _shown(context: BindContext, found: UserType) -> tuple[str, bool]:
    """As format_type() writes it, and whether the name alone finds it."""
    visible = type_is_visible(context.catalog, context.search_path, found.schema, found.name)
    name = quoted_name(found.name)
    return (name if visible else f"{quoted_name(found.schema)}.{name}"), visible


def all_types(context: BindContext) -> Iterator[NamedType]:
    """Every type that pg_type lists."""
    for name in (*TYPE_OIDS, *catalog_types()):
        yield NamedType(SqlType(name), PG_CATALOG, name, format_type(SqlType(name)))
    yield from user_defined_types(context)
    yield from row_types(context)


def row_types(context: BindContext) -> Iterator[NamedType]:
    """The types of the rows of tables and views, and of arrays of them."""
    catalog = context.catalog
    made: list[Table | ViewDefinition] = [*catalog.tables.values(), *catalog.views()]
    relations = {(relation.schema, relation.name): relation for relation in made}
    path = [name for name in context.search_path if name in catalog.schemas]
    for (schema, name), relation in relations.items():
        visible = schema == next((found for found in path if (found, name) in relations), None)
        text = quoted_name(name)
        shown = text if visible else f"{quoted_name(schema)}.{text}"
        yield NamedType(_RECORD, schema, name, shown, visible, relation=relation)
        array = array_of(_RECORD)
        yield NamedType(array, schema, f"_{name}", f"{shown}[]", visible, relation=relation)


_RECORD: Final = SqlType("record")


def _row_type(named: NamedType, shown: PrivilegeColumns) -> NamedRow:
    relation = named.relation
    assert relation is not None, "a row type is that of a relation"
    is_array = named.type.element is not None
    return _type_row(named, "b" if is_array else "c") | {
        "typowner": shown.named(relation, "rel")["relowner"],
        "typcategory": "A" if is_array else "C",
        "typalign": "d",
        "typrelid": 0 if is_array else relation.oid,
        "typelem": row_type_oid(relation.oid) if is_array else 0,
        "typarray": 0 if is_array else row_array_oid(relation.oid),
        **support_functions(_ARRAY if is_array else _RECORD.name),
    }


def _pg_type(context: BindContext) -> Iterator[NamedRow]:
    yield from recorded_types(context)
    shown = PrivilegeColumns(context)
    owned = {thing.oid: shown.named(thing, "typ") for thing in context.catalog.objects.values()}
    for named in row_types(context):
        yield _row_type(named, shown)
    for named in user_defined_types(context):
        if named.domain is not None:
            yield _domain_row(context, named, named.domain) | owned[named.domain.oid]
            continue
        element_type = named.type.element
        oid = named.type.oid if element_type is None else element_type.oid
        rights = owned[oid] if element_type is None else {"typowner": owned[oid]["typowner"]}
        yield (
            _type_row(named, "e" if element_type is None else "b")
            | rights
            | {
                "typelem": 0 if element_type is None else element_type.oid,
                "typarray": array_of(named.type).oid if element_type is None else 0,
                **(_of_enums() if element_type is None else support_functions(_ARRAY)),
            }
        )


def _of_enums() -> dict[str, Value]:
    """The functions of all enums."""
    ends = {"in": "input", "out": "output", "recv": "receive", "send": "send"}
    return {f"typ{column}": function_oid(f"enum_{end}") for end, column in ends.items()}


def _domain_row(
    context: BindContext, named: NamedType, domain: DomainDefinition
) -> dict[str, Value]:
    default = DefinitionTexts(context).domain_default(domain)
    return _type_row(named, "d") | {
        "oid": domain.oid,
        "typbasetype": domain.type.oid,
        "typtypmod": domain.type.typmod,
        "typnotnull": domain.not_null,
        "typdefault": default,
        "typdefaultbin": default,
        "typinput": function_oid("domain_in"),
        "typoutput": support_functions(domain.type.name)["typoutput"],
        "typreceive": function_oid("domain_recv"),
        "typsend": support_functions(domain.type.name)["typsend"],
    }


def domain_constraints(context: BindContext, domain: DomainDefinition) -> Iterator[NamedRow]:
    """The rows of pg_constraint."""
    rules = [(domain.not_null_name, "n", "")] if domain.not_null else []
    for name, kind, text in [*rules, *((name, "c", text) for name, text in domain.checks)]:
        yield {
            "oid": domain_constraint_oid(domain, name),
            "conname": name,
            "contype": kind,
            "contypid": domain.oid,
            "connamespace": schema_oid(domain.schema),
            "convalidated": True,
            "conenforced": True,
            "conislocal": True,
            "confupdtype": " ",
            "confdeltype": " ",
            "confmatchtype": " ",
            "conbin": DefinitionTexts(context).domain_condition(domain, text) if text else None,
        }


def domain_constraint_oid(domain: DomainDefinition, name: str) -> int:
    """The oid of a domain's constraint."""
    return derived_oid("constraint", domain.oid, name)


def _type_row(named: NamedType, kind: str) -> dict[str, Value]:
    return {f"typ{end}": value for end, value in storage_columns(named.type).items()} | {
        "oid": named.oid,
        "typname": named.name,
        "typnamespace": schema_oid(named.schema),
        "typowner": OWNER,
        "typtype": kind,
        "typcategory": named.type.category,
        "typisdefined": True,
        "typdelim": ",",
        "typtypmod": -1,
    }


def label_oid(found: EnumDefinition, label: str) -> int:
    """The oid of a label."""
    return derived_oid("label", found.oid, label)


def _pg_enum(context: BindContext) -> Iterator[NamedRow]:
    for found in context.catalog.enums():
        for place, label in enumerate(found.labels, 1):
            yield {
                "oid": label_oid(found, label),
                "enumtypid": found.oid,
                "enumsortorder": float(place),
                "enumlabel": label,
            }


TYPE_ROWS: Final[Mapping[str, Callable[[BindContext], Iterator[NamedRow]]]] = {
    "pg_enum": _pg_enum,
    "pg_type": _pg_type,
}
