# Each action of ALTER TABLE has keys of its own; what was dropped leaves its name.
create table t (id int not null, b int)
alter table t add unique(id), add unique(id)
select conname from pg_constraint where conrelid='t'::regclass order by 1
alter table t drop constraint t_id_key, add unique (id)
select conname from pg_constraint where conrelid='t'::regclass order by 1
alter table t add primary key (id), add constraint t_b_key unique (b), add unique (b)
select conname from pg_constraint where conrelid='t'::regclass order by 1
alter table t drop constraint t_pkey, add primary key (id)
select conname from pg_constraint where conrelid='t'::regclass order by 1
alter table t drop constraint t_pkey, add primary key (id), add primary key (b)
alter table t add column k int unique primary key, add unique (k)
alter table t drop constraint t_pkey
alter table t add column k int unique primary key, add unique (k)
select conname from pg_constraint where conrelid='t'::regclass order by 1
alter table t add unique (b, b)
alter table t add unique (b), add constraint t_b_key3 unique(b)
alter table t add unique (b), add constraint t_b_key2 unique(b)
create table e (a int, e int)
alter table e alter e type bigint using (select 1)
alter table e alter e type bigint using e + (select 1)
alter table e alter e type bigint, alter e type text
alter table e alter e type int, alter e type text
alter table e alter e type bigint, alter a type bigint
create sequence s
select setval('s', 50)
alter sequence s maxvalue 10
alter sequence s maxvalue 50
select nextval('s')
alter sequence s minvalue 60 start 60 maxvalue 1000
alter sequence s minvalue 60 start 60 maxvalue 1000 restart
select nextval('s')
create sequence s2
alter sequence s2 start 5 minvalue 5
alter sequence s2 start 5
alter sequence s2 minvalue 2
create table idt (i int generated always as identity, k int)
insert into idt (k) values (1),(2),(3)
alter table idt alter i set maxvalue 2
alter table idt alter i set maxvalue 3
insert into idt (k) values (1)
create table k3 (a int check (b > 0), b int, c int check (c > a), d int check (d > 0 and d < 10), e int check (1 < 2))
select conname from pg_constraint where conrelid='k3'::regclass order by 1
alter table k3 add column f int check (b < 10)
alter table k3 add column g int check (g < 10 and b > 0), add h int check (h > 0 or h > 10)
select conname from pg_constraint where conrelid='k3'::regclass order by 1
alter table k3 add check (k3.a > 1)
select conname from pg_constraint where conrelid='k3'::regclass order by 1
