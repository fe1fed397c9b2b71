# A default is converted from what was written, whatever types came between.
create table t (a int default 5, b text default '7', c numeric(5,2) default 1.5, d varchar(3) default 'abc', e date default '2020-01-01', f boolean default true, g jsonb default '{"a":1}', k int)
alter table t alter a type text
alter table t alter a type int using a::int
alter table t alter a drop default, alter a type int using a::int, alter a set default 5
alter table t alter a type bigint
insert into t (k) values (1) returning *
alter table t alter b type int using b::int
alter table t alter c type text
insert into t (k) values (1) returning *
alter table t alter c type numeric using c::numeric
insert into t (k) values (2) returning *
alter table t alter e type text
alter table t alter e type date using e::date
alter table t alter f type text
alter table t alter f type boolean using f::boolean
alter table t alter g type text
insert into t (k) values (3) returning *
alter table t alter g type jsonb using g::jsonb
insert into t (k) values (3) returning *
create table u (a int default 5, k int)
alter table u alter a type text
alter table u alter a type varchar(10)
insert into u (k) values (1) returning *
alter table u alter a type char(3)
insert into u (k) values (1) returning *
alter table u alter a type int using a::int
alter table u alter a type varchar(1) using 'x'
insert into u (k) values (1) returning *
create table s2 (a numeric(5,2) default 1.55, c int default -5, d int default null, e varchar(2) default 'ab', k int, f bigint default 10000000000, g date default current_date, h time default '10:00', i interval default '1 day')
alter table s2 alter a type numeric(4,1), alter c type text, alter d type text, alter e type char(4), alter f type text, alter h type interval, alter i type text
insert into s2 (k) values (1) returning a, c, d, e, f, h, i
alter table s2 alter a type numeric(5,2), alter c type smallint using 1, alter d type int using 1, alter e type text, alter f type numeric using 1, alter g type text, alter i type interval using i::interval
insert into s2 (k) values (2) returning a, c, d, e, f, h, g = current_date::text, i
alter table s2 alter k type text, alter k set default 'x'
alter table s2 alter f type int using 1
insert into s2 (k) values (3)
alter table s2 alter e type varchar(1) using 'x'
insert into s2 (k) values (3)
alter table s2 alter g type int using 1
alter table s2 alter g drop default, alter g type int using 1
alter table s2 alter k type int using 1
create table s1 (a serial, b int)
alter table s1 alter a type text
insert into s1 (b) values (1) returning *
alter table s1 alter a type bigint using 7
insert into s1 (b) values (1) returning *
# Indexes are looked at again when all columns have their types.
create table v (a int, b text, c timestamp, d timestamptz)
create index v1 on v (b) where a > 0
create index v2 on v ((a + 1))
create index v3 on v (b text_pattern_ops desc) where b like 'a%'
create index v4 on v ((c::date))
create index v5 on v (d) where d > '2020-01-01'
insert into v values (1, 'abc')
alter table v alter a type bigint
alter table v alter a type numeric
alter table v alter b type varchar(5)
alter table v alter c type timestamptz
alter table v alter c type date
alter table v alter d type timestamp
drop index v3
create index v3 on v (b text_pattern_ops)
alter table v alter b type int using 1
drop index v1, v3
create index v6 on v ((b || d::text::int)) where b > 'x'
create table x (a int, b int unique, c int)
create index x1 on x (c)
alter table x alter b type json using null
alter table x alter c type json using null
drop index x1
alter table x alter c type json using null
create table s3 (a int, b text, check (a::text > b))
create index s3i on s3 ((a::text || b))
create index s3j on s3 (a) where b > 'x'
alter table s3 alter a type text, alter b type text
alter table s3 drop constraint s3_check
alter table s3 drop column a, alter b type varchar(6)
# meridian
# PostgreSQL's errors have a place in a text that nobody has sent, and its keys may be jsonb.
create index v1 on v (b) where a > 0
alter table v alter a type text
create index v7 on v (lower(b))
alter table v alter b type int using 1
create table w (a int, b int, check (a > 0))
alter table w alter a type text
alter table w alter a type text, alter b type text
create table y (a int primary key, b int)
alter table y alter a type jsonb using '1'
alter table y alter a type interval using '1 day', drop constraint y_pkey
