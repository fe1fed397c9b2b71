"""What is called: PostgreSQL's functions, operators and casts, and the syntax that is like them.

The catalogs say what there is, so that nobody has to remember it; `SHOWN` and its kin are what no
catalog has, for every type that has a table.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from psycopg.pq.abc import PGconn

from tests.postgres.cross.values import NOT_STORED, VALUES, declared
from tests.postgres.queries.answers import Rows, ask

_POLYMORPHIC = {
    "anyelement": ("int4", "text"),
    "anyarray": ("_int4", "_text"),
    "anynonarray": ("int4", "text"),
    "anycompatible": ("int4", "text"),
    "anycompatiblearray": ("_int4", "_text"),
    "anycompatiblenonarray": ("int4", "text"),
}
"""Types that stand for them: all that are polymorphic in one call have the same position."""

_FUNCTIONS = """
select p.proname, array_to_string(array(
  select t.typname::text from unnest(p.proargtypes) with ordinality u(type, n)
  join pg_type t on t.oid = u.type order by n), ' ')
from pg_proc p join pg_type r on r.oid = p.prorettype
where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind = 'f' and not p.proretset
  and p.provolatile in ('i', 's') and p.provariadic = 0 and p.pronargs between 1 and 4
order by 1, 2
"""

_OPERATORS = """
select o.oprname, concat_ws(' ', l.typname, r.typname)
from pg_operator o left join pg_type l on l.oid = o.oprleft join pg_type r on r.oid = o.oprright
where o.oprnamespace = 'pg_catalog'::regnamespace
order by 1, 2
"""

_OF_THE_SERVER = re.compile(
    # What tells of this server, of its files and of its catalogs' numbers, which are its own.
    r"pg_(?!collation_for|typeof|size_bytes|size_pretty)|has_|to_reg|current_|row_security"
    r"|obj_description|col_description|shobj_description|inet_|txid_|lo_|binary_upgrade"
    r"|.*_to_xml|xml|set_config|setseed"
    # What access methods and input call, and nobody else.
    r"|bt(?!rim)|gin|gist|brin|spg|hash|in_range|.*(recv|send|_in|_out|support|sel|joinsel|typmod"
    r"|typmodin|typmodout|consistent|cmp|extended)$"
    # What has types that we do not have behind a text.
    r"|ts_|to_ts|plainto_|phraseto_|websearch_|.*_tsvector|.*_tsquery|get_current_ts"
)

SHOWN = (
    "concat({0}, 'x')", "concat_ws(',', {0}, {0})", "format('%s|%L', {0}, {0})", "row({0}, {0})",
    "to_jsonb({0})", "to_json({0})", "json_build_array({0}, 'a')", "jsonb_build_object('k', {0})",
    "quote_literal({0})", "quote_nullable({0})", "({0} || ''::text)", "row_to_json(row({0}))",
    "coalesce({0}::text, 'n')", "array[{0}, {0}]", "length({0}::text)", "lpad({0}::text, 12, '*')",
    "{0}::varchar(5)", "greatest({0}, {0})", "nullif({0}, {0})",
    "case when {0} is null then null else {0} end",
)  # fmt: skip
"""Of any value."""

_OF_ARRAYS = (
    "array_to_string({0}, ',', 'N')", "array_to_json({0})", "array_length({0}, 1)",
    "array_reverse({0})", "array_sort({0})", "({0})[1]", "({0})[2:3]", "cardinality({0})",
)  # fmt: skip

_OF_TWO_ARRAYS = (
    "({0} = {1})", "({0} < {1})", "({0} || {1})", "({0} @> {1})", "({0} && {1})",
    "array_cat({0}, {1})",
)  # fmt: skip

_OF_AN_ARRAY_AND_ITS_ELEMENT = (
    "({0} || {1})", "({1} = any({0}))", "({1} < all({0}))", "array_position({0}, {1})",
    "array_remove({0}, {1})", "array_append({0}, {1})", "array_prepend({1}, {0})",
    "array_replace({0}, {1}, {1})", "array_positions({0}, {1})",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """An expression over arguments of these types; {0} is the first."""

    template: str
    types: tuple[str, ...]

    @property
    def label(self) -> str:
        """For the reader, and for --only."""
        return f"{self.template} of {', '.join(self.types)}"

    def text(self, arguments: Sequence[str]) -> str:
        """The expression."""
        return self.template.format(*arguments)


def calls(postgresql: PGconn) -> list[Call]:
    """All of them; always in the same order."""
    return [*_functions(postgresql), *_operators(postgresql), *_syntax(), *_casts()]


def catalog(connection: PGconn, text: str) -> list[list[str]]:
    """The rows of a query of catalogs."""
    found = ask(connection, text)[-1]
    assert isinstance(found, Rows), f"the catalogs answered {found}"
    return [[value or "" for value in row] for row in found.rows]


def _functions(postgresql: PGconn) -> Iterator[Call]:
    for name, types in catalog(postgresql, _FUNCTIONS):
        if not _OF_THE_SERVER.match(name):
            # In quotes no name is a keyword with a grammar of its own.
            yield from _concrete(f'"{name}"({{}})', types.split())


def _operators(postgresql: PGconn) -> Iterator[Call]:
    for name, types in catalog(postgresql, _OPERATORS):
        operands = types.split()
        template = f"({{0}} {name} {{1}})" if len(operands) == 2 else f"({name} {{0}})"
        yield from _concrete(template, operands)


def _concrete(template: str, types: Sequence[str]) -> Iterator[Call]:
    arguments = ", ".join(f"{{{at}}}" for at in range(len(types)))
    found = (
        tuple(_POLYMORPHIC[type_][at] if type_ in _POLYMORPHIC else type_ for type_ in types)
        for at in range(2)
    )
    for concrete in dict.fromkeys(found):
        if all(type_ in VALUES for type_ in concrete):
            yield Call(template.replace("{}", arguments), concrete)


def _syntax() -> Iterator[Call]:
    for type_ in stored_types():
        yield from (Call(template, (type_,)) for template in SHOWN)
        if type_.startswith("_"):
            yield from (Call(template, (type_,)) for template in _OF_ARRAYS)
            yield from (Call(template, (type_, type_)) for template in _OF_TWO_ARRAYS)
            pair = (type_, type_[1:])
            yield from (Call(template, pair) for template in _OF_AN_ARRAY_AND_ITS_ELEMENT)


def _casts() -> Iterator[Call]:
    for type_, target in itertools.permutations(stored_types(), 2):
        yield Call(f"{{0}}::{declared(target)}", (type_,))


def stored_types() -> list[str]:
    """Those that have tables."""
    return [type_ for type_ in VALUES if type_ not in NOT_STORED]
