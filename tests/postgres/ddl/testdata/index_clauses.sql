# What is said of the columns of an index, and where ON CONFLICT says it.
create table a (i int primary key, t text)
create index i1 on a (i) include (t asc)
create index i2 on a (i) include (t nulls last)
create index i3 on a (i) include (t text_ops)
create index i4 on a (i) include (t collate "C")
create index i5 on a (i) include ((t))
create index i6 on a (i) include ((i+1))
create index i7 on a (i) include (nope)
create index i8 on a (i, i) include (i, t, t)
create index i10 on a (i) include (t text_ops (x=1))
create index i11 on a (t nope.text_ops)
create index i12 on a (t public.text_ops)
create index i13 on a (t pg_catalog.text_ops, t pg_catalog.text_pattern_ops, t varchar_ops)
create index i14 on a (i nope_ops)
create index i15 on a (i text_ops)
select indexdef from pg_indexes where indexname like 'i%' order by 1
drop index concurrently i8, i13
drop index concurrently i8 cascade
drop index concurrently if exists nope, nope2
drop index concurrently nope cascade
drop index concurrently i8 restrict
create table tk (t text primary key, v varchar(5) unique)
insert into tk values ('a')
insert into tk values ('a') on conflict (t collate "C") do nothing
insert into tk values ('a') on conflict (t collate "default") do nothing
insert into tk values ('a') on conflict (t collate pg_catalog."default") do nothing
insert into tk values ('a') on conflict ((t) collate "C") do nothing
insert into tk values ('a') on conflict ((t collate "C")) do nothing
insert into tk values ('a') on conflict (t text_ops) do nothing
insert into tk values ('a') on conflict (t varchar_ops) do nothing
insert into tk values ('a') on conflict (t text_pattern_ops) do nothing
insert into tk values ('a') on conflict ((t) text_pattern_ops) do nothing
insert into tk values ('a') on conflict (t int4_ops) do nothing
insert into tk values ('a') on conflict (t nope_ops) do nothing
insert into tk values ('a') on conflict (t nope.text_ops) do nothing
insert into tk values ('b', 'c') on conflict (v text_ops) do nothing
insert into a (i) values (9) on conflict (i collate "default") do nothing
insert into a (i) values (9) on conflict (i int4_ops) do nothing
insert into a (i) values (9) on conflict (i int8_ops) do nothing
insert into a as z (i) values (10) on conflict (i) where z.i > 3 do nothing
insert into a as z (i) values (10) on conflict (i) where a.i > 3 do nothing
insert into a as z (i) values (10) on conflict (i) where excluded.i > 3 do nothing
insert into a (i) values (10) on conflict (i) where a.i > 3 do nothing
# meridian
create index j2 on a (i) with (fillfactor = 70)
create index j3 on a (i) tablespace pg_default
create index j4 on a (t text_ops (x = 1))
create index j5 on a (i) nulls not distinct
create unique index j6 on a (i) include (t)
create index j7 on a using gist (t)
insert into tk values ('a') on conflict (t collate "nope") do nothing
