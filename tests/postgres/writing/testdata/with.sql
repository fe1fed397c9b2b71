# tables t, u, g
create table t (a int primary key, b text)
create table u (a int, b text)
create table g (a int primary key, n int)
insert into t values (1, 'one'), (2, 'two'), (3, 'three')
with x as (insert into t values (4, 'four') returning *) select * from x
with x as (insert into t values (5, 'five') returning *) select (select count(*) from t), x.* from x
with d as (delete from t where a > 3 returning *) insert into u select * from d
with d as (delete from t where a > 3 returning *) select count(*) from d
with d as (delete from u returning a, b || '!' as b) insert into t select * from d returning *
with m as (delete from t where a = 5 returning *) insert into t select a, 'moved' from m
with d as (delete from t where a = 5) insert into t values (5, 'again')
with x as (update t set b = 'u' || a where a < 3 returning *) update u set b = 'x'
with x as (update t set b = 'v' || a where a < 3 returning *) insert into u select * from x
with x as (update t set b = 'w' || a where a < 3 returning old.b as before, new.b as after) select * from x
with x as (insert into t values (1, 'dup') on conflict (a) do update set b = excluded.b returning *) insert into u select * from x returning u.*
with x as (insert into t values (20, 'a') returning a), y as (insert into u values (20, 'b') returning a) select x.a, y.a, (select count(*) from t where a = 20) from x, y
with x as (insert into t values (21, 'a') returning a), y as (insert into g select a, 1 from x returning *) select * from y
with x as (insert into t values (22, 'a')) select 1 as one
with x as (insert into t values (22, 'a') returning a) select * from x
with x as (insert into t values (23, 'a')) select * from x
with x as (insert into t values (24, 'a') returning a), y as (insert into t values (24, 'b') returning a) select * from x, y
with x(p, q) as (delete from g returning a, n) select q, p from x
with x(p, q, r) as (delete from g returning a, n) select * from x
with x as (select 1 as one), y as (insert into g select one, 2 from x returning *) select x.one, y.* from x, y
with x as (merge into g using t on g.a = t.a when matched then update set n = n + 1 when not matched then insert values (t.a, 0) returning merge_action() as m, g.a) select m, count(*) from x group by m
with x as (delete from g where n = 1 returning *) delete from u using x where u.a = x.a returning u.*
with x as (delete from g where n = 0 returning *) merge into u using x on u.a = x.a when not matched then insert values (x.a, 'm') when matched then update set b = 'mm' returning merge_action(), u.a
select * from (with x as (delete from t returning *) select * from x) q
with o as (with x as (delete from t returning *) select * from x) select * from o
insert into u with x as (delete from t returning *) select * from x
with x as (delete from t returning *) select * from x x1 join x x2 using (a) where a < 3
select count(*) from t
with x as (delete from t), x as (delete from u) select 1
with x as (truncate t) select 1
with x as (delete from nope) select 1
with x as (insert into t values (30, 'e') returning 1 / 0) select 1
with x as (insert into t values (30, 'e') returning a), y as (select max(a) as top from t) select x.a, y.top from x, y
with x as (update t set b = 'only one' where a = 30), y as (insert into t values (31, 'ins')) select 2
with x as (insert into t select a + 50, b from t returning a) select count(*), min(a), max(a) from x
with x as (delete from t where a > 60 returning a) select count(*) from x where a > 1000
