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
# meridian
create index on t using gin (z)
create unique index on t (z) where z > 0
create unique index on t ((z + 1))
