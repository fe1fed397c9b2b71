# ruff: noqa: E501 -- a statement stands on one line, as it does in the file
"""The files `every_row_*.txt`: rows of the function table that need a table, a type or a role.

Of each row at least three calls, one of them with a NULL: what answers stands in one statement, what
may fail in one of its own. That no row is forgotten is proven by `tests/postgres/functions/test_every_row.py`.
"""

from collections.abc import Iterator, Sequence
from itertools import product

ROLE = "every_row_reader"
"""Roles belong to the whole server, so the name says whose it is."""


def _privileged(
    name: str, things: dict[str, tuple[str, str]], words: Sequence[str]
) -> Iterator[str]:
    """All overloads of has_<thing>_privilege: who, by name, by oid or left out; what, by name or by
    oid (`things`: name and oid of some); the words of the privilege.
    """
    roles = (
        ("current_user", f"'{ROLE}'", "'public'"),
        (f"'{ROLE}'::regrole::oid", "0::oid", "99999::oid"),
        (),
    )
    for who, by_oid in product(roles, (False, True)):
        shown = [things[thing][by_oid] for thing in things]
        lead = [f"{role}, " for role in who] or [""]
        calls = [
            f"{name}({lead[index % len(lead)]}{thing}, '{words[index % len(words)]}')"
            for index, thing in enumerate(thing for thing in shown for _ in (0, 1, 2))
        ]
        calls += [f"{name}({lead[0]}{shown[0]}, null)"]
        calls += [f"{name}({lead[0]}null::{'oid' if by_oid else 'text'}, '{words[0]}')"]
        if who:
            null = "null::name" if "current_user" in who else "null::oid"
            calls += [f"{name}({null}, {shown[0]}, '{words[0]}')"]
        yield f"select {', '.join(calls)}"
        for bad in (f"{lead[0]}{shown[0]}, 'nosuch'", f"{lead[0]}{shown[0]}, ''"):
            yield f"select {name}({bad})"
        missing = "99999::oid" if by_oid else "'nosuch'"
        yield f"select {name}({lead[0]}{missing}, '{words[0]}')"
        if "current_user" in who:
            yield f"select {name}('nobody', {shown[0]}, '{words[0]}')"


def _of_functions() -> Iterator[str]:
    name = "has_function_privilege"
    calls = (
        ("872::oid", "null::oid", "99999::oid"),
        ("'initcap(text)'", "null::text", "'nosuch(int)'"),
    )
    for (one, null, missing), role in product(
        calls, (f"'{ROLE}', ", f"'{ROLE}'::regrole::oid, ", "")
    ):
        yield f"select {name}({role}{one}, 'execute'), {name}({role}{one}, 'EXECUTE with grant option'), {name}({role}{one}, null), {name}({role}{null}, 'execute')"
        yield f"select {name}({role}{missing}, 'execute')"
        yield f"select {name}({role}{one}, 'select')"
    yield f"select {name}('initcap', 'execute')"
    yield f"select {name}(null::name, 872::oid, 'execute'), {name}(null::oid, 872::oid, 'execute')"
    yield f"select {name}('nobody', 872::oid, 'execute')"


def _of_columns() -> Iterator[str]:
    name = "has_column_privilege"
    roles = (f"'{ROLE}', ", f"'{ROLE}'::regrole::oid, ", "")
    for role, table, column in product(
        roles, ("'kept'", "'kept'::regclass::oid"), ("'n'", "2::int2")
    ):
        type_ = "text" if column == "'n'" else "int2"
        other = "'id'" if column == "'n'" else "1::int2"
        yield (
            f"select {name}({role}{table}, {column}, 'select'), {name}({role}{table}, {column}, 'Update'),"
            f" {name}({role}{table}, {other}, 'update, references'), {name}({role}{table}, null::{type_}, 'select'),"
            f" {name}({role}{table}, {column}, null), {name}({role}null::{'oid' if 'oid' in table else 'text'}, {column}, 'select')"
        )
        nowhere = "99::int2" if type_ == "int2" else "'nosuch'"
        yield f"select {name}({role}{table}, {nowhere}, 'select')"
        yield f"select {name}({role}{table}, {column}, 'delete')"
        missing = "99999::oid" if "oid" in table else "'nosuch'"
        yield f"select {name}({role}{missing}, {column}, 'select')"


