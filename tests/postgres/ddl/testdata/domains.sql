# --- making them -------------------------------------------------------------------------------
create domain positive as int check (value > 0)
create domain positive as int
create domain code as varchar(5) default 'none' not null constraint upper_only check (value = upper(value) or value = 'none')
create domain plain as text
create domain amount numeric(8,2) default 1.005 check (value >= 0) check (value < 1000)
create domain nowhere.d as int
create domain bad as nothing
create domain bad as int default 'x'
create domain bad as int check (value)
create domain bad as int check (other > 1)
create domain bad as int check (value > (select 1))
create domain bad as int not null null
create domain bad as int unique
create domain bad as int primary key
create domain bad as int default 1 default 2
create table plain (a int)
create domain int_list as int[] check (cardinality(value) < 4)

# --- casts -------------------------------------------------------------------------------------
select 5::positive, '7'::positive, null::positive, cast(8 as positive)
select 0::positive
select (-1)::positive
select 'x'::positive
select 'ABC'::code, 'ABCDEFGH'::code
select 'abc'::code
select null::code
select 12.345::amount, 999.999::amount
select 5::positive + 1, 5::positive * 2.5, abs(5::positive)
select pg_typeof(5::positive), pg_typeof(5::positive + 1)
select 5::positive = 5, 5::positive in (1, 5), greatest(5::positive, 7)
select '{1,2}'::int_list, ('{1,2}'::int_list)[2], cardinality('{1,2}'::int_list)
select '{1,2,3,4}'::int_list
select (5::positive)::text || 'x', (5::positive)::bigint
select positive '3'
select x::positive from (values (1), (2)) v(x)
select x::positive from (values (1), (0)) v(x)
select x::plain from (values ('a'), (null)) v(x)
select 5::positive(3)
select coalesce(null, 5::positive), case when true then 5::positive end

# --- columns -----------------------------------------------------------------------------------
create table t (id int primary key, p positive, c code, a amount, note plain)
insert into t values (1, 5, 'AB', 10, 'x')
insert into t (id) values (2)
insert into t values (3, 0, 'AB')
insert into t values (3, 1, null)
insert into t values (3, 1, 'abc')
insert into t values (3, 1, 'ABCDEF')
insert into t values (3, 1, 'AB', 1000)
insert into t values (3, 1, 'AB', -1)
insert into t values (3, 'x', 'AB')
insert into t values (3, 1, default, default)
insert into t (id, p) values (4, 4), (5, -5), (6, 6)
insert into t (id, p) select 4, x from (values (3), (-3)) v(x)
insert into t (id, p) select 4, x from (values (3)) v(x)
select * from t order by id
update t set p = -1 where id = 1
update t set c = null
update t set p = p + 1 returning id, p
update t set a = a + 995 where id = 1
insert into t (id, p) values (1, -1) on conflict do nothing
insert into t (id, p) values (1, 9) on conflict (id) do update set p = excluded.p - 100
insert into t (id, p) values (1, 9) on conflict (id) do update set p = excluded.p returning p
merge into t using (values (1, -7)) v(id, p) on t.id = v.id when matched then update set p = v.p
select p + 1, upper(c), pg_typeof(p), pg_typeof(c), pg_typeof(note), pg_typeof(a) from t order by id
select max(p), sum(p), count(distinct c) from t
select id from t where p = 9
create table copied as select id, p, c from t
insert into copied values (9, -9, 'A')
select pg_typeof(p) from copied limit 1
drop table copied
create table liked (like t including defaults)
insert into liked (id, p) values (1, -1)
insert into liked (id, p) values (1, 1) returning *
drop table liked
alter table t add column more positive default 3
alter table t add column worse positive default -3
alter table t add column filled code
select id, more, filled from t order by id
alter table t drop column filled
alter table t alter column note type positive using 1
alter table t alter column note type plain using null
alter table t alter column p type int
insert into t (id, p) values (100, -100)
alter table t alter column p type positive
delete from t where id = 100
alter table t alter column p type positive
alter table t alter column c set default 'X'
insert into t (id) values (20) returning c
alter table t alter column c drop default
insert into t (id) values (21) returning c
create table keyed (c code primary key, p positive unique)
insert into keyed values ('A', 1), ('A', 2)
insert into keyed values ('A', 1)
insert into keyed values ('A', 2) on conflict (c) do update set p = excluded.p
create table referring (c code references keyed)
insert into referring values ('A'), ('B')

