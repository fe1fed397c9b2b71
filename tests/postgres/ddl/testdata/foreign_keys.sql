create table p (id int primary key, name text, u int unique)
create table c (id int primary key, pid int references p)
insert into p values (1, 'a', 10), (2, 'b', 20), (3, 'c', 30), (4, 'd', 40)
insert into c values (1, 1), (2, null)
insert into c values (3, 99)
insert into c select x, x from (values (3),(4),(77)) v(x)
update c set pid = 50 where id = 1
update c set pid = 2 where id = 1
delete from p where id = 2
delete from p where id = 1
update p set id = 100 where id = 2
update p set id = 2, name = 'z' where id = 2
update p set id = 101 where id = 3
update p set name = 'q'
begin
insert into c values (10, 500)
rollback
begin
insert into p values (500, 'x', 500)
insert into c values (10, 500)
commit
drop table p
alter table p drop constraint p_pkey
truncate p
truncate p, c
insert into p values (1, 'a', 10), (2, 'b', 20), (3, 'c', 30), (4, 'd', 40)
create table cc (id int, pid int references p (id) on delete cascade, unique (id))
create table cn (id int, pid int references p (u) on delete set null on update set null)
create table cr (id int, pid int, foreign key (pid) references p on delete restrict)
create table gc (id int, cid int references cc (id) on delete cascade)
insert into cc values (1, 1), (2, 1), (3, 2)
insert into gc values (1, 1), (2, 1), (3, 3)
insert into cn values (1, 10), (2, 20)
delete from p where id = 1
select * from cc order by 1
select * from gc order by 1
select * from cn order by 1
update p set u = 21 where id = 2
select * from cn order by 1
insert into cr values (1, 3)
delete from p where id = 3
update p set id = 33 where id = 3
delete from cr
delete from p where id = 3
create table s (id int primary key, parent int references s)
insert into s values (1, null), (2, 1), (3, 2)
insert into s values (4, 9)
insert into s values (5, 6), (6, 5)
delete from s where id = 1
delete from s
create table bad (a int references nope)
create table bad (a int references p (name))
create table bad (a int references p (nope))
create table bad (a text references p)
create table bad (a int, foreign key (b) references p)
create table bad (a int, b int, foreign key (a, b) references p)
create table noid (a int)
create table bad (a int references noid)
create table m (a int, b int, primary key (a, b))
create table mc (x int, y int, foreign key (x, y) references m)
insert into m values (1, 2), (2, 1)
insert into mc values (1, 2), (null, 5), (1, null)
insert into mc values (1, 1)
insert into mc values (1, 2), (2, 2)
delete from m where a = 1
create table late (pid int)
insert into late values (2), (999)
alter table late add constraint fk foreign key (pid) references p
delete from late where pid = 999
alter table late add constraint fk foreign key (pid) references p
insert into late values (998)
alter table late drop constraint fk
insert into late values (998)
alter table late add column q int references p
insert into late values (1, 998)
alter table late add foreign key (pid) references p not valid
insert into late values (997, null)
alter table late validate constraint late_pid_fkey
drop table p cascade
insert into late values (997, 1)
insert into cc values (50, 50)
# meridian
create table q (id int primary key)
create table bad (a int, b int, foreign key (a, b) references q match full deferrable)
create table random_ (a int default (random() * 10)::int references q on delete set default)
create table long (a varchar(9) primary key)
create table short (a varchar(3) references long on update cascade)
insert into q values (1)
insert into random_ values (1)
delete from q
insert into long values ('abc')
insert into short values ('abc')
update long set a = 'abcd'