def _of_roles() -> Iterator[str]:
    names, oids = (
        ("current_user", f"'{ROLE}'"),
        (f"'{ROLE}_too'::regrole::oid", f"'{ROLE}'::regrole::oid"),
    )
    for who, what in product(
        (names, oids, ()),
        (
            (f"'{ROLE}'", f"'{ROLE}_too'"),
            (f"'{ROLE}'::regrole::oid", f"'{ROLE}_too'::regrole::oid"),
        ),
    ):
        calls: list[str] = []
        for word in ("member", "usage", "SET", "member with admin option"):
            for index, role in enumerate(what):
                first = f"{who[index]}, " if who else ""
                calls.append(f"pg_has_role({first}{role}, '{word}')")
        type_ = "oid" if "oid" in what[0] else "name"
        first = f"{who[0]}, " if who else ""
        calls.append(f"pg_has_role({first}null::{type_}, 'member')")
        calls.append(f"pg_has_role({first}{what[0]}, null)")
        yield f"select {', '.join(calls)}"
        yield f"select pg_has_role({first}{what[0]}, 'nosuch')"
        nobody = "99999::oid" if type_ == "oid" else "'nobody'"
        yield f"select pg_has_role({first}{nobody}, 'member')"


def _set_up() -> Iterator[str]:
    yield f"drop role if exists {ROLE}, {ROLE}_too"
    yield f"create role {ROLE}"
    yield f"create role {ROLE}_too"
    yield f"grant {ROLE} to {ROLE}_too"
    yield "create table kept (id int generated by default as identity primary key, n int default 7 check (n > 0), t text unique)"
    yield "insert into kept (n, t) values (1, 'a'), (2, null)"
    yield "create schema own"
    yield "grant usage on schema public to public"
    yield "create table own.hidden (id int references kept)"
    yield "create view seen as select id, n + 1 as more from kept"
    yield "create sequence numbers start 5"
    yield "create type mood as enum ('sad', 'ok', 'happy')"


def _tear_down() -> Iterator[str]:
    yield "drop schema own cascade"
    yield "drop table kept cascade"
    yield "drop sequence numbers"
    yield "drop type mood"
    yield f"drop role {ROLE}, {ROLE}_too"


def privileges() -> Iterator[str]:
    """Every overload of the functions that ask for a privilege."""
    yield from _set_up()
    for grant in (
        "select, insert on kept",
        "update (n) on kept",
        "usage on sequence numbers",
        "usage on schema own",
    ):
        yield f"grant {grant} to {ROLE}"
    relations = {
        "kept": ("'kept'", "'kept'::regclass::oid"),
        "hidden": ("'own.hidden'", "'own.hidden'::regclass::oid"),
    }
    yield from _privileged(
        "has_table_privilege", relations, ("select", "INSERT, delete", "update with grant option")
    )
    yield from _privileged(
        "has_any_column_privilege", relations, ("select", "update", "references with grant option")
    )
    sequences = {"numbers": ("'numbers'", "'numbers'::regclass::oid")}
    yield from _privileged(
        "has_sequence_privilege", sequences, ("usage", "select", "UPDATE, usage")
    )
    schemas = {
        "own": ("'own'", "'own'::regnamespace::oid"),
        "public": ("'public'", "'public'::regnamespace::oid"),
    }
    yield from _privileged(
        "has_schema_privilege", schemas, ("usage", "create", "create, usage with grant option")
    )
    databases = {
        "it": (
            "current_database()",
            "(select oid from pg_database where datname = current_database())",
        )
    }
    yield from _privileged("has_database_privilege", databases, ("connect", "CREATE", "temp"))
    types = {"int4": ("'int4'", "23::oid"), "mood": ("'mood'", "'mood'::regtype::oid")}
    yield from _privileged(
        "has_type_privilege", types, ("usage", "USAGE", "usage with grant option")
    )
    yield from _of_functions()
    yield from _of_columns()
    yield from _of_roles()
    for letter in "crsdfnlTLtFS":
        yield f"select acldefault('{letter}', '{ROLE}'::regrole::oid)::text[]"
    yield "select acldefault(null, 10)::text[], acldefault('r', null)::text[]"
    yield "select row_security_active('kept'), row_security_active('own.hidden'), row_security_active(null::text)"
    yield "select row_security_active('nosuch')"
    yield "select row_security_active('kept'::regclass::oid), row_security_active(null::oid), row_security_active('seen'::regclass::oid)"
    yield "select row_security_active(99999::oid)"
    for grant in (
        "select, insert, update on kept",
        "usage on sequence numbers",
        "usage on schema own",
    ):
        yield f"revoke {grant} from {ROLE}"
    yield from _tear_down()


