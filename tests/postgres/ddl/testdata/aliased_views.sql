# A column that goes leaves the others their places in lists of aliases.
create table w (a int, b int, c int)
create table u (a int, d int)
insert into w values (1, 2, 3)
insert into u values (1, 9)
create view wv as select y from w z(x, y, q)
create view wv2 as select y from w z(x, y)
create view wv3 as select y from (select * from w) s(x, y)
create view wv4 as select b from (select a, b from w) s
create view wv5 as select p from (w join u on w.b = u.d - 7) as j(x, y, z, q, p)
create view wv9 as select y from (select b, c from w union all select a, d from u) s(x, y)
create view wv10 as select y from (values (1, 2)) s(x, y), lateral (select w.a) k
create view wv11 as select count(*) from w group by c
create view wv12 as select count(*) from (select distinct c from w) t
create view wv13 as select (select a from u limit 1) as x, b from w
alter table w drop column a
alter table u drop column a
alter table w drop column c
drop view wv13, wv10, wv9, wv4, wv3
alter table w drop column a
alter table u drop column a
select * from wv
select * from wv2
select * from wv5
select * from wv11
select * from wv12
alter table w drop column c
drop view wv11, wv12
alter table w drop column c
select * from wv5
