# tables p, c, g, other
create table p (id int generated always as identity primary key, a text)
create table c (id serial primary key, p_id int references p on delete cascade)
create table g (id int, c_id int references c, n int generated always as (id * 2) stored)
create table other (id bigserial, a int)
insert into p (a) values ('x'), ('y')
insert into c (p_id) values (3), (4), (null)
insert into g values (1, 4), (2, null)
insert into other (a) values (1), (2)
truncate p
truncate p, c
truncate p restart identity
truncate other
insert into other (a) values (3) returning a
truncate other restart identity
insert into other (a) values (4), (5)
truncate other continue identity
insert into other (a) values (6)
truncate table only other restrict
truncate p cascade
insert into p (a) values ('z')
insert into c (p_id) select id from p
insert into g select id, id from c
truncate p restart identity cascade
insert into p (a) values ('again')
insert into c (p_id) select id from p
select (select count(*) from p), (select count(*) from c), (select count(*) from g)
truncate p, c, g restart identity
insert into p (a) values ('last')
insert into c (p_id) values (default)
truncate nope
truncate p, nope cascade
truncate p, p, c, g
truncate c cascade
delete from p returning a
create sequence loose
alter sequence loose owned by other.a
truncate other restart identity
drop table g, c, p
truncate other, other restart identity
