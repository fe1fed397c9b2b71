"""Definitions that rest on something, and what is done to that by who has not seen them."""

from typing import Final

SETUP: Final = (
    "create table u (a e, b d)",
    "create view uv as select a, b from u",
    "create view uw as select a, b from uv",
    "create table k (id int primary key, c text)",
    "create domain f as int constraint c check (value > 1)",
    "insert into u values ('x', 1)",
)
"""Behind that of `definition_pairs.py`."""

RESTING: Final = (
    "create table n (a text check (a <> 'x'::e::text))",
    "create table n (a text default 'x'::e::text || random())",
    "create table n (a int check (a <> 1::d))",
    "create table n (a text, g text generated always as (a || 1::d) stored)",
    "create table n (a int references k)",
    "create table n (like u including all)",
    "alter table t add column n text check (n <> 'x'::e::text)",
    "alter table t alter column b set default 'x'::e::text || random()",
    "alter table t add constraint n check (c <> 1::d)",
    "alter table t add constraint n foreign key (c) references k",
    "create view n as select 'x'::e as a",
    "create view n as select null::e[] as a",
    "create view n as select 'e'::regtype as a",
    "create view n as select a from u where a = 'x'",
    "create view n as select b from uw where a = 'x'",
    "create view n as select 1::d as a",
    "create view n as select c from t",
    "create view n as select * from v",
    "create view n as select id, c from k group by id",
    "create or replace view uv as select a, b from u where a = 'x'",
    "alter view v alter column b set default 'x'::e::text || random()",
    "create domain n as text check (value <> 'x'::e::text)",
    "create domain n as text default 'x'::e::text || random()",
    "create index n on u (b) where a > 'x'",
    "create index n on t (c)",
    "create index n on t ((c + 1))",
    "create sequence n owned by t.c",
    "alter sequence q owned by t.c",
)

CHANGES: Final = (
    "drop type e",
    "drop type e cascade",
    "drop domain d cascade",
    "begin; drop type e cascade; create type e as enum ('p')",
    "alter type e rename to e2",
    "alter type e set schema s",
    "alter type e rename value 'x' to 'w'",
    "alter type e add value 'z'",
    "alter domain d rename to d2",
    "alter domain d set schema s",
    "alter domain d add constraint n check (value < 7)",
    "alter table t alter column c type text",
    "alter table t rename column c to c2",
    "alter table t drop column c",
    "alter table t set schema s",
    "alter table k alter column id type bigint",
    "alter table k alter column id type text",
    "alter table k drop constraint k_pkey",
    "alter view v rename column b to b2",
    "begin; drop view v; create view v as select a + 1 as a from t",
    "begin; drop view uw; drop view uv; alter table u alter column a type text",
)

FOUND: Final = (
    ("create table n (a text check (a <> 'x'::e::text))", "drop type e cascade"),
    ("create table n (a int check (a <> 1::d))", "alter domain d rename to d2"),
    ("create view n as select 'x'::e as a", "alter type e set schema s"),
    ("create view n as select b from uw where a = 'x'", "alter type e rename value 'x' to 'w'"),
    ("create domain n as text check (value <> 'x'::e::text)", "alter type e rename to e2"),
    ("create index n on t (c)", "alter table t rename column c to c2"),
    ("create index n on t (c)", "alter table t set schema s"),
    ("create table n (a int references k)", "alter table k alter column id type text"),
    ("create view n as select id, c from k group by id", "alter table k drop constraint k_pkey"),
)
"""Pairs that have left something behind without a meaning, or in another schema than its table."""

SAID: Final = (
    ("comment on constraint pu on p is 'n'", "alter table p rename constraint pu to n"),
    ("comment on constraint c on domain f is 'n'", "alter domain f rename constraint c to n"),
    ("comment on index pu is 'n'", "alter index pu rename to n"),
    ("comment on schema s is 'n'", "alter schema s rename to s2"),
    ("grant usage on schema s to r", "alter schema s rename to s2"),
    (
        "alter default privileges in schema s grant select on tables to r",
        "alter schema s rename to s2",
    ),
)
"""What is said of something by its name, and another name for it."""
