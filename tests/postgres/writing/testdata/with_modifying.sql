# tables a, b, archive, totals
create table a (id int primary key, v int, s text default 'new')
create table b (id int, a_id int, v int)
create table archive (id int, v int, s text, moved boolean default true)
create table totals (k text primary key, n bigint)
insert into a select i, i * 10 from generate_series(1, 6) i
insert into b select i, i % 4, i * i from generate_series(1, 8) i
with d as (delete from a where id = 1 returning *) insert into archive (id, v, s) select * from d
with d as (delete from a where id > 100 returning *) insert into archive (id, v, s) select * from d returning *
with i as (insert into a values (10, 100), (11, 110) returning id, v) select * from i order by id
with i as (insert into a values (12, 120) returning id) select count(*) from a
with i as (insert into a values (13, 130) returning id) select (select count(*) from a), (select count(*) from i)
with i as (insert into a (id) values (14)) select 1 as one
with i as (insert into a (id) values (15)) select * from i
with u as (update a set v = v + 1 where id < 4 returning id, v, old.v as was) select sum(v - was), count(*) from u
with u as (update a set v = v + 1 returning id), d as (delete from b where a_id in (select id from u) returning id) select (select count(*) from u) as u, (select count(*) from d) as d
with u as (update a set s = 'u' where id = 2 returning id), v as (update a set s = 'v' where id = 3 returning id) select id from u union all select id from v order by 1
with u as (update a set s = 'first' where id = 2) update a set s = 'second' where id = 2 returning id, s
with d as (delete from a where id = 14) update a set s = 'late' where id = 14 returning id
with i as (insert into a values (20, 200)) insert into a values (20, 201)
with i as (insert into a values (21, 210) returning *) insert into totals select 'a' || id, v from i on conflict (k) do update set n = totals.n + excluded.n returning *
with i as (select 21 as id) insert into totals select 'a' || id, 1 from i on conflict (k) do update set n = totals.n + excluded.n returning k, n, old.n
with i as (insert into totals values ('a21', 5) on conflict (k) do update set n = totals.n + excluded.n returning k, n) insert into archive (s, v) select k, n from i returning s, v, moved
with i as (insert into totals values ('a21', 5) on conflict do nothing returning k) select count(*) from i
with recursive r(n) as (values (1) union all select n + 1 from r where n < 4) insert into b select n + 100, n, n from r returning id
with recursive r(n) as (values (1) union all select n + 1 from r where n < 4) update b set v = -r.n from r where b.id = r.n + 100 returning b.id, b.v
with recursive r as (delete from b where id = 101 returning id), q(n) as (select id from r union all select n + 1 from q where n < 104) select n from q order by 1
with x as (select id from a where id < 4), d as (delete from a using x where a.id = x.id returning a.id) insert into archive (id, s) select id, 'x' from d
with x as materialized (select max(id) as m from a) update a set v = m from x where a.id = x.m returning a.id, v
with x as not materialized (select max(id) as m from a) delete from a using x where a.id = x.m returning a.id
with x as (delete from a) delete from b
with x as (select 1) truncate a
insert into a select i, i from generate_series(1, 5) i
insert into b select i, i, i from generate_series(1, 5) i
with d1 as (delete from a where id = 1 returning id), d2 as (delete from b where a_id in (select id from d1) returning id), i as (insert into archive (id, s) select id, 'd1' from d1 union all select id, 'd2' from d2 returning id) select count(*) from i
with t1 as (insert into totals values ('p', 1) returning k), t2 as (insert into totals values ('q', 2) returning k), t3 as (update totals set n = n + 10 where k in ('p', 'q') returning k) select (select count(*) from t1), (select count(*) from t2), (select count(*) from t3)
with t1 as (insert into totals values ('p', 1) returning k) select * from t1
with t1 as (insert into totals values ('r', 1 / 0) returning k) select * from t1
with t1 as (insert into totals values ('r', 1) returning k) select 1 / 0 from t1
with t1 as (insert into totals values ('r', 1) returning nope) select * from t1
with t1 as (insert into nope values ('r', 1) returning *) select * from t1
with t1 as (delete from totals returning k), t1 as (select 1) select * from t1
with t1(kk, nn) as (delete from totals where k = 'q' returning k, n) select nn, kk from t1
with t1(kk, nn, zz) as (delete from totals returning k, n) select nn, kk from t1
select * from (with t1 as (delete from totals returning k) select * from t1) q
select (with t1 as (delete from totals returning k) select max(k) from t1)
with t1 as (delete from totals where k = 'p' returning *) select t1.k, a.id from t1 left join a on a.id = t1.n
with i as (insert into a (id, v) select id + 50, v from a where id < 4 returning id, v) update b set v = i.v * 2 from i where b.id = i.id - 50 returning b.id, b.v
with u as (update b set v = 0 where id = 2 returning *) insert into b select id + 200, a_id, v from u union all select id + 300, a_id, v from b where id = 3 returning *
with d as (delete from b returning *) select count(*), sum(v) from d
with d as (delete from b returning *) insert into b select id, a_id, v + 1 from d
with m as (merge into a using (values (2), (77)) v(k) on a.id = v.k when matched then delete when not matched then insert (id, v) values (k, k) returning merge_action(), a.id) select * from m order by id
with old_rows as (select * from a), w as (update a set v = 0 returning id) select sum(o.v), count(w.id) from old_rows o left join w using (id)
with w as (update a set id = id + 1000 where id < 10 returning id, old.id as before) select before, id from w order by 1
with w as (update a set id = 52) select 1
with outer_q as (with inner_q as (select 1 as n) select n from inner_q) insert into archive (id) select n from outer_q returning id, moved
with w as (insert into archive select id, v, s from a where id > 1000 returning *) delete from a using w where a.id = w.id returning a.id, w.moved
