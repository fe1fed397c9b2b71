"""System functions that give rows of several columns, written as subqueries: aclexplode() and such.

    FROM aclexplode(c.relacl) a            ─▶  LATERAL (SELECT .. FROM unnest(c.relacl) ..) a
    SELECT (aclexplode(c.relacl)).grantee  ─▶  unnest(ARRAY(SELECT q.grantee FROM (SELECT ..) q))
    SELECT aclexplode(c.relacl)            ─▶  unnest(ARRAY(SELECT q FROM aclexplode(c.relacl) q))
    SELECT json_to_record(j) ..            ─▶  (SELECT q FROM json_to_record(j) q)

Functions of information_schema that return one value are rows of the function table, whose names
have the schema in them (`sql/data/catalog_functions.txt`).

INVARIANTS
  E1  a query that stands for a function orders its rows, so that the fields of one call that are
      taken one by one belong together.
"""

from collections.abc import Sequence
from typing import Any, Final

from pglast import ast, enums, parser

from sql.catalog.catalog import Table
from sql.catalog.extension_relations import PG_STAT_STATEMENTS, all_extension_views
from sql.catalog.system_catalogs import INFORMATION_SCHEMA
from sql.parser.syntax import Node, copy_node, is_a, string_values
from sql.types.sql_type import quoted_name

_PREFIX: Final = "_pg_"
_OF_ROWS: Final = {
    "_pg_truetypid": ((1, "typtype"), (1, "typbasetype"), (0, "atttypid")),
    "_pg_truetypmod": ((1, "typtype"), (1, "typtypmod"), (0, "atttypmod")),
}

_PRIVILEGES: Final = (
    "(1, 'a', 'INSERT'), (2, 'r', 'SELECT'), (3, 'w', 'UPDATE'), (4, 'd', 'DELETE'),"
    " (5, 'D', 'TRUNCATE'), (6, 'x', 'REFERENCES'), (7, 't', 'TRIGGER'), (8, 'X', 'EXECUTE'),"
    " (9, 'U', 'USAGE'), (10, 'C', 'CREATE'), (11, 'T', 'TEMPORARY'), (12, 'c', 'CONNECT'),"
    " (13, 's', 'SET'), (14, 'A', 'ALTER SYSTEM'), (15, 'm', 'MAINTAIN')"
)
_TOKEN_TYPES: Final = (
    "(1, 'asciiword', 'Word, all ASCII'), (2, 'word', 'Word, all letters'),"
    " (3, 'numword', 'Word, letters and digits'), (4, 'email', 'Email address'),"
    " (5, 'url', 'URL'), (6, 'host', 'Host'), (7, 'sfloat', 'Scientific notation'),"
    " (8, 'version', 'Version number'),"
    " (9, 'hword_numpart', 'Hyphenated word part, letters and digits'),"
    " (10, 'hword_part', 'Hyphenated word part, all letters'),"
    " (11, 'hword_asciipart', 'Hyphenated word part, all ASCII'), (12, 'blank', 'Space symbols'),"
    " (13, 'tag', 'XML tag'), (14, 'protocol', 'Protocol head'),"
    " (15, 'numhword', 'Hyphenated word, letters and digits'),"
    " (16, 'asciihword', 'Hyphenated word, all ASCII'),"
    " (17, 'hword', 'Hyphenated word, all letters'), (18, 'url_path', 'URL path'),"
    " (19, 'file', 'File or path name'), (20, 'float', 'Decimal notation'),"
    " (21, 'int', 'Signed integer'), (22, 'uint', 'Unsigned integer'), (23, 'entity', 'XML entity')"
)
"""Those of PostgreSQL's one parser (wparser_def.c)."""
_ROLE: Final = '("(?:[^"]|"")*"|[^="/]*)'
_ACL_ITEM: Final = f"^{_ROLE}=([A-Za-z*]*)/{_ROLE}$"


def _role(part: int) -> str:
    """The oid of a role that a part of an item names."""
    text = f"i.parts[{part}]"
    name = f"case when {text} like '\"%' then replace(substr({text}, 2, length({text}) - 2), "
    name += f"'\"\"', '\"') else {text} end"
    return f"(select min(r.oid) from pg_catalog.pg_authid r where r.rolname = {name})"


