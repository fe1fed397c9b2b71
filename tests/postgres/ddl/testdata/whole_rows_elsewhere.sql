# Whole rows where they may not stay, in subqueries, and under other styles.
create table u (id int primary key, d date, n numeric(8,2), f float8)
insert into u values (1, '2020-02-01', 1.50, 0.1), (2, null, null, null)
create table c (uid int, x text)
insert into c values (1, 'a'), (1, 'b'), (3, 'c')
select (select u) from u order by id
select (select to_json(u)) from u order by id
select id, (select count(*) from c where c.uid = u.id and u is not null) from u order by id
select id from u where exists (select 1 from c where c.uid = (u).id) order by id
select u.id, (select json_agg(c order by x) from c where c.uid = u.id) from u order by id
select x, (select u from u where u.id = c.uid) from c order by x
select x, (select u from u where u.id = c.uid) is null from c order by x
select x, ((select u from u where u.id = c.uid)).d from c order by x
select c.x, u from c left join u on u.id = c.uid order by x
select c.x, u.f from c left join lateral (select v as f from u v where v.id = c.uid) u on true order by x
select c.x, (l.f).n from c left join lateral (select v as f from u v where v.id = c.uid) l on true order by x
select u from u group by id order by id
select u.*, u from u where u.id in (select (v).id from u v) order by id
select json_build_object('u', u, 'cs', (select jsonb_agg(c order by x) from c where c.uid = u.id)) from u order by id
with recursive r as (select u as v, 1 as n from u where id = 1 union all select v, n + 1 from r where n < 3) select (v).id, n from r order by n
select v from (select u as v, row_number() over (order by id desc) as k from u) q where k = 1
select array_agg(u.id order by id) filter (where u is not null), count(*) filter (where u is null) from u
select case when u is null then 'x' else (u).d::text end from u order by id
insert into c select 5, u from u where id = 1
select x from c where uid = 5
create view w2 as select json_each('{"a":1}')
create view w3 as select (json_each('{"a":1}')).key
select * from w3
create index ui on u ((u.*::text))
set datestyle = 'German'
select u from u order by id
select u::text from u order by id
select (u).d from u order by id
select to_json(u) from u order by id
select (x).id from (select u as x from u order by id) q
select x from (select u as x from u order by id) q
# meridian
create view w1 as select ('(1,,,)'::u).id
create table g (a int, b text default (row(1,null,null,null)::u)::text)
alter table u add check (u is not null)
select to_json(x) from (select u as x from u) q
select json_agg(x) from (select u as x from u) q
select jsonb_build_object('a', x) from (select u as x from u) q
select json_build_array(x) from (select u as x from u) q
select json_object('a': x) from (select u as x from u) q
select json_array(x) from (select u as x from u) q
select json_agg(array[x]) from (select u as x from u) q
select (x).d from (select u as x from u) q
select '(1,01.02.2020,,)'::u
