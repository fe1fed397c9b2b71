# The row of a table as a value: shown, compared, as JSON, its fields, casts to its type.
create table t (a int primary key, b text, c jsonb, d float8, e int[], f interval, g char(3))
insert into t values (1, 'x y', '{"k": 1.50}', 1.5, '{1,2}', '1 day', 'a'), (2, null, null, null, null, null, null)
create table u (id int, t_id int, g text[])
insert into u values (10, 1, '{a,b}'), (11, 7, null), (12, 3, '{}')
create view v as select id, g from u
select v from v order by id
select v from v order by v
select u from u order by u desc
select distinct u from u order by 1
select min(t_id), count(*), u from u group by u order by u
select u = u from u
select t = t from t
select t from t union all select t from t
select u from u union select u from u order by 1
select array[u, u] from u where id = 10
select (array[u])[1] from u where id = 10
select ((array[u])[1]).id from u where id = 10
select (array_agg(u order by id))[2] from u
select unnest(array_agg(u order by id)) from u
select json_agg(x) from (select unnest(array_agg(u order by id)) x from u) q
select array_to_json(array_agg(u order by id)) from u
select to_json(array_agg(u order by id)) from u
select json_build_array(u, 1) from u order by id
select jsonb_agg(u order by id) from u
select jsonb_object_agg(id, u) from u
select json_object_agg(id, t order by id) from u left join t on t.a = u.t_id
select row_to_json(t), to_jsonb(t) from t order by a
select to_jsonb(t) - 'a' from t order by a
select row_to_json(row(1,'a'))
select row_to_json((select t from t where a = 1))
select to_json((select t from t where a = 1))
select jsonb_build_object('t', (select t from t where a = 5))
select array(select u from u order by id)
select to_json(array(select u from u order by id))
select lag(u) over (order by id) from u order by id
select first_value(u) over (order by id) from u order by id
select coalesce(t, (select t from t where a = 2)) from u left join t on t.a = u.t_id order by id
select coalesce(to_json(t), '{}') from u left join t on t.a = u.t_id order by id
select case when t is null then 'no' else 'yes' end from u left join t on t.a = u.t_id order by id
select t is null, t is not null, (t) is null from u left join t on t.a = u.t_id order by id
select x is null, x is not null from (select t as x from u left join t on t.a = u.t_id order by id) q
select (x).a, (x).d, (x).e, (x).f, (x).c->'k', (x).g || '|' from (select t as x from t order by a) q
select (x).* from (select t as x from t order by a) q
select (x).nope from (select t as x from t) q
select (x).nope from (select row(1) as x from t) q
select (t).nope from t
select x.a from (select t as x from t) q
select q.x from (select u as x from u order by id) q
select q from (select u as x from u order by id) q
select (q).x from (select u as x from u order by id) q
select ((q).x).id from (select u as x from u order by id) q
select (q.x).g[1] from (select u as x from u order by id) q
select pg_typeof(t) from t limit 1
select u::text || '!' from u order by id
select length(u::text) from u order by id
select lower(u::text) like '%a%' from u order by id
select row(1, 'x', null)::u
select row(1, 2, array['x'])::u
select row(1, '2', '{x,y}')::u
select row(1, 2)::u
select row(1, 2, 3)::u
select '(1,2)'::u
select '(1,2,{x,y})'::u
select '(1,2,"{x,y}")'::u
select '(1,2,3,4)'::u
select '1,2'::u
select '(1,2,'::u
select '(1,2,) x'::u
select '(a,2,)'::u
select ('(1,2,{})'::u).g
select (null::u).id
select cast(u as u) from u where id = 10
select u::t from u
select 1::u
select u from u where u is not null order by id
select u.* is not null from u order by id
select u from u where u = row(10, 1, array['a','b'])
select * from (select u as x from u) q where (x).id > 10 order by (x).id
select (x).id, count(*) from (select u as x from u) q group by (x).id order by 1
select sum((x).id) from (select u as x from u) q
insert into u (id) select (x).id + 100 from (select u as x from u) q returning u
update u set t_id = 9 where (u).id > 100 returning (u).id, u
delete from u where id > 100 returning u.*, to_json(u)
merge into u using (select 10 as k) s on u.id = s.k when matched then update set t_id = 5 returning u
select old, new from u limit 0
update u set t_id = 1 where id = 10 returning old.t_id, new.t_id
select generate_series(1,2), u from u where id = 10
select u, jsonb_each(to_jsonb(u)) from u where id = 10
select id, (jsonb_each_text(to_jsonb(u))).* from u where id = 10
select (jsonb_each_text(to_jsonb(u))).key from u where id = 10
select * from u where (jsonb_populate_record(null::u, '{"id":10}')).id = id
select j.* from u, jsonb_each(to_jsonb(u)) j where id = 10
select j from u, jsonb_each(to_jsonb(u)) j where id = 10
select row(u, 1) from u where id = 10
select (row(u, 1)).f1 from u where id = 10
select ((row(u, 1)).f1).id from u where id = 10
select u from only u where id = 10
select a.u from (select u.id as u from u) a order by 1
select x from u as x where x.id = 10
select pg_typeof(x) from u as x where x.id = 10
select x from u as x(p, q) where p = 10
select to_json(x) from u as x(p, q) where p = 10
select string_agg(u::text, ';' order by id) from u
select greatest(u, row(99,1,null)::u) from u where id = 10
prepare p as select u from u where (u).id = $1
execute p(10)
prepare p3 as select ($1::u).id
execute p3('(3,4,)')
declare c cursor for select u from u
begin
declare c cursor with hold for select u from u order by id
fetch 2 from c
commit
fetch 1 from c
select t is distinct from t from t
select row('x')::text, row(1,'y',null)
select x.f2 from (select row(1,'y') x) q
select to_json(x) from (select row(1,'y', null, 1.50, true) x) q
select t from t order by a
select t.t from t
select u from u order by id
select t.* is null, t is not null, t is null from t order by a
select count(t), count(u) from t full join u on u.t_id = t.a
select row_to_json(t) from t order by a
select to_json(t), to_jsonb(t) from t order by a
select json_agg(t order by a) from t
select jsonb_agg(t order by a) from t
select jsonb_agg(t) from (select a, b from t order by a) t
select t::text from t order by a
select (t).a, (t).b from t order by a
select u, t from t right join u on u.t_id = t.a order by u.id
select u from u order by u
select u from u group by u order by 1
select distinct u from u order by u
select pg_typeof(u) from u limit 1
select q from (select 1 a, 'x' b) q
select u from u where u.id = 10 union all select u from u where id = 11
select coalesce(t, null) from t where a = 1
select case when true then t end from t where a = 2
select row(u, 1) from u order by id
select u = u, u <> u from u
select u = (10, 1) from u order by id
select u in (select u from u) from u
select exists (select u from u)
select (select u from u where id = 10)
select (select t from t where a = 1)
select format('%s', u) from u order by id
select concat(u, '!') from u order by id
select u || '' from u order by id
select json_build_object('u', u) from u order by id
select jsonb_build_object('u', u) from u order by id
select jsonb_build_object('u', (select u from u where id=10))
select row_to_json(q) from (select u.*, t from u left join t on t.a = u.t_id order by u.id) q
select to_jsonb(q) from (select u, 1 as n from u order by u.id) q
select json_agg(q) from (select u.*, (select json_agg(t) from t where t.a = u.t_id) as ts from u order by id) q
select (q.u).id from (select u from u order by u.id) q
select (q.u).* from (select u from u order by u.id) q
with w as (select u from u) select (u).id from w order by 1
with w as (select u from u order by id) select w.u from w
select hashtext(u::text) = hashtext('(10,1)') from u where id = 10
select u::u from u order by id
select row(5,6)::u
select '(5,6)'::u
select (row(5,6)::u).t_id
select null::u
select null::u is null
select ('(5,6)'::u).id
select nullif(u, null) from u where id = 10
# meridian
select t from t order by t
select distinct t from t
select t from t group by t
select t in (select t from t) from t
select t from t union select t from t
select t from t where t = any(array[t])
select count(distinct t) from t
select pg_typeof(t), pg_typeof(row(1)), pg_typeof(array_agg(t)) from t group by t.a, t.*
create table w as select u from u
create view w as select u from u
create view w as select to_json(u) as j from u
create table w (x u)
select j from (u join (select 1 as n) z on true) j where id = 10
select max(u), min(u) from u
select u > row(10, 1, null) from u order by id
prepare p2(u) as select $1
select t in (t, t) from t
select t in (t) from t
select array_position(array[t], t) from t
select array_remove(array[t], t) from t
select nullif(t, t) from t
select case t when t then 1 end from t
select row(t) = row(t) from t
select row_number() over (partition by t) from t
select row_number() over (order by t) from t
select distinct on (t) t from t
select (select t from t where a=1) = (select t from t where a=1)
select x = y from (select t as x, t as y from t) q
select * from (select t as x from t) a join (select t as x from t) b using (x)
