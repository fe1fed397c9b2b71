# --- making them -------------------------------------------------------------------------------
create type mood as enum ('sad', 'ok', 'happy')
create type mood as enum ('x')
create type empty_one as enum ()
create type nowhere.mood as enum ('a')
create type long_one as enum ('0123456789012345678901234567890123456789012345678901234567890123')
create type "Odd Name" as enum ('A', 'a b', 'c,d', 'e"f', '')
select 'A'::"Odd Name", null::"Odd Name", ''::"Odd Name"
create table mood (a int)
create table taken (a int)
create type taken as enum ('a')
create view seen as select 1 as a
create type seen as enum ('a')
drop view seen
drop table taken

# --- values ------------------------------------------------------------------------------------
select 'happy'::mood
select 'Happy'::mood
select 'sad '::mood
select cast('ok' as mood), mood 'sad', null::mood
select 'ok'::mood(3)
select 'sad'::text::mood
select 'bad'::text::mood
select ('ok'::varchar(20))::mood, 'ok'::name::mood
select 'ok'::mood::text, 'ok'::mood::varchar(1), 'ok'::mood::name
select 1::mood
select 'ok'::mood::int
select 'A'::"Odd Name"::mood
select pg_typeof('ok'::mood), pg_typeof(array['ok']::mood[]), pg_typeof('A'::"Odd Name")
select 'ok'::nothing
select 'ok'::nowhere.mood
select 'ok'::public.nothing
select 'sad'::mood < 'happy'::mood, 'ok'::mood > 'sad', 'ok' <= 'ok'::mood, 'happy'::mood >= 'ok'
select 'sad'::mood = 'sad', 'sad'::mood <> 'ok', 'sad'::mood = 'other'
select 'sad'::mood = 'sad'::text
select 'sad'::mood = 'A'::"Odd Name"
select 'sad'::mood < null, 'ok'::mood between 'sad' and 'happy', 'ok'::mood in ('sad', 'ok')
select 'ok'::mood is distinct from 'sad', nullif('ok'::mood, 'ok'), coalesce(null, 'ok'::mood)
select greatest('sad'::mood, 'happy', 'ok'), least('happy'::mood, null, 'ok')
select case when true then 'ok'::mood else 'sad' end, case 'ok'::mood when 'ok' then 1 else 2 end
select 'x' || 'ok'::mood, 'ok'::mood || 'x', length('ok'::mood::text)
select 'ok'::mood || 'ok'::mood
select upper('ok'::mood)
select concat('ok'::mood, 1), format('%s-%s', 'ok'::mood, 2), quote_literal('ok'::mood)
select to_json('ok'::mood), to_jsonb(array['ok', 'sad']::mood[]), json_build_object('a', 'ok'::mood)
select -'ok'::mood

prepare p (mood, mood[]) as select $1, $2, $1 = any ($2)
execute p ('ok', '{ok,sad}')


# --- functions ---------------------------------------------------------------------------------
select enum_first(null::mood), enum_last(null::mood), enum_range(null::mood)
select enum_first('ok'::mood), enum_last('sad'::mood), enum_range('ok'::mood)
select enum_range('ok'::mood, null), enum_range(null, 'ok'::mood), enum_range('sad'::mood, 'ok'), enum_range('happy'::mood, 'sad')
select enum_range(null::mood, null::mood)
select enum_first(null)
select enum_first('ok'::text)
select enum_range('sad'::mood, 'A'::"Odd Name")
select unnest(enum_range(null::mood))
select * from unnest(enum_range(null::mood)) with ordinality as t(m, n) order by m desc
select count(*) from unnest(enum_range(null::mood)) m where m > 'sad'

# --- arrays ------------------------------------------------------------------------------------
select array['sad', 'ok']::mood[], '{happy,NULL,sad}'::mood[], array['ok'::mood]
select '{bad}'::mood[]
select array['sad']::text[]::mood[], array['sad'::mood]::text[]
select ('{sad,ok}'::mood[])[2], 'ok' = any ('{sad,ok}'::mood[]), 'ok'::mood = all ('{sad,ok}')
select '{sad,ok}'::mood[] = array['sad', 'ok']::mood[], '{sad}'::mood[] < '{ok}'::mood[]
select array_length('{sad,ok}'::mood[], 1), array_position('{sad,ok}'::mood[], 'ok'), '{sad}'::mood[] || 'ok'::mood
select '{"a b",A,"c,d","e\"f",""}'::"Odd Name"[]
select max(m), min(m) from unnest('{ok,sad,happy}'::mood[]) m

