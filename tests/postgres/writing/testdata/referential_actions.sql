# tables p, c, d, m
create table p (a int primary key, b text unique, n numeric(6,2))
create table c (id int primary key, a int references p on update cascade on delete set default default 1, b text references p (b) on update set null on delete set null)
create table d (id int unique references c (id) on update cascade on delete cascade, a int default 7 references p on update set default on delete cascade)
create table m (x int, y int, z int, t text default 'z', primary key (x, y))
insert into p values (1, 'one', 1), (2, 'two', 2), (3, 'three', 3), (7, 'seven', 7), (9, null, 9)
insert into c values (1, 1, 'one'), (2, 2, 'two'), (3, 2, null), (4, null, 'three')
insert into d values (1, 2), (2, 3), (3, null), (4, 7)
update p set a = 20 where a = 2
update p set a = a where a = 20
update p set n = n + 1
update p set b = 'zwei' where b = 'two'
update p set b = null where a = 1
update c set id = id + 10
update c set id = 11 where id = 12
update p set a = 70 where a = 7
update p set a = a + 100 where a > 100
update p set a = 30 where a = 3
update p set a = 7 where a = 70
update p set a = 30 where a = 3
delete from p where a = 20
delete from p where a = 1
update p set a = 5 where a = 1
delete from p where a = 5
insert into p values (1, 'again', 1)
delete from p where a = 5
update c set id = 1000 where id = 14 returning *
delete from c where id = 1000
insert into p values (40, 'forty', 4) on conflict do nothing
insert into c values (40, 40, 'forty')
insert into d values (40, 40)
insert into p values (40, 'x', 5) on conflict (a) do update set a = 41, b = 'forty-one'
merge into p using (values (41), (30)) s (i) on p.a = s.i when matched and i = 41 then update set a = 42 when matched then delete
with gone as (delete from p where a = 42 returning *) insert into p select a, b, n from gone
with x as (update p set a = 43 where a = 42 returning a) insert into c values (43, 42, null)
delete from p where a in (1, 43)
create table e (x int, y int, z int default 0, foreign key (x, y) references m match full on delete set null on update cascade)
insert into m values (1, 1), (1, 2), (2, 1), (0, 0)
insert into e values (1, 1), (null, null), (1, 2)
insert into e values (1, null)
insert into e values (3, 3)
update e set x = null where y = 2
update m set x = x + 5 where x = 1
select * from e order by x, y
delete from m where y = 2
select * from e order by x, y
alter table e drop constraint e_x_y_fkey
insert into e values (2, null)
alter table e add foreign key (x, y) references m match full
delete from e where y is null
alter table e add constraint efk foreign key (x, y) references m on delete set null (y) on update restrict
update m set y = 3 where x = 6
delete from m where x = 6
select * from e order by x, y
create table f (x int default 0, y int default 0, foreign key (x, y) references m on delete set default (y))
insert into m values (6, 1), (6, 0)
insert into f values (6, 1)
delete from m where x = 6 and y = 1
select * from f
delete from m where x = 6 and y = 0
create table bad (x int, y int, foreign key (x) references p on delete set null (y))
create table bad (x int, y int, foreign key (x) references p on delete set null (nothere))
create table bad (x int references p match partial)
select conname, pg_get_constraintdef(oid), confupdtype, confdeltype, confmatchtype, confdelsetcols from pg_constraint where contype = 'f' order by 1
select constraint_name, match_option, update_rule, delete_rule from information_schema.referential_constraints order by 1
drop table e
drop table f
create table s (a smallint references p on update cascade, v text)
insert into p values (50, 'fifty', 5)
insert into s values (50, 's')
update p set a = 100000 where a = 50
update p set a = 51 where a = 50
select * from s
create table own (id int primary key, up int references own on update cascade on delete cascade, check (id < 1000))
insert into own values (1, 1), (2, 1), (3, 2)
update own set id = id * 10 where id = 1
select * from own order by id
update own set id = 5000 where id = 10
delete from own where id = 10
select * from own
create table u (a int unique references p on update cascade not null)
insert into u values (51)
update p set a = 52 where a = 51
select * from u
truncate p cascade