# --- altering ----------------------------------------------------------------------------------
alter domain positive add constraint below check (value < 5)
alter domain positive add constraint below check (value < 500)
alter domain positive add constraint below check (value < 600)
insert into t (id, p) values (30, 500)
select 500::positive
alter domain positive rename constraint below to under
alter domain positive rename constraint nothing to under
alter domain positive drop constraint below
alter domain positive drop constraint if exists below
alter domain positive drop constraint under
insert into t (id, p) values (30, 500)
alter domain plain set not null
update t set note = 'n' where note is null
alter domain plain set not null
insert into t (id) values (31)
alter domain plain drop not null
insert into t (id) values (31)
alter domain code set default 'ALSO'
insert into t (id) values (32) returning c
alter domain code drop default
insert into t (id) values (33)
alter domain code drop not null
insert into t (id) values (33) returning c
alter domain plain set default 'said'
insert into t (id) values (34) returning note
alter domain nothing set default 1
alter domain int4 set default 1
alter domain amount drop constraint amount_check1
insert into t (id, a) values (35, 5000)
alter domain amount rename to money_amount
select 1::amount
select 1::money_amount, pg_typeof(a) from t where id = 35
create schema domains_place
alter domain money_amount set schema domains_place
insert into t (id, a) values (36, -1)
alter domain domains_place.money_amount set schema public
create type mood as enum ('sad')
alter domain mood set not null
drop domain mood
drop type mood

# --- catalogs ----------------------------------------------------------------------------------
select typname, typtype, typcategory, typnotnull, typtypmod, typdefault is null, format_type(typbasetype, typtypmod) from pg_type where typname in ('positive', 'code', 'plain') order by 1
select domain_name, data_type, character_maximum_length, udt_name from information_schema.domains where domain_schema = 'public' order by 1
select column_name, data_type, domain_name, udt_name from information_schema.columns where table_name = 't' order by ordinal_position
select attname, format_type(atttypid, atttypmod) from pg_attribute where attrelid = 't'::regclass and attnum > 0 and not attisdropped order by attnum
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where contypid = 'positive'::regtype order by 1
select 'positive'::regtype, to_regtype('positive'), 'positive'::regtype::oid = t.oid from pg_type t where typname = 'positive'

# --- in blocks ---------------------------------------------------------------------------------
begin
create domain inside as int check (value <> 13)
create table inside_table (i inside)
insert into inside_table values (12)
savepoint s
insert into inside_table values (13)
rollback to s
alter domain inside drop constraint inside_check
insert into inside_table values (13)
rollback
select 1::inside
begin
create domain inside as int check (value <> 13)
create table inside_table (i inside)
insert into inside_table values (12)
commit
insert into inside_table values (13)

# --- dropping ----------------------------------------------------------------------------------
drop domain nothing
drop domain if exists nothing
drop domain inside
alter table inside_table add column j int
drop domain inside cascade
select * from inside_table
create domain alone as text
drop domain alone
create domain a1 as int
create domain a2 as int
drop domain a1, a2
drop type plain
# a NOT NULL by its name
create domain n1 as int constraint nn not null
create domain n2 as int not null
select conname, contype from pg_constraint where contypid in ('n1'::regtype, 'n2'::regtype) order by 1
alter domain n1 rename constraint nn to nnn
alter domain n1 drop constraint nnn
select null::n1
alter domain n1 add constraint again not null
alter domain n1 add constraint again2 not null
select null::n1
alter domain n1 drop not null
alter domain n1 set not null
select conname, contype from pg_constraint where contypid in ('n1'::regtype, 'n2'::regtype) order by 1
create domain n3 as int constraint x not null constraint y not null
create domain n4 as int constraint x not null check (value > 0) constraint x check (value > 1)
create domain n5 as int constraint x not null constraint x check (value > 1)
alter domain n2 add constraint n2_not_null check (value > 0)
alter domain n2 add constraint z check (value > 0)
alter domain n2 rename constraint z to n2_not_null
alter domain n2 rename constraint n2_not_null to other
select conname from pg_constraint where contypid = 'n2'::regtype order by 1
alter domain n2 drop not null
select conname from pg_constraint where contypid = 'n2'::regtype order by 1
alter domain n2 drop constraint other
alter domain n2 drop constraint if exists other
# meridian
create domain over as positive
create table arrays (a positive[])
create domain moody as nothing
select random()::int::positive
alter domain positive add constraint late check (value > 0) not valid
select cast(x as positive) from t, (values (0)) v(x) limit 1
