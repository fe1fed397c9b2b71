create table s (id int generated always as identity (start 10 increment 5) primary key, a int not null default 7 check (a > 0), b text unique default 'x' || 'y', n serial, g int generated always as (a * 2) stored, f int references s (id), constraint both_ check (a < 1000 and n < 100))
create index on s (b, lower(b))
create index plain on s (a desc) where a > 5
create unique index u on s (a, b) nulls not distinct
comment on column s.a is 'of a'
comment on constraint both_ on s is 'of both'
comment on constraint s_b_key on s is 'of the key'
comment on index s_b_key is 'of the key''s index'
comment on index plain is 'of plain'
comment on index u is 'of u'
comment on table s is 'not copied'
create table bare (like s)
create table every (like s including all)
create table some (x int, like s including defaults including indexes, y text)
create table less (like s including all excluding indexes excluding constraints excluding comments)
create table twice (like bare, like s including generated)
create table twice (like bare, other int)
create table gen (like s including generated including identity)
create table com (like s including comments)
create table con (like s including constraints including comments including storage including compression including statistics)
select c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated, pg_get_expr(d.adbin, d.adrelid) is not null from pg_class c join pg_attribute a on a.attrelid = c.oid left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and a.attnum > 0 order by 1, a.attnum
select conrelid::regclass, conname, contype, pg_get_constraintdef(oid), obj_description(oid, 'pg_constraint') from pg_constraint where contype <> 'n' and connamespace = 'public'::regnamespace and contype <> 'c' order by conrelid::regclass::text, conname
select conrelid::regclass, conname, obj_description(oid, 'pg_constraint') from pg_constraint where contype = 'c' and connamespace = 'public'::regnamespace order by conrelid::regclass::text, conname
select tablename, indexname from pg_indexes where schemaname = 'public' order by 1, 2
select c.relname, d.objsubid, d.description from pg_description d join pg_class c on c.oid = d.objoid and d.classoid = 'pg_class'::regclass where c.relnamespace = 'public'::regnamespace order by 1, 2
select relname from pg_class where relkind = 'S' and relnamespace = 'public'::regnamespace order by 1
alter table gen alter id set no maxvalue
select seqrelid::regclass, seqtypid::regtype, seqstart, seqmax, seqincrement from pg_sequence order by seqrelid::regclass::text
insert into every (b) values ('one') returning *
insert into every (b) values ('one')
insert into every (a, b) values (0, 'two')
insert into every (a, b) values (1000, 'two')
insert into every (id, b) values (1, 'two')
insert into s (b) values ('one') returning *
insert into some (x, id, g) values (1, 1, 2) returning *
insert into some (x, id, g) values (1, 1, 2)
insert into less (b) values ('one'), ('one') returning *
insert into bare (a) values (1)
insert into bare (id, a, n) values (1, 1, 1) returning *
insert into gen (a, n) values (4, 1) returning *
drop table s
drop table f, s
drop table s cascade
insert into every (n, b) values (1, 'three') returning *
insert into every (b) values ('four') returning *
drop table every, "some", less, gen, com, con, twice
create table k (a int primary key, b int unique)
create table more (c int primary key, like k including indexes)
create table more (like k including indexes, b2 int, unique (b))
select indexname from pg_indexes where tablename = 'more' order by 1
create table clash (like k, a text)
create table checked (a int constraint positive check (a > 0))
create table checked2 (like checked including constraints, b int constraint positive check (b > 0))
create table checked3 (like checked including constraints, b int constraint bpos check (b > 0))
insert into checked3 values (-1, 1)
insert into checked3 values (1, -1)
create view v as select a, b::text as shown from k
create table of_view (like v including all)
insert into of_view values (1, 'x') returning *
create table nope (like missing)
create table nope (like missing.k)
create sequence q
create table nope (like q)
create table nope (like k_pkey)
create table if not exists more (like k)
create table if not exists fresh (like k including all)
insert into fresh values (1, 1), (1, 2)
create schema other
create table other.k (like k including all)
insert into other.k values (1, 1), (2, 1)
create table other.k2 (like other.k including indexes)
begin
create table inside (like k including all)
insert into inside values (1, 1)
create table inside2 (like inside including all)
insert into inside2 select * from inside returning *
rollback
select * from inside
create table numbers (n numeric(10, 2), m numeric, v varchar(3), c char(4), t timestamp, a int[])
create table numbers2 (like numbers)
insert into numbers2 values (1.234, 1.5, 'abc', 'x', '2024-01-01 10:00:00.123', '{1,2}') returning *
insert into numbers2 (v) values ('abcd')
alter table numbers rename column n to nn
alter table numbers drop column m
create table numbers3 (like numbers including all)
insert into numbers3 values (1.234, 'abc') returning *
create table named_nulls (a int constraint must not null, b int not null, c int primary key)
create table as_named (like named_nulls)
create table as_all (like named_nulls including all, d int not null)
select conrelid::regclass::text, conname from pg_constraint where contype = 'n' and conrelid in ('as_named'::regclass, 'as_all'::regclass) order by 1, 2
alter table as_named drop constraint must
insert into as_named values (null, null, 1)
# meridian
# A value that does not fit: PostgreSQL cuts its upper half off, and tells nobody.
alter table gen alter id set generated always set no maxvalue restart 2147483648
insert into gen (a, n) values (1, 1)
insert into gen (a, n) select 1, x from (values (1), (2)) v(x)
