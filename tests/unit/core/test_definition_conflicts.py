"""What one transaction defines over what another one changes: which of them is refused, and why."""

from dataclasses import replace

import pytest

from coordinator.core.catalog import apply_changes
from coordinator.core.definition_conflicts import find_definition_conflict
from coordinator.core.messages.catalog_changes import (
    CatalogChange,
    PutComment,
    PutObject,
    PutSchema,
    PutTable,
    RemoveObject,
    RemoveSchema,
)
from sql.catalog.catalog import Catalog, CheckConstraint, Column, ForeignKey, Key, Table
from sql.catalog.objects import (
    Comment,
    DomainDefinition,
    EnumDefinition,
    IndexDefinition,
    SequenceDefinition,
    Subject,
    ViewDefinition,
)
from sql.types.sql_type import INT4, TEXT

E = EnumDefinition(10, "public", "e", labels=("x", "y"), array=11)
D = DomainDefinition(12, "public", "d")
T = Table(
    20, "public", "t", "shard_t", (Column("a", INT4), Column("s", TEXT)), keys=(Key("k", (0,)),)
)
V = ViewDefinition(
    30, "public", "v", "SELECT a FROM t", ("a",), (("", "t", T.oid, ("a", "s"), (1, 2)),)
)
BOUND = apply_changes(Catalog(), [PutObject(E), PutObject(D), PutTable(T), PutObject(V)], version=1)

OVER_E = ViewDefinition(31, "public", "w", "SELECT CAST('x' AS public.e)", ("a",))
OVER_V = ViewDefinition(
    32, "public", "w", "SELECT a FROM v", ("a",), (("", "v", 30, ("a",), (1,)),)
)
INDEX = IndexDefinition(33, "public", "i", T.oid, ("a",))
OWNED = SequenceDefinition(34, "public", "q", "state", owner=T.oid, owner_field="a")
DOMAIN = DomainDefinition(35, "public", "n", checks=(("c", "VALUE <> CAST('x' AS public.e)"),))
CHECKED = replace(
    T, oid=36, name="n", checks=(CheckConstraint("c", "a <> CAST(1 AS public.d)"),), keys=()
)
REFERRING = replace(
    T, oid=37, name="n", foreign_keys=(ForeignKey("f", (0,), T.oid, (1,)),), keys=()
)
PLAIN = replace(T, oid=38, name="n", keys=())


def changed(*changes: CatalogChange) -> Catalog:
    return apply_changes(BOUND, changes, version=2)


def renamed(thing: EnumDefinition | DomainDefinition) -> CatalogChange:
    return PutObject(replace(thing, name="other", version=1))


ALTERED = PutTable(replace(T, columns=(Column("a", TEXT), T.columns[1]), version=1))
REPLACED = PutObject(replace(V, text="SELECT 1", relations=(), version=1))


@pytest.mark.parametrize(
    ("made", "change", "told"),
    [
        pytest.param(PutObject(OVER_E), renamed(E), 'enum "e"', id="a-view-names-a-type"),
        pytest.param(PutObject(OVER_E), RemoveObject(E), 'enum "e"', id="a-type-that-goes"),
        pytest.param(PutObject(OVER_V), ALTERED, 'table "t"', id="a-table-below-a-view-below"),
        pytest.param(PutObject(OVER_V), REPLACED, 'view "v"', id="a-view-below"),
        pytest.param(PutObject(INDEX), ALTERED, 'table "t"', id="an-index"),
        pytest.param(PutObject(OWNED), ALTERED, 'table "t"', id="an-owned-sequence"),
        pytest.param(PutObject(DOMAIN), renamed(E), 'enum "e"', id="a-domain"),
        pytest.param(PutTable(CHECKED), renamed(D), 'domain "d"', id="a-check"),
        pytest.param(PutTable(REFERRING), ALTERED, 'table "t"', id="a-foreign-key"),
    ],
)
def test_whoever_comes_second_is_refused(
    made: CatalogChange, change: CatalogChange, told: str
) -> None:
    makes, changes = changed(made), changed(change)
    words = f"{told} was changed by a concurrent transaction"
    assert find_definition_conflict(BOUND, makes, changes) == words
    assert find_definition_conflict(BOUND, changes, makes) == words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(PutTable(PLAIN), renamed(E), id="it-names-nothing"),
        pytest.param(PutObject(OVER_E), renamed(D), id="it-names-another"),
        pytest.param(PutObject(OVER_E), ALTERED, id="it-is-over-no-table"),
        pytest.param(PutObject(replace(V, name="w", version=1)), ALTERED, id="over-it-all-along"),
    ],
)
def test_who_does_not_meet_is_not_refused(one: CatalogChange, other: CatalogChange) -> None:
    assert find_definition_conflict(BOUND, changed(one), changed(other)) is None
    assert find_definition_conflict(BOUND, changed(other), changed(one)) is None


def test_what_is_said_is_not_lost_with_a_name() -> None:
    schema = Subject("schema", "s")
    bound = apply_changes(BOUND, [PutSchema("s")], version=2)
    says = apply_changes(bound, [PutComment(Comment(schema, "said"))], version=3)
    renames = apply_changes(bound, [RemoveSchema("s"), PutSchema("s2")], version=3)
    words = "what something is said about was changed by a concurrent transaction"
    assert find_definition_conflict(bound, says, renames) == words
    assert find_definition_conflict(bound, renames, says) == words
    assert find_definition_conflict(bound, says, changed(PutSchema("s"), PutSchema("s3"))) is None


def test_what_it_has_made_itself_was_changed_by_nobody_else() -> None:
    own = changed(renamed(E), PutObject(replace(OVER_E, text="SELECT CAST('x' AS public.other)")))
    assert find_definition_conflict(BOUND, own, changed(PutTable(PLAIN))) is None
    assert find_definition_conflict(BOUND, own, BOUND) is None
    new = [PutSchema("n"), PutComment(Comment(Subject("schema", "n"), "said"))]
    assert find_definition_conflict(BOUND, changed(*new), changed(PutTable(PLAIN))) is None
