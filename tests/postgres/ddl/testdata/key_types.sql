# Another type of a key, and of what refers to it: the constraint is made and looked at again.
create table p (id int primary key, name varchar(5) unique, amount numeric(6,2) unique)
create table c (id int primary key, pid int references p on delete cascade on update cascade)
create table n (name varchar(5) references p (name) on delete cascade, amount numeric(6,2) references p (amount) on delete cascade)
insert into p values (1, 'one', 1.50), (2, 'two', 2.50), (3, 'three', 3.50)
insert into c values (1, 1), (2, 2), (3, null)
insert into n values ('one', 1.50), ('two', 2.50), (null, null)
alter table p alter column id type bigint
insert into p values (3000000000, 'big', 9.99)
insert into c values (4, 3000000000)
insert into c values (4, 7)
update p set id = 10 where id = 1
update p set id = 3000000000 where id = 10
update p set id = 3000000001 where id = 10
select id, pid from c order by id
alter table c alter column pid type bigint
insert into c values (4, 3000000000)
insert into c values (5, 3000000002)
update p set id = 3000000005 where id = 10
delete from p where id = 3000000000
select id, pid from c order by id
alter table p alter column name type varchar(20)
alter table n alter column name type text
insert into p values (5, 'a longer name', 5)
insert into c values (5, 5)
insert into n values ('a longer name', 5)
insert into n values ('no such name', 5)
# The key becomes narrower than what refers to it.
alter table p alter column id type smallint
delete from c where pid > 100000
delete from p where id > 100000
alter table p alter column id type smallint
insert into c values (6, 5), (7, 70000)
insert into c values (6, 5), (7, 3000000000)
insert into c values (6, 5), (7, 6)
insert into c values (6, 5)
update c set pid = 70000 where id = 6
update p set id = 6 where id = 5
delete from p where id = 2
select id, pid from c order by id
# Values that USING makes must fit, too.
alter table c alter column pid type bigint using pid + 1
alter table p alter column id type int using id + 1
alter table p alter column id type int using id * 1
alter table c alter column pid type int using null
select id, pid from c order by id
alter table c alter column pid type text
alter table p alter column id type text
alter table n alter column amount type numeric(8,2)
insert into n values (null, 123456.78)
insert into n values (null, 5.00)
select conname, pg_get_constraintdef(oid) from pg_constraint where contype = 'f' order by 1
# A wider foreign key than its key, from the beginning.
create table q (id int primary key)
create table w (id int, qid bigint default 3000000000 references q on delete cascade on update cascade)
create table wn (qid bigint references q on delete set null on update set null)
create table wd (qid bigint default 9 references q on delete set default on update set default)
create table wr (qid bigint references q on delete restrict)
create table ws (id smallint references q on update cascade)
insert into q values (1), (2), (3), (9)
insert into w values (1, 1), (2, 2)
insert into w values (3, 3000000000)
insert into w values (3, 4)
insert into w (id) values (3)
insert into wn values (1), (2)
insert into wd values (1), (2)
insert into wr values (3)
insert into ws values (2)
update q set id = 100000 where id = 2
drop table ws
update q set id = 100000 where id = 2
delete from q where id = 1
delete from q where id = 3
select * from w order by 1
select * from wn order by 1
select * from wd order by 1
update w set qid = 5000000000 where id = 2
alter table wn add foreign key (qid) references p (id)
alter table w drop constraint w_qid_fkey
update w set qid = 5000000000 where id = 2
alter table w add foreign key (qid) references q
alter table w add constraint later foreign key (qid) references q not valid
alter table w alter column qid type numeric(12,0) using qid
alter table q alter column id type bigint
alter table w validate constraint later
delete from w
alter table w validate constraint later
# A table that refers to itself, and several columns.
create table s (id int primary key, parent int references s on delete cascade)
insert into s values (1, null), (2, 1), (3, 2)
alter table s alter column id type bigint
alter table s alter column parent type bigint, alter column id type smallint
alter table s alter column id type text, alter column parent type text
insert into s values ('4', '3')
insert into s values ('5', '6')
delete from s where id = '1'
select * from s
create table m (a int, b varchar(3), unique (a, b))
create table mc (x bigint, y text, foreign key (x, y) references m (a, b) match full)
insert into m values (1, 'a')
insert into mc values (1, 'a'), (null, null)
insert into mc values (3000000000, 'a')
insert into mc values (3000000000, null)
alter table m alter column a type bigint, alter column b type text
alter table m alter column a type text
begin
alter table m alter column a type int
insert into m values (2, 'b')
insert into mc values (2, 'b')
insert into mc values (2, 'c')
rollback
insert into mc values (2, 'b')
select * from mc order by 1
# Deferred ones.
create table d (x bigint references q deferrable initially deferred)
begin
insert into d values (3000000000)
insert into d values (3)
commit
begin
insert into d values (77)
alter table d alter column x type int
rollback
begin
insert into d values (77)
insert into q values (77)
commit
alter table d alter column x type int
begin
delete from q where id = 77
commit
