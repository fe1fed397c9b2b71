# INCLUDE of keys, NO INHERIT of checks, COLLATE of the columns of an index.
create table a (i int, j int, t text, u text, primary key (i) include (t), unique (j) include (t, u), unique (j, t))
select conname, contype, conkey, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'a'::regclass order by 1
select indexdef from pg_indexes where tablename = 'a' order by 1
select indexrelid::regclass, indnatts, indnkeyatts, indkey, indisunique, indisprimary, indcollation, indclass, indoption from pg_index where indrelid = 'a'::regclass order by indexrelid::regclass::text
select relname, relnatts from pg_class where relname ~ '^a_' order by 1
select attrelid::regclass, attname, attnum, atttypid::regtype, attcollation from pg_attribute where attrelid in (select indexrelid from pg_index where indrelid = 'a'::regclass) order by attrelid::regclass::text, attnum
select column_name, constraint_name from information_schema.key_column_usage where table_name = 'a' order by 2, 1
select column_name, constraint_name from information_schema.constraint_column_usage where table_name = 'a' order by 2, 1
select pg_get_indexdef('a_j_t_u_key'::regclass, 1, true), pg_get_indexdef('a_j_t_u_key'::regclass, 3, true)
select attname, attnotnull from pg_attribute where attrelid = 'a'::regclass and attnum > 0 order by attnum
insert into a values (1, 1, 'x', 'y')
insert into a values (1, 2, 'z', 'y')
insert into a values (2, 1, 'z', 'y')
insert into a values (2, null, null, null), (3, null, null, null)
insert into a values (1, 7, 'n', 'n') on conflict (i) do update set t = excluded.t returning *
insert into a values (9, 1, 'n', 'n') on conflict (j) do nothing
insert into a values (9, 1, 'n', 'n') on conflict (j, t) do nothing
create table b (i int unique include (j), j int)
create table b (i int, unique (i) include (nope))
create table b (i int, unique (i) include (i))
create table c (i int, unique (i) include (i, i), unique (i) include (i), unique (i))
select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'c'::regclass order by 1
create table refers (i int references a, j int references a (j))
create table refers2 (i int references a (i, t))
create table refers3 (i int, t text, foreign key (i, t) references a (i, t))
insert into refers values (1, 1)
insert into refers values (7, 1)
insert into refers values (1, 7)
delete from a where i = 1
alter table a drop constraint a_pkey
alter table a drop column u
alter table a drop column u cascade
select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'a'::regclass order by 1
alter table a add constraint extra unique (j) include (t)
alter table a add unique (j) include (nope)
alter table a add constraint more primary key (j) include (t)
create table l (like a including indexes)
select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'l'::regclass order by 1
alter table a add unique (nope)
alter table a rename column t to tt
select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'a'::regclass order by 1
drop table refers
alter table a alter column tt type varchar(20)
select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'a'::regclass order by 1
create table ui (i int not null, j int, t text)
create unique index ui_i on ui (i) include (j)
create unique index ui_j on ui (j) include (t, i) where j > 0
create table ui_refers (i int references ui (i))
create table ui_refers2 (i int references ui (j))
insert into ui values (1, 2, 'a')
insert into ui_refers values (1), (2)
insert into ui_refers values (1)
drop index ui_i
drop table ui_refers
alter table ui add constraint ui_key primary key using index ui_i
select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'ui'::regclass order by 1
select indexdef from pg_indexes where tablename = 'ui' order by 1
alter table ui drop column i
select indexdef from pg_indexes where tablename = 'ui' order by 1
create table ch (i int check (i > 0) no inherit, j int, constraint two check (j > i) no inherit)
alter table ch add constraint three check (i < 9) no inherit not valid
alter table ch add column k int check (k <> 5) no inherit
select conname, connoinherit, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'ch'::regclass order by 1
insert into ch values (0, 1, 1)
insert into ch values (1, 2, 5)
create table ch2 (like ch including constraints)
select conname, connoinherit, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'ch2'::regclass order by 1
alter table ch validate constraint three
select conname, connoinherit, pg_get_constraintdef(oid) from pg_constraint where conname = 'three' order by 1
create table co (i int, t text, c text collate "C", n name, v varchar(9))
create index co1 on co (t collate "C", c, n, v collate "POSIX")
create index co2 on co (t collate "default", c collate "default", n collate "C")
create index co3 on co (c collate "C", n collate "default" desc, t collate pg_catalog."C" text_pattern_ops desc nulls last)
create index co4 on co (lower(t) collate "C", (t || c) collate "C", lower(c) collate "C", lower(c) collate "default")
create index co5 on co using hash (t collate "C")
create index co6 on co (i collate "C")
create index co7 on co (t collate nope."C")
create index co8 on co (t collate public."C")
create unique index co9 on co (t collate "C" desc)
create unique index co10 on co (t collate "POSIX", c)
create unique index co11 on co (lower(t) collate "C") where t > ''
select indexdef from pg_indexes where tablename = 'co' order by 1
select pg_get_indexdef('co3'::regclass, 2, false), pg_get_indexdef('co4'::regclass, 1, false), pg_get_indexdef('co4'::regclass, 2, true)
select indexrelid::regclass, indcollation, indoption, indclass from pg_index where indrelid = 'co'::regclass and indexrelid in ('co10'::regclass, 'co9'::regclass) order by indexrelid::regclass::text
select attrelid::regclass, attnum, attcollation from pg_attribute where attrelid in (select indexrelid from pg_index where indrelid = 'co'::regclass and indexrelid not in ('co4'::regclass, 'co5'::regclass)) order by attrelid::regclass::text, attnum
insert into co values (1, 'a', 'b', 'c', 'd')
insert into co values (1, 'a', 'b', 'c', 'd')
alter table co add constraint co_key unique using index co9
alter table co rename t to tt
alter table co alter v type text
select indexdef from pg_indexes where tablename = 'co' order by 1
# meridian
create index co12 on co (tt collate "en_US")