_QUERIES: Final = {
    ("pg_catalog", "aclexplode", 1): (
        f"select {_role(3)} as grantor, coalesce({_role(1)}, 0::oid) as grantee,"
        " p.name as privilege_type,"
        " substr(i.parts[2], strpos(i.parts[2], p.letter) + 1, 1) = '*' as is_grantable"
        f" from (select regexp_match(a.item, '{_ACL_ITEM}') as parts, a.place"
        " from unnest($1::text[]) with ordinality a(item, place)) i"
        f" join (values {_PRIVILEGES}) p(place, letter, name) on strpos(i.parts[2], p.letter) > 0"
        " order by i.place, p.place"
    ),
    ("pg_catalog", "pg_available_extensions", 0): (
        "select a.name, a.default_version, a.comment"
        " from pg_catalog.pg_available_extensions a order by a.name"
    ),
    ("pg_catalog", "pg_available_extension_versions", 0): (
        "select a.name, a.version, a.superuser, a.trusted, a.relocatable, a.schema, a.requires,"
        " a.comment from pg_catalog.pg_available_extension_versions a order by a.name, a.version"
    ),
    ("pg_catalog", "pg_get_keywords", 0): (
        "select k.word, k.catcode, k.barelabel, k.catdesc, k.baredesc"
        " from pg_catalog.meridian_keywords k order by k.word"
    ),
    ("pg_catalog", "pg_show_all_settings", 0): "select s.* from pg_catalog.pg_settings s",
    ("pg_catalog", "pg_options_to_table", 1): (
        "select case when strpos(o.item, '=') > 0 then left(o.item, strpos(o.item, '=') - 1)"
        " else o.item end as option_name, case when strpos(o.item, '=') > 0"
        " then substr(o.item, strpos(o.item, '=') + 1) end as option_value"
        " from unnest($1::text[]) with ordinality o(item, place) order by o.place"
    ),
    ("pg_catalog", "pg_get_sequence_data", 1): (
        "select s.last as last_value, s.called as is_called"
        " from pg_catalog.meridian_sequences s where s.oid = $1::regclass::oid"
    ),
    ("pg_catalog", "ts_token_type", 1): (
        f"select t.tokid, t.alias, t.description from (values {_TOKEN_TYPES})"
        " t(tokid, alias, description)"
        " where $1::text in ('3722', 'default', 'pg_catalog.default') order by t.tokid"
    ),
    ("pg_catalog", "pg_partition_tree", 1): (
        "select $1::regclass as relid, null::regclass as parentrelid, true as isleaf, 0 as level"
        " where false"
    ),
    (INFORMATION_SCHEMA, "_pg_expandarray", 1): (
        "select u.x, u.n::int4 as n from unnest($1) with ordinality u(x, n) order by u.n"
    ),
}


def _of_view(view: Table) -> str:
    """The rows of a function that a view of an extension shows; `$1`: whether texts, too."""
    shown = "case when $1 then s.query end as query"
    names = [shown if c.name == "query" else f"s.{c.name}" for c in view.columns]
    return f"select {', '.join(names)} from {view.name} s"


_OF_EXTENSIONS: Final = {
    (view.name, int(view.name == PG_STAT_STATEMENTS)): _of_view(view)
    for view in all_extension_views()
}


def system_set_subquery(node: Node) -> Node | None:
    """A function in FROM as a subquery there; None for other functions."""
    if len(node.functions) != 1 or node.ordinality or node.coldeflist:
        return None
    call, definitions = node.functions[0]
    query = None if definitions else _query(call)
    if query is None:
        return None
    alias = node.alias or ast.Alias(aliasname=call.funcname[-1].sval)
    return ast.RangeSubselect(lateral=True, subquery=query, alias=alias)


def field_of_system_set(node: Node) -> Node | None:
    """`(f(..)).field` as a set of values; None for anything else."""
    if len(node.indirection or ()) != 1 or not is_a(node.indirection[0], ast.String):
        return None
    query = _query(node.arg)
    if query is None:
        return None
    (field,) = node.indirection
    place = node.arg.location
    column = ast.ColumnRef(fields=(_ALIAS, field), location=place)
    source = ast.RangeSubselect(lateral=False, subquery=query, alias=ast.Alias(aliasname="q"))
    return _elements(_values(column, source, place), place)