_OIDS = ("'kept'::regclass::oid", "0::oid", "99999::oid", "null::oid")
_OF_OID = (
    "pg_table_is_visible", "pg_type_is_visible", "pg_get_partkeydef", "pg_relation_is_publishable",
    "pg_collation_is_visible", "pg_opclass_is_visible", "pg_get_statisticsobjdef", "pg_get_statisticsobjdef_columns",
    "pg_get_triggerdef", "pg_get_ruledef", "pg_get_function_result", "pg_get_functiondef", "pg_get_function_arguments",
    "pg_get_function_identity_arguments", "pg_function_is_visible", "pg_operator_is_visible",
    "pg_statistics_obj_is_visible", "pg_ts_config_is_visible", "pg_conversion_is_visible", "pg_is_other_temp_schema",
    "pg_get_constraintdef", "pg_get_indexdef", "pg_get_viewdef", "obj_description", "pg_get_function_sqlbody",
)  # fmt: skip


_PROPERTIES = (
    "asc", "DESC", "nulls_first", "nulls_last", "orderable", "distance_orderable", "returnable", "search_array",
    "search_nulls", "clusterable", "index_scan", "bitmap_scan", "backward_scan", "can_order", "can_unique",
    "can_multi_col", "can_exclude", "can_include", "nonsense",
)  # fmt: skip


def _properties() -> Iterator[str]:
    asked = ", ".join(f"('{name}')" for name in _PROPERTIES)
    columns = ", ".join(
        f"pg_index_column_has_property('{index}'::regclass, {part}, p)"
        for index, part in (
            ("kept_pkey", 1),
            ("kept_t_key", 1),
            ("kept_pkey", 0),
            ("kept_pkey", 9),
            ("kept", 1),
        )
    )
    yield f"select p, {columns} from (values {asked}) t (p)"
    yield f"select p, pg_index_has_property('kept_pkey'::regclass, p), pg_index_has_property('kept'::regclass, p) from (values {asked}) t (p)"
    yield f"select p, a.amname, pg_indexam_has_property(a.oid, p) from pg_am a, (values {asked}) t (p) where a.oid < 5000 order by 1, 2"
    yield "select pg_index_column_has_property(null::regclass, 1, 'asc'), pg_index_column_has_property('kept_pkey'::regclass, null, 'asc'), pg_index_column_has_property('kept_pkey'::regclass, 1, null)"
    yield "select pg_index_has_property(null::regclass, 'index_scan'), pg_index_has_property('kept_pkey'::regclass, null), pg_index_has_property(99999, 'index_scan')"
    yield "select pg_indexam_has_property(null::oid, 'can_order'), pg_indexam_has_property(403, null), pg_indexam_has_property(2, 'can_order')"


