# CREATE CAST between an enum and a type of texts says where a conversion happens by itself.
create type genre as enum ('novel', 'essay', 'a')
create table t (g genre, v varchar(10), x text)
insert into t values ('novel', 'essay', 'a')
insert into t (g) select v from t
insert into t (v) select g from t
# A cast that is explicit takes away the conversion that texts have by themselves.
create cast (genre as varchar) with inout
insert into t (v) select g from t
drop cast (genre as varchar)
insert into t (v) select g from t where g = 'novel'
# As Hibernate makes them.
create cast (varchar as genre) with inout as implicit
create cast (varchar as genre) with inout as implicit
create cast (genre as varchar) with inout as implicit
insert into t (g) select v from t where v = 'essay'
insert into t (g) select x from t
insert into t (g) select substr(x, 1, 1)::varchar from t where x is not null
insert into t (g) select 'nope'::varchar
select g, v, x from t order by 1, 2, 3
select g = v from t
select upper(g) from t
select v || g, x || g from t where v is not null and g is not null order by 1
select coalesce(g, v) from t
select g from t union select v from t
select g::text, concat(g, 1) from t order by g
select castsource::regtype, casttarget::regtype, castfunc, castcontext, castmethod from pg_cast where oid >= 16384 order by 1, 2
select classid::regclass, refclassid::regclass, refobjid::regtype, deptype from pg_depend where classid = 'pg_cast'::regclass and objid >= 16384
# Casts go with their type.
drop type genre
create type other as enum ('a')
create cast (text as other) with inout as assignment
drop type other
drop type other cascade
drop cast (varchar as genre)
drop cast (varchar as genre)
drop cast if exists (varchar as genre)
drop cast if exists (varchar as nowhere)
drop cast (varchar as nowhere)
# An implicit cast to text takes part in the choice of operators and functions.
create cast (genre as text) with inout as implicit
select g = 'a'::text, upper(g), length(g), g like 'a' from t where g = 'a'
select 'a'::genre < 'novel', 'a'::genre < 'novel'::text
select min(g) from t
select g || 'x' from t where g = 'a'
select g in ('a'::text, 'b'::text) from t where g = 'a'
select array[g]::text[] = array['a'] from t where g = 'a'
select array[g] = array['a'::text] from t
select case when true then g else x end from t
create cast (genre as genre) with inout
create cast (genre as nowhere) with inout
create cast (genre as varchar(3)) with inout as assignment
create cast (genre as text) without function
alter type genre add value 'b'
select upper('b'::genre)
alter type genre rename to kind
select upper('b'::kind)
begin
create cast (bpchar as kind) with inout as implicit
insert into t (g) select 'b'::char(3)
rollback
insert into t (g) select 'b'::char(3)
drop type kind cascade
select count(*) from pg_cast where oid >= 16384
# meridian
create type mood as enum ('sad', 'ok')
create cast (mood as text) with inout as implicit
create table m (feel mood)
create view loud as select upper(feel) from m
drop cast (mood as text)
drop view loud
drop cast (mood as text)
create cast (int as mood) with inout
create cast (int as bigint) with function int8(int)
create cast (mood as text) with function upper(text)
drop cast (int as bigint)
comment on cast (text as mood) is 'x'