# --- columns -----------------------------------------------------------------------------------
create table person (id int primary key, feels mood default 'ok', was mood[] default '{sad}', note text)
insert into person values (1, 'happy'), (2, 'sad'), (3, default), (4, null)
insert into person values (5, 'bad')
insert into person values (5, 'ok'::text)
insert into person select 6, 'ok'::text
insert into person select 6, 'happy', '{ok,happy}'
insert into person select 7, n::mood from (values ('sad'), ('ok')) v(n) where n = 'ok'
select * from person order by id
select id, feels from person order by feels, id
select id, feels from person order by feels desc nulls last, id
select feels, count(*) from person group by feels order by feels
select min(feels), max(feels), count(distinct feels), count(feels) from person
select min(feels) filter (where id > 1), max(feels) filter (where false) from person
select distinct feels from person order by 1 desc
select distinct on (feels) feels, id from person order by feels, id
select id, rank() over (order by feels), max(feels) over (partition by id % 2 order by id) from person order by id
select array_agg(feels order by feels desc, id) from person
select string_agg(feels::text, ',' order by feels) from person
select string_agg(feels, ',') from person
select id from person where feels = 'ok' order by id
select id from person where feels < 'ok' or feels > 'ok' order by id
select id from person where feels in ('sad', 'happy') order by id
select id from person where feels not in ('sad', 'happy') order by id
select id from person where feels is null
select id from person where feels = 'nothing'
select id from person where feels <= all ('{ok,happy}'::mood[]) order by id
select p.id, q.id from person p join person q on p.feels < q.feels order by 1, 2
select p.id, q.id from person p join person q using (feels) where p.id < q.id order by 1, 2
select id from person where feels in (select feels from person where id < 3) order by id
select feels from person union select 'sad' order by 1
select feels from person union select 'bad' order by 1
select feels from person intersect select unnest(enum_range('ok'::mood, null)) order by 1
select feels from person union all select note from person
select greatest(feels, 'ok') from person order by id
select id, was from person where 'ok' = any (was) order by id
select id, feels || '!' from person order by id
select sum(feels) from person
select avg(feels) from person
select row_to_json(p) from person p where id = 1
update person set feels = 'sad' where feels = 'happy' and id = 6 returning id, feels, was
update person set feels = note
update person set feels = 'bad' where id = 1
update person set was = was || 'ok'::mood where id = 1 returning was
update person set was = array_append(was, 'bad') where id = 1
delete from person where feels > 'ok' returning *
alter table person add column next mood not null default 'happy'
select id, next from person order by id
alter table person alter column note type mood using 'ok'
alter table person alter column note type text
select id, note, pg_typeof(note) from person order by id limit 1
alter table person alter column note type mood
alter table person alter column note drop default
alter table person add check (feels <> 'happy')
insert into person (id, feels) values (10, 'happy')
alter table person add constraint c2 check (next in ('happy', 'ok'))
insert into person (id, next) values (11, 'sad')
create table keyed (m mood primary key, n int)
insert into keyed values ('ok', 1), ('sad', 2)
insert into keyed values ('ok', 3)
insert into keyed values ('ok', 3) on conflict (m) do update set n = excluded.n returning *
select * from keyed where m = 'sad'
update keyed set m = 'happy' where m = 'sad'
delete from keyed where m = 'happy' returning *
create table referring (m mood references keyed, o "Odd Name")
insert into referring values ('ok')
insert into referring values ('sad')
create table wrong (m text references keyed)
create table wrong (m "Odd Name" references keyed)
create index on person (feels)
create table copied as select id, feels, was from person
select pg_typeof(feels), pg_typeof(was) from copied limit 1
drop table copied
merge into keyed k using (values ('happy'::mood, 5), ('ok', 6)) v(m, n) on k.m = v.m when matched then update set n = v.n when not matched then insert values (v.m, v.n)
select * from keyed order by m
create table made (m mood, t text generated always as (case when m > 'sad' then 'good' else 'bad' end) stored)
insert into made values ('sad'), ('happy')
select * from made order by m
drop table made

# --- views and kept texts ----------------------------------------------------------------------
create view happy as select id, feels, feels > 'sad'::mood as good from person
select * from happy order by id
create table kept (a mood default 'ok'::mood, b text default 'ok'::mood::text, check (a < 'happy'::mood))
insert into kept values (default, default)
select * from kept
insert into kept values ('happy')
set search_path to pg_catalog
insert into public.kept values (default, default)
select * from public.kept
select * from public.happy order by id
select 'ok'::mood
select 'ok'::public.mood
reset search_path