def _definitions() -> Iterator[str]:
    for name in ("kept_pkey", "kept_n_check", "kept_t_key", "hidden_id_fkey"):
        found = f"(select oid from pg_constraint where conname = '{name}')"
        yield f"select pg_get_constraintdef({found}), pg_get_constraintdef({found}, true), pg_get_constraintdef({found}, null), pg_get_constraintdef(null::oid, false)"
    yield "select pg_get_indexdef('kept_pkey'::regclass), pg_get_indexdef('kept_t_key'::regclass, 1, false), pg_get_indexdef('kept_pkey'::regclass, 2, true), pg_get_indexdef('kept_pkey'::regclass, null, true), pg_get_indexdef(null::oid, 1, true), pg_get_indexdef('kept_pkey'::regclass, 1, null)"
    yield "select pg_get_indexdef('kept_t_key'::regclass, 0, true)"
    yield from _properties()
    yield "select pg_get_viewdef(null::oid), pg_get_viewdef(99999), pg_get_viewdef('kept'::regclass), pg_get_viewdef(0)"
    yield "select pg_get_viewdef('kept'::regclass, null), pg_get_viewdef(99999), pg_get_viewdef(99999, true)"
    yield "select pg_get_viewdef(99999, true), pg_get_viewdef('seen'::regclass, null::bool), pg_get_viewdef(null::oid, false), pg_get_viewdef('kept'::regclass, true)"
    yield "select pg_get_viewdef(99999, 0), pg_get_viewdef('seen'::regclass, null::int), pg_get_viewdef(null::oid, 80), pg_get_viewdef('kept'::regclass, 80)"
    yield "select pg_get_viewdef('kept'), pg_get_viewdef(null::text), pg_get_viewdef('public.kept')"
    yield "select pg_get_viewdef('kept', true), pg_get_viewdef(null::text, true), pg_get_viewdef('public.seen', null::bool), pg_get_viewdef('kept', false)"
    yield "select pg_get_viewdef('nosuch')"
    yield "select pg_get_viewdef('nosuch', true)"
    yield "select pg_get_viewdef('seen'::regclass), pg_get_viewdef('seen'::regclass, true), pg_get_viewdef('seen'), pg_get_viewdef('seen', false)"
    yield "select pg_get_expr(adbin, adrelid), pg_get_expr(adbin, adrelid, true), pg_get_expr(adbin, null), pg_get_expr(null, adrelid), pg_get_expr(adbin, adrelid, null), pg_get_expr(adbin, adrelid, false), pg_get_expr(adbin, 0) from pg_attrdef where adrelid = 'kept'::regclass order by adnum"
    yield "select pg_get_triggerdef(null::oid, true), pg_get_triggerdef(99999, false), pg_get_triggerdef(0, null)"
    yield "select pg_get_ruledef(null::oid, true), pg_get_ruledef(99999, false), pg_get_ruledef(0, null)"
    yield "select pg_get_serial_sequence('kept', 'id'), pg_get_serial_sequence('public.kept', 'n'), pg_get_serial_sequence(null, 'id'), pg_get_serial_sequence('kept', null)"
    yield "select pg_get_serial_sequence('nosuch', 'id')"
    yield "select pg_get_serial_sequence('kept', 'nosuch')"
    yield "select pg_sequence_last_value('numbers'), pg_sequence_last_value(null)"
    yield "select nextval('numbers')"
    yield "select pg_sequence_last_value('numbers'), pg_sequence_last_value('numbers'::regclass)"
    yield "select pg_sequence_last_value('kept')"


def _descriptions() -> Iterator[str]:
    yield "comment on table kept is 'what is kept'"
    yield "comment on column kept.n is 'a number'"
    yield f"comment on role {ROLE} is 'who reads'"
    yield "select obj_description('kept'::regclass), obj_description('own.hidden'::regclass), obj_description(null::oid)"
    yield "select obj_description('kept'::regclass, 'pg_class'), obj_description('kept'::regclass, 'pg_type'), obj_description('kept'::regclass, 'nosuch'), obj_description(null, 'pg_class'), obj_description('kept'::regclass, null)"
    yield f"select shobj_description('{ROLE}'::regrole, 'pg_authid'), shobj_description('{ROLE}'::regrole, 'pg_database'), shobj_description(null, 'pg_authid'), shobj_description(99999, null)"
    yield "select col_description('kept'::regclass, 2), col_description('kept'::regclass, 1), col_description('kept'::regclass, null), col_description(null, 2), col_description(99999, 1), col_description('kept'::regclass, 0)"


_MODIFIED = (16, 19, 23, 25, 114, 1007, 1082, 2950)
"""Oids of types whose texts of any modifier are the same; nobody has nonsense in the others."""


