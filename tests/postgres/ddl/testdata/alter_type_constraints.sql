create table z (a int not null, b text, c int check (c > 0), d int constraint r check (d < b::int))
insert into z values (1, '10', 2, 3), (2, '20', 4, 5)
alter table z alter column a type text using null
alter table z alter column a type int using nullif(a, 2)
alter table z alter column a drop not null, alter column a type text using null
select * from z order by b
alter table z alter column a type int using b::int, alter column a set not null
alter table z alter column c type bigint using -c
alter table z alter column c type bigint using null
alter table z alter column b type int using 4
alter table z alter column d type bigint using d * 10
select * from z order by b
create table s (a serial, b int generated always as identity, c int primary key, d int unique)
insert into s (c, d) values (1, 1), (2, 2)
alter table s alter column a type text using null
alter table s alter column b type bigint using null
alter table s alter column c type bigint using nullif(c, 1)
alter table s alter column d type bigint using null
alter table s alter column c type bigint using 7
alter table s add constraint n not null d
alter table s alter column c type bigint, alter column c type int
select * from s order by a
create domain dn as int not null
create domain dc as int check (value > 1)
alter table z alter column b type dn using null
alter table z alter column a type dc using 1
create table w (a dc not null, b dn)
insert into w values (2, 3)
alter table w alter column a type int using null
alter table w alter column b type int using null
select * from w
