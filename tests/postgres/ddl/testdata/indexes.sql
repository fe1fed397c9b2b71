create table t (a int, b text, c int)
create index on t (a)
create index t_b on t (b desc nulls last, lower(b)) where a > 0
create index t_b on t (a)
create index if not exists t_b on t (a)
create index on t (nope)
create index on t (a, lower(b))
create unique index u on t (a)
insert into t values (1, 'x', 1), (2, 'y', 2)
insert into t values (1, 'z', 3)
create unique index on t (c)
insert into t values (3, 'z', 1)
alter table t add column d int
update t set d = 1
create unique index w on t (d)
alter table t rename column b to bb
create index on t (bb)
drop index t_b
drop index t_b
drop index if exists t_b
drop index u
insert into t values (1, 'z', 3)
alter table t add primary key (c)
drop index t_pkey
drop index t
drop table t
create table t (a int)
create index t_a_idx on t (a)
begin
drop index t_a_idx
rollback
drop index t_a_idx
create index concurrently x on t using hash (a)
alter table t drop column a, add column z int
drop index x
# what an index rests on must be the same at any time
create table im (a int, b timestamptz, c text)
create index on im ((a + random()))
create index on im (a) where a > random()
create index on im ((b::date))
create index on im ((b::text))
create index on im (lower(c))
create index on im (now())
create index on im ((a + 1)) where b < now()
create index on im ((to_char(b, 'YYYY')))
create index on im (date_trunc('day', b))
create index on im (current_user)
create index on im (a) where c = current_user
create index on im ((c::date))
create index on im (a) where b > '2020-01-01'
create index on im ((a::text))
create index on im ((c || a))
create index on im (concat(c, a))
create index on im ((gen_random_uuid()))
create index on im (extract(year from b))
create index on im (extract(year from b at time zone 'UTC'))
# names count those that are there already, and included columns; expressions stand in parentheses
create table ie (a int, b text, c int)
create index on ie ((a + 1), (a + 2), (a + 3) desc)
create index on ie (a, a, (a * 2)) include (b)
create index on ie ((b || 'x'), lower(b), coalesce(a, 1), nullif(a, 2), greatest(a, c), (a is null))
create index on ie ((a + 1)) include (c, b)
create table ie2 (like ie including indexes)
select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid where indrelid in ('ie'::regclass, 'ie2'::regclass) order by 1
select c.relname, pg_get_indexdef(c.oid, 1, true), pg_get_indexdef(c.oid, 2, true), pg_get_indexdef(c.oid, 3, true) from pg_index i join pg_class c on c.oid = i.indexrelid where indrelid = 'ie'::regclass and i.indnkeyatts <= 3 order by 1
create table ordered (a int, b text, c int)
create index on ordered (b asc nulls last, a desc nulls first)
create index on ordered (a desc nulls last, c nulls first)
create unique index on ordered (a desc, b)
create unique index on ordered (b desc nulls first, c nulls first)
create unique index on ordered (a asc nulls last)
create unique index on ordered (c desc nulls last)
create unique index u on ordered using hash (a)
create index on ordered using hash (a, b)
create index on ordered using hash (a desc)
create index on ordered using hash (a nulls first)
create index on ordered using hash (a) include (b)
insert into ordered values (1, 'x', 1), (1, 'y', 2)
select indexdef from pg_indexes where tablename = 'ordered' order by indexname
select array_to_string(i.indoption::int2[], ' ') from pg_index i join pg_class c on c.oid = i.indexrelid where indrelid = 'ordered'::regclass order by relname
create table as_ordered (like ordered including indexes)
select indexdef from pg_indexes where tablename = 'as_ordered' order by indexname
alter table ordered rename a to aa
select indexdef from pg_indexes where tablename = 'ordered' order by indexname
# What an index computes: constants of it are computed at once.
create table computed (a int, b text, j json)
create index on computed ((null))
create index on computed (('x'))
create index on computed using hash (('x'))
create index on computed (('x') text_ops)
create index on computed (j)
create index on computed ((b::json))
create index on computed ((1/0))
create index on computed ((a / (1/0)))
create index on computed ((case when a > 0 then 1/0 else 1 end))
create index on computed ((case when false then 1/0 else 1 end))
create index on computed ((a / 0))
create index on computed ((null::int))
create index on computed (a) where null
create index on computed (a) where 1/0 = 1
create index on computed (a) where 'x'
drop table computed
select pg_get_indexdef(indexrelid) from pg_index where indrelid = 'ie'::regclass order by 1
# meridian
create index on t using gin (z)
create unique index on t (z) where z > 0
create unique index on t ((z + 1))
create unique index on ordered (aa) include (b)
create index on ordered (aa) nulls not distinct
create table no_heirs (a int not null no inherit)
alter table ordered add constraint n not null aa no inherit