_TYPES = (
    16, 17, 19, 20, 23, 25, 114, 700, 1007, 1009, 1015, 1042, 1043, 1082,
    1083, 1114, 1184, 1186, 1231, 1266, 1700, 2950, 3802,
)  # fmt: skip


def _formats() -> Iterator[str]:
    for modifier in ("-1", "null", "0", "5", "20", "655366"):
        fitting = _TYPES if modifier in ("-1", "null") else _MODIFIED
        yield f"select {', '.join(f'format_type({oid}, {modifier})' for oid in fitting)}"
    yield "select format_type(1043, 5), format_type(1042, 20), format_type(1015, 7), format_type(1114, 3), format_type(1184, 0), format_type(1083, 6), format_type(1266, 2)"
    yield "select format_type(1700, 655366), format_type(1231, 655366), format_type(1186, 65535 + 65536 * 4)"
    yield "select format_type(null, 5), format_type(0, -1), format_type(99999, -1), format_type('mood'::regtype, null), format_type('mood[]'::regtype, -1)"


def _encodings() -> Iterator[str]:
    yield "select pg_encoding_to_char(6), pg_encoding_to_char(0), pg_encoding_to_char(8), pg_encoding_to_char(-1), pg_encoding_to_char(99), pg_encoding_to_char(null), pg_encoding_to_char(41)"
    yield "select string_agg(n || pg_encoding_to_char(n) || coalesce(pg_encoding_max_length(n), 0), ' ' order by n) from generate_series(-1, 43) n"
    for name in ("UTF8", "utf-8", "Unicode", "SQL_ASCII", "nosuch", "latin1", ""):
        yield f"select pg_char_to_encoding('{name}')"
    yield "select pg_char_to_encoding(null)"
    yield "select n, pg_char_to_encoding(n::name) from unnest(string_to_array('abc alt big5 euccn eucjis2004 eucjp euckr euctw gb18030 gbk iso88591 iso885910 iso885913 iso885914 iso885915 iso885916 iso88592 iso88593 iso88594 iso88595 iso88596 iso88597 iso88598 iso88599 johab koi8 koi8r koi8u latin1 latin10 latin2 latin3 latin4 latin5 latin6 latin7 latin8 latin9 mskanji muleinternal shiftjis shiftjis2004 sjis sqlascii tcvn tcvn5712 uhc unicode utf8 vscii win win1250 win1251 win1252 win1253 win1254 win1255 win1256 win1257 win1258 win866 win874 win932 win936 win949 win950 windows1250 windows1251 windows1252 windows1253 windows1254 windows1255 windows1256 windows1257 windows1258 windows866 windows874 windows932 windows936 windows949 windows950 latin11 win1259 EUC-JP EUC_JP iso-8859-1 utf 8', ' ')) n order by n collate \"C\""
    yield "select pg_encoding_max_length(6), pg_encoding_max_length(0), pg_encoding_max_length(8), pg_encoding_max_length(99), pg_encoding_max_length(null), pg_encoding_max_length(-1)"


_FUNCTIONS = "'{872,3305,3974,2775,1317,0,99999}'::oid[]"


def _functions() -> Iterator[str]:
    for name in ("result", "arguments", "identity_arguments"):
        yield f"select oid, pg_get_function_{name}(oid) from unnest({_FUNCTIONS}) f(oid)"
    yield "select oid, pg_get_functiondef(oid), pg_function_is_visible(oid) from unnest('{872,3305}'::oid[]) f(oid)"
    yield "select pg_get_functiondef(2101)"
    yield "select oid, pg_get_function_sqlbody(oid), pg_get_functiondef(oid) from unnest('{879,1348,1741,870}'::oid[]) f(oid) order by oid"
    yield "select n, pg_get_function_arg_default(3305, n), pg_get_function_arg_default(n, 4), pg_get_function_arg_default(null, n), pg_get_function_arg_default(3305, null) from generate_series(0, 5) n"
    yield "select oid, oidvectortypes(proargtypes) from pg_proc where oid in (872, 3305, 2775, 3100) order by oid"
    yield "select oidvectortypes(proargtypes), oidvectortypes(null) from pg_proc where proname = 'initcap'"
    yield "select oid::regproc, oidvectortypes(proargtypes) from pg_proc where proname like 'array_ap%' order by oid"


