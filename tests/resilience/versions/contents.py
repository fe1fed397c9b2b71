"""What a kept data directory has in it, and the questions whose answers must stay.

first part ─ stop (flushed) ─ second part ─ stop ─ third part ─ kill -9 (a tail) ─▶ archive
"""

from typing import Final

FLUSHED: Final = (
    "create schema s",
    "create type mood as enum ('sad', 'ok', 'happy')",
    "create domain positive as int default 7 check (value > 0)",
    "create sequence serial start 100 increment 10",
    """create table types (
        id int primary key, a_bool bool, a_int2 int2, a_int8 int8, an_oid oid, a_float4 float4,
        a_float8 float8, a_numeric numeric, a_money numeric(10,2), a_text text,
        a_varchar varchar(5), a_char char(4), a_name name, one "char", some_bytes bytea,
        a_uuid uuid, a_json json, a_jsonb jsonb, a_date date, a_time time, a_timetz timetz,
        a_timestamp timestamp(3), a_timestamptz timestamptz, an_interval interval, a_mood mood,
        a_positive positive, ints int[], texts text[], moods mood[], numerics numeric(6,3)[])""",
    """insert into types values (
        1, true, -32768, 9223372036854775807, 4294967295, 'NaN', '-Infinity',
        12345678901234567890.123456789012345678, -99999999.99, E'a ''quoted'' \u20ac', 'abcde',
        'ab', 'a name', 'x', '\\x00ff', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
        '{"b": 1, "a" : [1,  2]}', '{"b": 1, "a": [1, 2.50]}', '2024-02-29', '23:59:59.999999',
        '12:00:00.5+05:30', '2024-12-31 23:59:59.9995', '2024-06-30 12:00:00+02',
        '1 year 2 mons -3 days 04:05:06.789', 'happy', 5, '{1,null,3}', '{a,"b c",null}',
        '{sad,ok}', '{1.5,-2.125}')""",
    "insert into types (id) values (2)",
    "create table parent (id int primary key, code text unique not null)",
    """create table child (
        id bigint generated always as identity, parent int references parent on delete cascade,
        mood mood default 'ok', total numeric(12,2) check (total >= 0),
        double numeric(12,2) generated always as (total * 2) stored, old text,
        unique (parent, id))""",
    "insert into parent select n, 'code ' || n from generate_series(1, 20) n",
    """insert into child (parent, total, old)
        select n % 20 + 1, n * 1.25, 'old ' || n from generate_series(1, 200) n""",
    "create index on child (total)",
    "create view totals as select parent, sum(total) as total from child group by parent",
    "create table s.clustered (a int, b text) partition by range (a)",
    "insert into s.clustered select n, 'b' from generate_series(50, 1, -1) n",
    "comment on table child is 'rows of parents'",
    "comment on column child.total is 'euros'",
    "create role reader",
    "grant select on child to reader",
    "create table dropped (a int)",
    "insert into dropped values (1)",
    "create timeline other manual",
    "create table counted (a int) in timeline other",
    "insert into counted values (1)",
    "insert into counted values (2)",
)
"""All of it is in Delta tables when the server has stopped."""

CHANGED: Final = (
    "create read hold before_changes",
    "delete from child where id % 7 = 0",
    "update child set total = total + 100, mood = 'sad' where id % 11 = 0",
    "alter table child drop column old",
    "alter table child rename column total to amount",
    "alter table child add column note text default 'none'",
    "alter type mood add value 'angry' after 'sad'",
    "drop table dropped",
    "select nextval('serial')",
    "insert into types (id, a_mood, a_timestamptz) values (3, 'angry', '2025-01-01 00:00+00')",
)
"""Deleted rows, columns that came and went, a dropped table; in Delta tables, too."""

TAIL: Final = (
    "insert into parent values (21, 'code 21')",
    "insert into child (parent, amount, note) values (21, 9.99, 'tail')",
    "update child set amount = 1 where id = 3",
    "delete from parent where id = 4",
    "create table made_last (a int primary key, b mood)",
    "insert into made_last values (1, 'angry')",
    "delete from types where id = 2",
    "select nextval('serial')",
    "insert into counted values (3)",
)
"""Committed, and in no Delta table when the server is killed."""

QUESTIONS: Final = (
    "select * from types order by id",
    "select id, parent, mood, amount, double, note from child order by id",
    "select * from child order by id as of {hold}",
    "select * from parent order by id",
    "select * from totals order by parent",
    "select * from s.clustered order by a",
    "select * from made_last",
    "select * from counted order by a",
    "select a.id, b.code from child a join parent b on a.parent = b.id where b.code = 'code 21'",
    "select conname, contype from pg_constraint where conname !~ '^pg_' order by conname",
    "select attname, format_type(atttypid, atttypmod), attnotnull from pg_attribute"
    " where attrelid in ('child'::regclass, 'types'::regclass) and attnum > 0"
    " and not attisdropped order by attrelid, attnum",
    "select relname, relkind, obj_description(oid, 'pg_class') from pg_class"
    " where relnamespace in ('public'::regnamespace, 's'::regnamespace) order by relname",
    "select enumlabel from pg_enum order by enumsortorder",
    "select rolname, rolcanlogin from pg_roles where rolname = 'reader'",
    "select has_table_privilege('reader', 'child', 'select')",
    "select count(*) from pg_class where relname = 'dropped'",
)
"""Asked before the version is killed, and of every later program that opens its directory.
`{hold}`: the timestamp of the read hold."""

REFUSED: Final = (
    ("insert into child (parent, amount) values (999, 1)", "23503"),
    ("insert into child (parent, amount) values (1, -1)", "23514"),
    ("insert into parent values (1, 'again')", "23505"),
    ("insert into parent values (99, 'code 1')", "23505"),
    ("insert into types (id, a_positive) values (9, 0)", "23514"),
    ("insert into made_last values (1, 'ok')", "23505"),
    ("select * from dropped", "42P01"),
)
"""Statements, and the SQLSTATE that the rules in the directory answer with."""

GOES_ON: Final = (
    "insert into child (parent, amount) select 1, n from generate_series(1, 10) n",
    "update types set a_text = 'new' where id = 1",
    "alter table parent add column more int default 5",
    "insert into counted values (4)",
    "drop read hold before_changes",
)
"""Writes that it takes afterwards."""
