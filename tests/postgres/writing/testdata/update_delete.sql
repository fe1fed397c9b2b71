# tables t, u, v
create table t (a int primary key, b text, c int default 5, d numeric(8,2))
create table u (a int, x text, y int)
create table v (y int, z text)
insert into t select n, 'b' || n, n * 10, n / 4.0 from (values (1),(2),(3),(4),(5),(6)) s(n)
insert into u values (1, 'one', 1), (2, 'two', 2), (2, 'zwei', 2), (9, 'nine', 3)
insert into v values (1, 'I'), (2, 'II'), (3, 'III')
update t set b = 'B' where a = 1
update t set b = 'B', c = c + 1, d = d * 2 where a in (1, 2) returning *
update t set b = default, c = default where a = 3 returning b, c
update t set (b, c) = ('r', 7) where a = 4 returning *
update t set (b, c) = row('s', 8) where a = 4 returning *
update t set (b, c) = (default, 9) where a = 4 returning *
update t set (b, c) = (select x, y from u where u.a = t.a and x <> 'zwei') where a < 3 returning *
update t set (b, c) = (select x, y from u where u.a = 777) where a = 5 returning *
update t set (b, c) = (select x, y from u where u.a = 2) where a = 5
update t set (b, c) = (select x from u) where a = 5
update t set (b, c) = (1, 2, 3) where a = 5
update t set (b, c) = 5 where a = 5
update t set c = u.y, b = u.x from u where u.a = t.a and u.x <> 'zwei' returning t.*, u.*
update t set c = u.y, b = v.z from u, v where u.a = t.a and u.y = v.y and u.x <> 'zwei' returning t.a, z, x, old.b, new.b
update t set c = q.s from (select a, sum(y) as s from u group by a) q where q.a = t.a returning a
update t set c = q.s from (select a, sum(y) as s from u group by a) q where q.a = t.a returning t.a, s
update t set b = v.z from u join v using (y) where t.a = u.a and u.x <> 'zwei' returning *
update t set b = v.z from u left join v on v.y = u.y + 10 where t.a = u.a and u.x <> 'zwei' returning t.a, v.*
update t as target set b = 'al' from t as other where other.a = target.a + 1 and target.a = 1 returning target.a, other.a
update t set b = 'x' from t where t.a = 1
update t set b = q.x from lateral (select x from u where u.a = t.a) q
update t set nope = 1
update t set b = nope
update t set a = 1, a = 2
update t set a = 'abc' where a = 1
update t set b = 1 where a = 1 returning b
update t set c = true where a = 1
update t set c = 1.6 where a = 1 returning c
update t set t.b = 'x'
update t set a = null where a = 1
update t set a = 2 where a = 1
update t set a = 100 where a = 1 returning old.a, new.a
update t set a = 1 where a = 100 returning with (old as o, new as n) o.a, n.a, o.*, n.b
update t set b = 'none' where false returning *
update t set b = 'x' where a
update t set b = 'x' where count(*) > 1
update t set c = 1 / (a - 3) where a < 5
update t set c = (select max(y) from u) where a = 6 returning c
update t set c = (select y from u) where a = 6
update t set b = 'in' where a in (select a from u) returning a
update t set b = 'ex' where not exists (select 1 from u where u.a = t.a) returning a
update t set b = 'q' where a = 1 returning (select count(*) from t where b = 'q'), (select max(z) from v)
with q as (select a, max(x) as x from u group by a) update t set b = q.x from q where q.a = t.a returning t.a, t.b
update nope set a = 1
delete from t where a = 6 returning *
delete from t where a = 6
delete from t using u where u.a = t.a and u.x = 'zwei' returning t.*, u.x, old.a, new.a
delete from t using u, v where u.a = t.a and u.y = v.y returning t.a, u.x, v.z
delete from u as d where d.y = 3 returning d.*, *
delete from u where u.a = (select min(a) from u) returning x
delete from u using u as o where o.a = u.a returning u.x
delete from t using t where true
delete from t where nope = 1
delete from nope
delete from u where a in (select a from t) returning a
with q as (select y from v where z = 'II') delete from v using q where v.y = q.y returning v.z
delete from v returning y, z
insert into t values (50, 'fifty')
update t set c = 1, b = old.b where a = 50
update t as old set c = 3 where old.a = 50 returning old.c, new.c, *
delete from t where a = 50 returning old.*, new.*
delete from t
delete from t