_DESCRIBED = (
    "1259::oid, 'kept'::regclass::oid, 0", "1259::oid, 'pg_class'::regclass::oid, 1",
    "1247::oid, 23::oid, 0", "1247::oid, 1::oid, 0", "2615::oid, 11::oid, 0",
    "1255::oid, 'lower(text)'::regprocedure::oid, 0", "null::oid, 1::oid, 0",
)  # fmt: skip
_BORN_WITH = {
    "ts_config": 3748, "ts_dict": 3765, "ts_parser": 3722, "ts_template": 3727, "conversion": 4402,
}  # fmt: skip


def catalogs() -> Iterator[str]:
    """Functions that look into the catalogs, but for those of privileges."""
    yield from _set_up()
    yield from _descriptions()
    for name in _OF_OID:
        for oid in _OIDS:
            yield f"select {name}({oid})"
    yield f"select pg_get_userbyid('{ROLE}'::regrole), pg_get_userbyid(0), pg_get_userbyid(99999), pg_get_userbyid(null)"
    for arguments in _DESCRIBED:
        yield f"select pg_describe_object({arguments})"
    yield "select pg_describe_object(1259::oid, o, 0), pg_describe_object(2604::oid, o, 0), pg_describe_object(2606::oid, o, 0), pg_describe_object(2618::oid, o, 0) from (values ('kept'::regclass::oid), (null)) x(o)"
    for kind, number in _BORN_WITH.items():
        yield f"select pg_{kind}_is_visible({number}::oid)"
    types = (
        "'kept'::regclass::oid",
        "'seen'::regclass::oid",
        "'own.hidden'::regclass::oid",
        "'kept_pkey'::regclass::oid",
    )
    yield f"select {', '.join(f'pg_table_is_visible({oid})' for oid in types)}"
    yield "select pg_type_is_visible('mood'::regtype), pg_type_is_visible(23), pg_type_is_visible('mood[]'::regtype)"
    yield from _formats()
    yield "select pg_relation_is_updatable('kept', false), pg_relation_is_updatable('seen', true), pg_relation_is_updatable('numbers', false), pg_relation_is_updatable(null, true), pg_relation_is_updatable('kept', null), pg_relation_is_updatable(99999::regclass, false)"
    yield "select pg_column_is_updatable('kept', 1::int2, false), pg_column_is_updatable('seen', 1::int2, false), pg_column_is_updatable('seen', 2::int2, true), pg_column_is_updatable('kept', null, true), pg_column_is_updatable(null, 1::int2, true), pg_column_is_updatable('kept', 1::int2, null), pg_column_is_updatable('kept', 0::int2, false), pg_column_is_updatable('kept', 99::int2, false), pg_column_is_updatable(99999::regclass, 1::int2, false)"
    yield from _definitions()
    for name in ("pg_table_size", "pg_relation_size", "pg_total_relation_size", "pg_indexes_size"):
        yield f"select {name}('kept') >= 0, {name}(null), {name}(99999), {name}('own.hidden') >= 0"
        yield f"select {name}('nosuch')"
    for fork in ("'main'", "'fsm'", "'vm'", "'init'", "null", "'nosuch'"):
        yield f"select pg_relation_size('kept', {fork}) >= 0"
    yield "select pg_relation_size(null, 'main'), pg_relation_size(99999, 'main')"
    yield "select pg_database_size(current_database()) > 0, pg_database_size(null::name)"
    yield "select pg_database_size('nosuch'::name)"
    yield "select pg_database_size((select oid from pg_database where datname = current_database())) > 0, pg_database_size(null::oid)"
    yield "select pg_database_size(99999::oid)"
    yield "select pg_database_size(0::oid)"
    yield "select has_schema_privilege(n, s, 'usage'), timestamptz '2020-01-01 00:00:00+00' at time zone s from (values (null::name, null::text), (null, null)) v(n, s)"
    yield from _encodings()
    yield "select relid from pg_partition_ancestors('kept') p(relid)"
    yield "select relid from pg_partition_ancestors(null) p(relid)"
    yield "select count(*) from pg_partition_ancestors(99999::regclass)"
    yield from _functions()
    yield "select pg_tablespace_location(0), pg_tablespace_location(1663), pg_tablespace_location(null)"
    yield "select pg_blocking_pids(0), pg_blocking_pids(null), pg_blocking_pids(-1)"
    yield "select pg_safe_snapshot_blocking_pids(0), pg_safe_snapshot_blocking_pids(null), pg_safe_snapshot_blocking_pids(-1)"
    yield from _tear_down()


