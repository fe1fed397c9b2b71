# What foreign keys rest on is dropped, with and without CASCADE.
create table p (id int primary key, u int unique, k int)
create table c (id int primary key, p int references p, pu int references p (u), c int references c)
insert into p values (1, 10, 100), (2, 20, 200)
insert into c values (1, 1, 10, null), (2, 2, 20, 1), (3, 1, 20, 3)
alter table p drop constraint p_pkey
alter table p drop id
alter table p drop u
alter table p drop constraint p_u_key
alter table c drop id
alter table c drop constraint c_pkey
begin
alter table p drop constraint p_pkey cascade
insert into c values (4, 99, 10, 1)
delete from p where id = 2
insert into c values (5, 99, 77, 1)
rollback
begin
alter table p drop u cascade, add column z int not null default 5
insert into c values (4, 1, 99, 1)
insert into c values (5, 9, 99, 1)
rollback
insert into c values (5, 1, 99, 1)
alter table c drop constraint c_pkey cascade
insert into c values (6, 1, 10, 77)
alter table p drop id cascade
insert into c values (7, 7, 10, 77)
select conname, conrelid::regclass, confrelid::regclass, conkey, confkey from pg_constraint where contype = 'f' order by 1
alter table p drop constraint p_u_key cascade, add primary key (k)
drop table p
create table pair (a int, b int, x text, primary key (a, b), foreign key (b, a) references pair)
insert into pair values (1, 1), (1, 2, 'q'), (2, 1)
alter table pair drop b
alter table pair drop constraint pair_pkey
create table self (id int primary key, p int references self)
insert into self values (1, 1)
alter table self drop p
insert into self values (2)
create table chain (id int primary key, p int references chain, q int)
alter table chain drop column p, drop column id
insert into chain values (1)
create table q1 (a int unique, b int)
create table q2 (a int references q1 (a), b int)
alter table q1 rename a to aa
alter table q2 rename a to aaa
alter table q1 drop aa
drop index q1_a_key
create unique index q1b on q1 (b)
alter table q2 add foreign key (b) references q1 (b)
drop index q1b
drop index q1b cascade
insert into q2 values (null, 5)
select conname, conrelid::regclass, confrelid::regclass, conkey, confkey from pg_constraint where contype = 'f' order by 1
