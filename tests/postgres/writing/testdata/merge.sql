# tables t, s
create table t (a int primary key, b text, c int default 7)
create table s (k int, v text, n int)
insert into t values (1, 'one', 1), (2, 'two', 2), (3, 'three', 3)
insert into s values (1, 'uno', 10), (4, 'quattro', 40), (5, 'del', 50), (2, 'del', 20)
merge into t using s on t.a = s.k when matched then update set b = v
merge into t using s on t.a = s.k when matched and v = 'del' then delete when matched then update set b = v || '!', c = c + n when not matched and v = 'del' then do nothing when not matched then insert values (k, v, n)
merge into t using s on a = k when not matched then insert (a, b) values (k, v) returning merge_action(), t.*, s.*
merge into t using s on a = k when not matched then insert (a) values (k + 100) when matched then update set c = 0 returning merge_action(), old.a, old.c, new.a, new.c, *
merge into t using s on a = k when not matched by source and a > 100 then delete when not matched by source then update set b = 'orphan' returning merge_action(), t.a, k
merge into t using s on a = k when not matched by target then insert default values
merge into t using (values (60, 'x'), (61, 'y')) w(k, v) on a = k when not matched then insert (a, b, c) values (k, v, default) returning t.*
merge into t using (values (60), (60)) w(k) on a = k when matched then update set b = 'twice'
merge into t using (values (60), (60)) w(k) on a = k when matched then delete
merge into t using (values (60), (60)) w(k) on a = k when matched then do nothing
merge into t using (values (70), (70)) w(k) on a = k when not matched then insert (a) values (k)
merge into t using (values (70)) w(k) on a = k when not matched then insert (a) values (1)
merge into t using (values (70)) w(k) on a = k when not matched then insert (a) values (null)
merge into t using s on a = k when matched then update set a = 1
merge into t using s on a = k when matched then update set b = 'x' when matched then delete
merge into t using s on a = k when matched and false then update set b = 'x' when matched then delete when matched then do nothing
merge into t using t on true when matched then delete
merge into t using t as s2 on t.a = s2.a + 1 when matched then update set c = s2.c * 100 returning t.a, s2.a
merge into t as z using s on z.a = s.k when matched then update set b = z.b || s.v returning z.b
merge into t as z using s on t.a = s.k when matched then delete
merge into t using s on a = k when not matched then insert values (t.a)
merge into t using s on a = k when not matched by source then update set b = s.v
merge into t using s on a = k when not matched and t.b = 'x' then insert values (1)
merge into t using s on a = k when not matched then insert (a, b) values (1)
merge into t using s on a = k when not matched then insert (a) values (1, 2)
merge into t using s on a = k when not matched then insert (a, a) values (1, 2)
merge into t using s on a = k when not matched then insert (nope) values (1)
merge into t using s on a = k when matched then update set nope = 1
merge into t using s on a = k when matched and count(*) > 1 then delete
merge into t using s on nope = k when matched then delete
merge into t using nope on true when matched then delete
merge into nope using s on true when matched then delete
merge into t using s on a = k when matched and v then delete
select merge_action()
update t set b = 'x' returning merge_action()
merge into t using (select k, max(v) as v, sum(n) as n from s group by k) q on a = k when matched and q.n > 15 then update set c = q.n when not matched then insert values (q.k, q.v, q.n) returning merge_action(), a
merge into t using s left join (values (4, 'x')) w(kk, vv) on s.k = w.kk on a = s.k when matched and vv is not null then update set b = vv returning t.a, w.*
with w as (select 80 as k) merge into t using w on a = k when not matched then insert (a, b) values (k, 'cte') returning t.*
merge into t using s on a = k and v = 'uno' when matched then update set (b, c) = (v, n) when not matched by source and a < 3 then update set c = default when not matched by source then do nothing returning merge_action(), t.*
merge into t using s on a = k when matched and exists (select 1 from s x where x.n > s.n) then update set b = (select max(v) from s y where y.k <> s.k) returning t.a, t.b
merge into t using s on a = k when matched then update set c = 1 / (n - 10)
merge into t using s on false when not matched by source then delete
merge into t using s on a = k when not matched then insert (a, b) select k, v from s
