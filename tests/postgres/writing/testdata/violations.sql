# tables s.p, s.c, "Odd", n
create schema s
create type s.kind as enum ('a', 'b')
create domain s.even as int constraint is_even check (value % 2 = 0)
create domain s.named as text not null
create table s.p (id int constraint p_key primary key, code text constraint p_code unique, k s.kind, constraint p_pair unique (id, code), constraint code_length check (length(code) < 4))
create table s.c (id int, p_id int constraint c_to_p references s.p, code text, e s.even, m s.named default 'm', constraint c_pair foreign key (p_id, code) references s.p (id, code), constraint low_id check (id < 100), check (id <> 13))
create table "Odd" ("Key" int primary key, "quoted ""col""" int not null, "x y" varchar(2) check ("x y" <> 'no'))
create table n (a int not null, b int constraint b_is_there not null, c int, unique nulls not distinct (c))
insert into s.p values (1, 'abc', 'a'), (2, null, 'b')
insert into s.p values (1, 'x', 'a')
insert into s.p values (3, 'abc', 'a')
insert into s.p values (3, 'abcd', 'a')
insert into s.p values (null, 'x', 'a')
insert into s.p values (3, 'x', 'c')
insert into s.p values ('x', 'x', 'a')
insert into s.p values (3000000000, 'x', 'a')
insert into s.c values (1, 1, 'abc', 2)
insert into s.c values (2, 9, null, 2)
insert into s.c values (2, 1, 'xyz', 2)
insert into s.c values (100, 1, 'abc', 2)
insert into s.c values (13, 1, 'abc', 2)
insert into s.c values (2, 1, 'abc', 3)
insert into s.c values (2, 1, 'abc', 2, null)
insert into s.c values (2, null, 'zzz', null, '')
update s.p set id = 5 where id = 1
update s.p set id = 1 where id = 2
update s.p set code = 'abcd'
update s.p set id = null
update s.p set k = 'z'
update s.p set code = 'new' where id = 1
delete from s.p where id = 1
delete from s.p
update s.c set p_id = 77
update s.c set id = 13 where id = 1
update s.c set e = 1 where id = 1
update s.c set m = null
update s.c set id = id + 98
truncate s.p
alter table s.p add constraint few check (id < 2)
alter table s.c add constraint one_m unique (m)
alter table s.c add constraint no_null check (p_id is not null)
alter table s.c alter column p_id set not null
alter table s.c add constraint twice foreign key (id) references s.p (code)
alter table s.c add constraint ids foreign key (id) references s.p (id)
alter domain s.even add constraint positive check (value > 2)
alter domain s.named add constraint given check (value <> '')
alter domain s.even set not null
insert into "Odd" values (1, 1, 'ab')
insert into "Odd" values (1, 1, 'ab')
insert into "Odd" values (2, null, 'ab')
insert into "Odd" values (2, 2, 'abc')
insert into "Odd" values (2, 2, 'no')
insert into "Odd" values (null, 2, 'ab')
update "Odd" set "Key" = "Key" + 1, "x y" = 'no'
update "Odd" set "quoted ""col""" = null
insert into n values (1, 1, null)
insert into n values (1, 1, null)
insert into n values (null, 1, 1)
insert into n values (1, null, 1)
insert into n (c) values (2)
insert into n values (1, 1, 5), (2, 2, 5)
insert into n values (1, 1, 6), (2, null, 7)
insert into n select x, nullif(x, 3), x from generate_series(1, 4) x
insert into n select 1, 1, x / 2 from generate_series(20, 24) x
alter table n add primary key (c)
alter table n add column d int not null
alter table n add constraint b_is_there check (a > 0)
alter table n add check (b > 1)
create unique index n_a on n (a)
insert into n values (1, 1, 50)
create unique index n_b on n (b)
select 'b'::s.kind, 3::s.even
select null::s.named
select 'c'::s.kind
drop schema s
