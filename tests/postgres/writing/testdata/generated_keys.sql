# tables g, p, q, f, h, s, o, k, l, m, e
create table g (id int, d int generated always as (id * 2) stored unique, e int default 0)
insert into g (id) values (1), (5)
update g set id = 5 where id = 1
update g set id = 5
update g set e = 5 where id = 1 returning *
merge into g using (values (1)) s(x) on g.id = s.x when matched then update set id = 5
insert into g (id) values (1) on conflict (d) do update set id = 5
insert into g (id) values (1) on conflict (d) do update set id = 7 returning *
insert into g (id) values (7), (7) on conflict (d) do update set id = g.id + 1 returning *
insert into g (id) values (8), (8) on conflict (d) do update set e = g.e + 1
with a as (update g set id = 30 where id = 5 returning 1) update g set id = 30 where id = 8
create table p (x int primary key)
create table q (y int primary key)
insert into p values (1), (2), (3), (9), (77)
insert into q values (10), (20)
create table f (id int primary key, x int references p on update cascade on delete set null, y int generated always as (x * 10) stored references q, u int generated always as (x + 5) stored unique)
insert into f (id, x) values (1, 1), (2, 2)
insert into f (id, x) values (3, 3)
update f set x = 3 where id = 2
update p set x = 4 where x = 2
delete from p where x = 2
create table h (id int primary key, a int references q on update cascade, b int generated always as (a / 10) stored unique)
insert into h values (1, 10), (2, 20)
update q set y = 11 where y = 20
update q set y = 25 where y = 20
create table s (x int default 77 references p on delete set default, z int generated always as (x + 1) stored references q)
insert into s values (9)
delete from p where x = 9
insert into q values (78)
delete from p where x = 9
create table o (a int, c int, x int generated always as (a * 10) stored primary key)
insert into o values (1, 1), (2, 1)
create table k (r int primary key references o on update cascade on delete cascade, s int generated always as (r + 1) stored unique)
create table l (s int references k (s) on delete cascade)
create table m (s int references k (s) on update cascade)
insert into k values (10), (20)
insert into m values (11)
update o set c = 2
update o set a = 3 where a = 1
insert into l values (31)
update o set a = 4 where a = 3
delete from o where a = 3
update o set a = a + 5
alter table m add foreign key (s) references o not valid
update m set s = s
create table e (x int generated always as (1) stored references q on delete set null)
create table e (x int generated always as (1) stored references q on delete set default)
create table e (x int generated always as (1) stored references q on update cascade)
create table e (x int generated always as (1) stored references q on update set null)
create table e (x int generated always as (1) stored references q on update set default on delete set null)
alter table g add foreign key (d) references q on update cascade
create table e (id int, x int generated always as (id) stored references q on delete cascade on update restrict)
insert into e values (10)
update e set id = 11
delete from q where y = 10
alter table e add constraint later foreign key (x) references p not valid
update e set id = id