def is_system_set(node: Node) -> bool:
    """Whether it is a call of one of these functions."""
    return _text(node) is not None


def rows_as_values(node: Node, row_type: Node | None, *, is_set: bool) -> Node:
    """The rows of a function in FROM as a set of records, or its row as one.

    `row_type`: the TypeName of the row type that they have.
    """
    place = node.location
    function = ast.RangeFunction(
        lateral=False,
        ordinality=False,
        is_rowsfrom=False,
        functions=((copy_node(node), None),),
        alias=ast.Alias(aliasname="q"),
    )
    row: Node = ast.ColumnRef(fields=(_ALIAS,), location=place)
    if row_type is not None:
        row = ast.TypeCast(arg=row, typeName=row_type, location=place)
    query = _values(row, function, place)
    if is_set:
        return _elements(query, place)
    kind = enums.SubLinkType.EXPR_SUBLINK
    return ast.SubLink(subLinkType=kind, subselect=query, location=place)


_ALIAS: Final = ast.String(sval="q")


def _values(value: Node, source: Node, place: int) -> Node:
    """`SELECT value FROM source`."""
    query: Node = _parsed("select 1")
    query.targetList = (ast.ResTarget(val=value, location=place),)
    query.fromClause = (source,)
    return query


def _elements(query: Node, place: int) -> Node:
    """`unnest(ARRAY(query))`."""
    kind = enums.SubLinkType.ARRAY_SUBLINK
    array = ast.SubLink(subLinkType=kind, subselect=query, location=place)
    call: Node = _parsed("select pg_catalog.unnest(1)").targetList[0].val
    call.args = (array,)
    call.location = place
    return call


def information_schema_call(node: Node) -> Node:
    """A call of a function of information_schema as the function table has it."""
    names = string_values(node.funcname)
    if len(names) == 2 and names[0] == INFORMATION_SCHEMA and names[1].startswith(_PREFIX):
        node.args = _columns_of_rows(names[1], node.args or ())
        node.funcname = (ast.String(sval=".".join(names)),)
    return node


def _columns_of_rows(name: str, args: Sequence[Node]) -> tuple[Node, ...]:
    """The columns that a function takes from rows of pg_attribute and pg_type: `a.*, t.*`."""
    wanted = _OF_ROWS.get(name)
    if wanted is None or len(args) != 2 or not all(is_a(arg, ast.ColumnRef) for arg in args):
        return tuple(args)
    rows = [[f for f in arg.fields if not is_a(f, ast.A_Star)] for arg in args]
    return tuple(
        [
            ast.ColumnRef(
                fields=(*rows[which], ast.String(sval=column)), location=args[which].location
            )
            for which, column in wanted
        ]
    )


def _query(call: Node) -> Node | None:
    """The query that stands for a call."""
    text = _text(call)
    return None if text is None else _filled(_parsed(text), list(call.args or ()))


def _text(call: Node) -> str | None:
    if not is_a(call, ast.FuncCall) or call.over is not None or call.agg_filter is not None:
        return None
    *schema, name = string_values(call.funcname)
    if len(schema) > 1:
        return None
    count = len(call.args or ())
    if (name, count) in _OF_EXTENSIONS:
        text = _OF_EXTENSIONS[name, count]
        where = f"{quoted_name(schema[0])}." if schema else ""
        return text.replace(f" from {name}", f" from {where}{name}")
    return _QUERIES.get((schema[0] if schema else "pg_catalog", name, count))


def _parsed(text: str) -> Node:
    (tree,) = parser.parse_sql(text)
    statement: Node = tree.stmt
    return statement


def _filled(tree: Any, args: Sequence[Node]) -> Any:
    """The tree with these arguments in place of `$1` .."""
    if isinstance(tree, ast.ParamRef):
        return args[(tree.number or 1) - 1]
    if isinstance(tree, tuple):
        return tuple([_filled(part, args) for part in tree])
    if isinstance(tree, ast.Node):
        for name in tree:
            setattr(tree, name, _filled(getattr(tree, name), args))
    return tree