_NAMES = {
    "regclass": ("kept", "own.hidden", "pg_class", "KEPT", '"kept"', "nosuch", "own.nosuch", "nosuch.kept", "0", "-", "", "pg_catalog.pg_class", "a.b.c.d"),
    "regtype": ("int4", "integer", "mood", "mood[]", "pg_catalog.int4", "timestamp with time zone", "nosuch", "0", "-", "_text", "varchar(3)", "", "own.hidden", "INT8"),
    "regnamespace": ("own", "public", "OWN", '"own"', "nosuch", "pg_catalog", "0", "-", "", "a.b"),
    "regprocedure": ("lower(text)", "round(numeric, int)", "lower(int)", "lower", "lower(text", "now()", "PG_CATALOG.LOWER(TEXT)", "nosuch(text)", "0", "-", "", "lower(nosuch)"),
    "regrole": (ROLE, f'"{ROLE}"', ROLE.upper(), "nobody", "0", "-", "", "a.b"),
    "regproc": ("initcap", "lower", "nosuch", "INITCAP", '"initcap"', "pg_catalog.initcap", "own.initcap", "0", "-", "", "a.b.c"),
}  # fmt: skip
_OID_OF = {
    "regclass": "'kept'::regclass::oid", "regtype": "'mood'::regtype::oid", "regnamespace": "'own'::regnamespace::oid",
    "regrole": f"'{ROLE}'::regrole::oid", "regproc": "872::oid", "regprocedure": "870::oid",
}  # fmt: skip


def registered() -> Iterator[str]:
    """Oids that are shown as names: to and from texts and numbers, over columns."""
    yield from _set_up()
    for type_, names in _NAMES.items():
        for name in names:
            quoted = name.replace("'", "''")
            yield f"select '{quoted}'::{type_}"
            yield f"select v::text::{type_} from (values ('{quoted}'::text)) x(v)"
            yield f"select to_{type_}('{quoted}')"
        for source in ("varchar", "name", "bpchar"):
            for name in (names[0], "nosuch", "0", names[1]):
                yield f"select v::{type_} from (values ('{name}'::{source})) x(v)"
            yield f"select v::{type_} from (values (null::{source})) x(v)"
        yield f"select v::{type_}, to_{type_}(v) from (values (null::text)) x(v)"
        oid = _OID_OF[type_]
        yield f"select v::{type_}, v::{type_}::oid = v from (values ({oid}), (0::oid), (99999::oid), (null::oid)) x(v)"
        for source, values in (
            ("int2", "0, 9, -1"),
            ("int4", "0, 99999, -1"),
            ("int8", "0, 99999, 4294967295"),
        ):
            for value in [*values.split(", "), "null"]:
                yield f"select v::{type_} from (values ({value}::{source})) x(v)"
        yield f"select v::{type_} from (values (-1::int8)) x(v)"
        yield f"select v::{type_} from (values (4294967296::int8)) x(v)"
        for value in (f"{oid}::{type_}", f"99999::oid::{type_}", f"null::{type_}"):
            rows = f"(values ({value}), (0::oid::{type_})) x(v)"
            yield f"select v::int8 = v::oid::int8, v::oid = {oid} from {rows}"
            yield f"select v, v::text, v::varchar, v::bpchar, v::varchar(3) from {rows}"
            yield f"select v::int4 = v::oid::int4, v::int4 is null from {rows}"
            if type_.startswith("regproc"):
                yield f"select v, v::name, v::regproc, v::regprocedure from {rows}"
    yield from _tear_down()


