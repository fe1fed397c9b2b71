# Clauses behind constraints, and of columns.
create table a (i int primary key, t text, j int not null, constraint jc check (j > 0))
create table k1 (i int check (i > 0) enforced)
insert into k1 values (0)
create table k2 (i int references a enforced deferrable)
create table k3 (i int references a initially deferred enforced)
select conname, condeferrable, condeferred, conenforced from pg_constraint where conname ~ '^k' order by 1
create table k4 (i int check (i > 0) not enforced enforced)
create table k5 (i int check (i > 0) enforced enforced)
create table k6 (i int enforced)
create table k7 (i int not enforced check (i > 0))
create table k8 (i int unique not enforced)
create table k9 (i int primary key enforced)
create table k10 (i int not null enforced)
create table k11 (i int default 1 enforced)
create table k12 (i int, check (i > 0) enforced)
create table k13 (i int, unique (i) enforced)
alter table a add constraint ck check (i > 0) enforced
alter table a add column ee int check (ee > 0) enforced
alter table a validate constraint a_pkey
alter table a validate constraint a_j_not_null
alter table a validate constraint jc
alter table a validate constraint nope
create table c1 (i int options (a 'b'))
alter table a add column z int options (a 'b')
create table o1 (i int) with (oids = false)
create table o2 (i int) with (oids)
create table o3 (i int) with (oids = true)
create table o4 (i int) with (oids = 'off')
create table o5 (i int) with (oids = nope)
create table o6 with (oids = false) as select 1 as a
create table o7 with (oids) as select 1 as a
create table o8 (i int) without oids
alter table a set (oids = false)
select relname, reloptions from pg_class where relname ~ '^o\d' order by 1
create table f1 (a int, foreign key (a) references a (i) on update set null (a))
create table f2 (a int, foreign key (a) references a (i) on update set default (a))
create domain d0 as int check (value > 0) no inherit
create domain d as int
alter domain d add check (value > 2) no inherit
select 1::d
create role x1 unencrypted password 'x'
alter role postgres unencrypted password 'x'
# meridian
create table m1 (i int check (i > 0) not enforced)
create table m2 (i int references a not enforced)
create table m3 (i int, check (i > 0) not enforced)
create table m4 (i int, foreign key (i) references a not enforced)
alter table a add constraint c6 check (i > 0) not enforced
alter table a alter constraint jc not enforced
create table m6 (i int not null no inherit)
create table m7 (i int, not null i no inherit)
create table m8 (i int storage plain)
create table m9 (t text compression pglz)
create table m10 (i int) with (fillfactor = 70)
create table m11 (i int) using heap
create table m12 (i int) tablespace pg_default
create unlogged table m13 (i int)
create table m14 (i int unique with (fillfactor = 70))
create table m15 (i int unique using index tablespace pg_default)
create table m17 (i int) inherits (a)
create table m18 of a
create table m19 (i int, exclude using gist (i with =))
create table m20 (i int generated always as (1) virtual)
create domain m21 as text collate "C"
alter domain d add check (value > 3) not valid
alter domain d validate constraint d_check
alter table a alter t type text collate "C"