# --- changing them -----------------------------------------------------------------------------
alter type mood add value 'great'
alter type mood add value 'great'
alter type mood add value if not exists 'great'
alter type mood add value 'meh' before 'ok'
alter type mood add value 'fine' after 'ok'
alter type mood add value 'x' before 'nothing'
alter type nothing add value 'x'
alter type nowhere.mood add value 'x'
alter type mood add value '0123456789012345678901234567890123456789012345678901234567890123'
select enum_range(null::mood)
insert into person (id, feels, next) values (20, 'meh', 'ok'), (21, 'fine', 'happy')
select id, feels from person order by feels, id
select id from person where feels > 'meh' and feels < 'happy' order by id
select max(feels) from person
alter type "Odd Name" rename value 'A' to 'B'
alter type "Odd Name" rename value 'A' to 'C'
alter type "Odd Name" rename value 'B' to 'a b'
select enum_range(null::"Odd Name")
create type plain as enum ('one', 'two')
create table plain_rows (id int, p plain default 'one', ps plain[] default '{one,two}')
insert into plain_rows values (1), (2, 'two', '{two,NULL,one}'), (3, null, null)
alter type plain rename value 'one' to 'uno'
insert into plain_rows (id) values (4)
insert into plain_rows values (5, 'one')
select * from plain_rows order by id
select id from plain_rows where p = 'uno' order by id
alter type plain rename to simple
alter type plain rename to simple
select 'uno'::simple, pg_typeof('uno'::simple)
select 'uno'::plain
create schema other
alter type simple set schema other
alter type other.simple set schema nowhere
select pg_typeof(p) from plain_rows limit 1
select 'uno'::simple
select 'uno'::other.simple
select id, p from plain_rows where p = 'dos'
alter type other.simple set schema public
alter type simple rename to mood
begin
create type inside as enum ('a', 'b')
create table inside_table (i inside)
insert into inside_table values ('b')
alter type inside add value 'c'
savepoint s
drop table inside_table
rollback to s
select * from inside_table
rollback
select 'a'::inside
begin
create type inside as enum ('a', 'b')
create table inside_table (i inside)
insert into inside_table values ('b')
commit
select * from inside_table
drop table inside_table
drop type inside

# --- dropping them -----------------------------------------------------------------------------
drop type nothing
drop type if exists nothing
drop type if exists nowhere.nothing
drop type nowhere.nothing
drop type int4
drop type simple
drop type simple cascade
select * from plain_rows order by id
drop type "Odd Name" cascade
select * from referring
create type a1 as enum ('x')
create type a2 as enum ('y')
drop type a1, a2
drop schema other
create schema third
create type third.t as enum ('a')
drop schema third
drop schema third cascade

# --- catalogs ----------------------------------------------------------------------------------
select typname, typtype, typcategory, typlen, typbyval, typinput, typoutput, typdelim, typalign, typstorage from pg_type where typname in ('mood', '_mood') order by typname
select e.enumlabel from pg_enum e join pg_type t on t.oid = e.enumtypid where t.typname = 'mood' order by enumsortorder
select a.attname, format_type(a.atttypid, a.atttypmod), t.typname, t.typelem > 0 as is_array, (select typname from pg_type b where b.oid = t.typarray) from pg_attribute a join pg_type t on t.oid = a.atttypid where a.attrelid = 'person'::regclass and a.attnum > 0 order by a.attnum
select column_name, data_type, udt_schema, udt_name, column_default from information_schema.columns where table_name = 'kept' and column_name = 'a' order by ordinal_position
select 'mood'::regtype, 'mood[]'::regtype, 'public.mood'::regtype, to_regtype('mood'), to_regtype('nothing'), format_type('mood'::regtype, -1), format_type('mood[]'::regtype, null)
select 'nothing'::regtype
select pg_type_is_visible('mood'::regtype), 'mood'::regtype = t.oid from pg_type t where typname = 'mood'
SELECT n.nspname as "Schema", pg_catalog.format_type(t.oid, NULL) AS "Name", pg_catalog.obj_description(t.oid, 'pg_type') as "Description" FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE (t.typrelid = 0 OR (SELECT c.relkind = 'c' FROM pg_catalog.pg_class c WHERE c.oid = t.typrelid)) AND NOT EXISTS(SELECT 1 FROM pg_catalog.pg_type el WHERE el.oid = t.typelem AND el.typarray = t.oid) AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_type_is_visible(t.oid) ORDER BY 1, 2
SELECT name, array_agg(label) AS labels FROM (SELECT t.typname AS name, t.oid AS oid, t.typarray AS array_oid, e.enumlabel AS label FROM pg_type t LEFT JOIN pg_enum e ON e.enumtypid = t.oid WHERE t.oid = to_regtype('mood') ORDER BY t.oid, e.enumsortorder) x GROUP BY name, oid, array_oid

# meridian
create type pair as (a int, b text)
create type spread as range (subtype = int4)
create type shell
alter type mood rename value 'sad' to 'blue'
alter type mood rename to feeling
drop type mood
drop type mood cascade
select enum_range(feels) from person
select enum_range(feels, 'ok') from person
select array_agg(distinct feels) from person
create type twice as enum ('a', 'b', 'a')
create type pg_catalog.mood as enum ('a')
prepare q (nothing) as select $1
execute p ('bad', null)