def enums() -> Iterator[str]:
    """Every row over enums, over columns."""
    yield "create type mood as enum ('sad', 'ok', 'happy')"
    yield """create type "Odd" as enum ('b', 'a', '', 'c d', 'e,"f')"""
    yield 'create table e (id int, m mood, o "Odd", t text, v varchar(9), c char(9), n name)'
    yield """insert into e values (1, 'sad', 'b', 'sad', 'ok', 'happy', 'sad'), (2, 'happy', '', 'happy', 'sad', 'ok', 'ok'), (3, null, 'e,"f', null, null, null, null), (4, 'ok', null, 'ok', 'happy', 'sad', 'happy')"""
    for sign in ("=", "<>", "<", "<=", ">", ">="):
        yield f"select id, m {sign} 'ok', 'sad' {sign} m, m {sign} null::mood, m {sign} m from e order by id"
        yield f"select a.id, b.id, a.o {sign} b.o from e a, e b order by 1, 2"
    for name in ("min", "max"):
        yield f"select {name}(m), {name}(o), {name}(m) filter (where id > 9), {name}(distinct m) from e"
        yield f"select id % 2, {name}(m), {name}(o) from e group by 1 order by 1"
        yield f"select {name}(x) from (values (null::mood)) v(x)"
    for name in ("enum_first", "enum_last", "enum_range"):
        yield f"select {name}(null::mood), {name}('ok'::mood), {name}(null::\"Odd\")"
        yield f"select id, {name}(m), {name}(o) from e order by id"
    yield "select enum_range('sad'::mood, 'ok'), enum_range('happy'::mood, 'sad'), enum_range(null, 'ok'::mood), enum_range('ok'::mood, null), enum_range(null::mood, null)"
    yield "select id, enum_range(m, 'happy'), enum_range('ok', m), enum_range(o, o) from e order by id"
    for target in ("text", "varchar", "varchar(2)", "bpchar", "char(2)", "char(9)", "name"):
        yield f"select id, m::{target}, o::{target} from e order by id"
        yield f"select id from e where m::{target} = 'ok' or m::{target} is null order by id"
    for source in ("t", "v", "c", "n"):
        yield f"select id, {source}::mood from e order by id"
        yield f"select id, {source}::mood > 'sad' from e where {source} is not null order by id"
        yield f'select id, {source}::"Odd" from e order by id'
    for type_ in ("text", "varchar", "bpchar", "name"):
        yield f"select x::mood from (values ('ok'::{type_}), (null)) v(x)"
        yield f"select x::mood from (values ('OK'::{type_})) v(x)"
        yield f"select x::mood from (values (''::{type_})) v(x)"


def session() -> Iterator[str]:
    """What acts on the session."""
    yield "select random() >= 0, random() < 1, random() is null"
    yield "select uuid_extract_version(uuidv4()), uuidv4() = uuidv4(), uuidv4() is null, uuid_extract_version(uuidv7()), uuidv7() is null, uuidv7() = uuidv7()"
    yield "select random(4, 4), random(null::int, 5), random(1::int, null)"
    yield "select random(3::int8, 3::int8), random(null::int8, 5::int8), random(1::int8, null)"
    yield "select random(3.0, 3.0), random(null::numeric, 5.0), random(1.0, null)"
    yield "select random_normal(3, 0), random_normal(null, 1), random_normal(1, null)"
    for name, values in {
        "pg_sleep": ("0", "-1", "0.001", "null", "'-Infinity'", "'NaN'"),
        "pg_sleep_for": ("'0'", "'-1 day'", "'1 millisecond'", "null"),
        "pg_sleep_until": ("'2000-01-01'", "now()", "null", "'-infinity'"),
    }.items():
        for value in values:
            yield f"select {name}({value}) is null"
    for arguments in (
        "'my.a', 'x', false", "'my.a', null, false", "null, 'x', false", "'my.a', 'y', null", "'my.a', '', true",
        "'nosuch', 'x', false", "'datestyle', 'nosuch', false", "'work_mem', 'x', false", "'application_name', 'é', true",
    ):  # fmt: skip
        yield f"select set_config({arguments})"
        yield "select current_setting('my.a', true), current_setting('application_name')"
