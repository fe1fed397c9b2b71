create schema inner_s
create schema outer_s
create table inner_s.t (a int, b text)
create view outer_s.v as select a from inner_s.t
create view outer_s.over_v as select a + 1 as a from outer_s.v
create view seen as select a from outer_s.over_v
insert into inner_s.t values (1, 'x')
select * from seen
drop schema inner_s
drop schema inner_s restrict
drop schema inner_s cascade
select schemaname, viewname from pg_views where schemaname in ('inner_s', 'outer_s', 'public') order by 1, 2
select * from seen
create schema inner_s
create table inner_s.t (a int)
create view inner_s.own as select a from inner_s.t
create view outer_s.over_own as select a from inner_s.own
drop schema inner_s
drop schema outer_s, inner_s cascade
select count(*) from pg_namespace where nspname in ('inner_s', 'outer_s')
