# tables t, m, plain, nn
create table t (a int primary key, b text, c int default 0)
create table m (a int, b int, c text, primary key (a, b), unique (c))
create table plain (a int)
create table nn (a int, b int, unique nulls not distinct (a))
insert into t values (1, 'one', 10), (2, 'two', 20)
insert into t values (1, 'x') on conflict do nothing
insert into t values (1, 'x'), (3, 'three') on conflict do nothing returning *
insert into t values (4, 'a'), (4, 'b') on conflict do nothing returning *
insert into t values (1, 'x') on conflict (a) do nothing
insert into t values (1, 'uno') on conflict (a) do update set b = excluded.b
insert into t values (1, 'eins', 5), (5, 'five', 50) on conflict (a) do update set b = excluded.b, c = t.c + excluded.c returning *
insert into t values (1, 'eins', 5), (6, 'six', 60) on conflict (a) do update set b = excluded.b returning old.*, new.*, t.a
insert into t values (2, 'deux') on conflict on constraint t_pkey do update set b = excluded.b || '/' || t.b
insert into t values (2, 'zwei', 1) on conflict (a) do update set c = 99 where t.c > 50 returning *
insert into t values (2, 'zwei', 1) on conflict (a) do update set c = 99 where excluded.c = 1 returning *
insert into t values (7, 'x'), (7, 'y') on conflict (a) do update set b = excluded.b
insert into t values (1, 'x'), (1, 'y') on conflict (a) do update set b = excluded.b
insert into t values (1, 'x', 7), (1, 'y', 7) on conflict (a) do update set b = excluded.b where t.b = 'no such'
insert into t values (1, 'x', 7), (1, 'y', 8) on conflict (a) do update set b = excluded.b where excluded.c = 8
insert into t values (1, 'x') on conflict (b) do nothing
insert into t values (1, 'x') on conflict (a, b) do nothing
insert into t values (1, 'x') on conflict (nope) do nothing
insert into t values (1, 'x') on conflict on constraint nope do nothing
insert into t values (1, 'x') on conflict do update set b = 'x'
insert into t values (1, 'x') on conflict (a) do update set b = b
insert into t values (1, 'x') on conflict (a) do update set nope = 1
insert into t values (1, 'x') on conflict (a) do update set b = nope
insert into t values (1, 'x') on conflict (a) do update set b = 1, b = 2
insert into t values (1, 'x') on conflict (a) do update set c = 'abc'
insert into t values (1, 'x') on conflict (a) do update set c = true
insert into t values (1, 'x') on conflict (a) do update set (b, c) = ('row', 77) returning b, c
insert into t values (1, 'x') on conflict (a) do update set (b, c) = (select 'sub', max(c) from t) returning b, c
insert into t values (1, 'x') on conflict (a) do update set c = default returning c
insert into t values (1, 'x', 3) on conflict (a) do update set a = t.a + 100 returning *
insert into t values (2, 'x', 3), (102, 'y', 4) on conflict (a) do update set a = t.a + 100 returning *
insert into t values (3, 'x', 3) on conflict (a) do update set a = 4
insert into t values (3, 'x', 3) on conflict (a) do update set a = null
insert into t values (3, 'x', 3) on conflict (a) do update set c = 1 / (excluded.c - 3)
insert into t as z values (3, 'alias') on conflict (a) do update set b = z.b || excluded.b returning z.*
insert into t as z values (3, 'alias') on conflict (a) do update set b = t.b
insert into t as excluded values (3, 'alias') on conflict (a) do update set b = 'x'
insert into t select a, 'sel' from t on conflict (a) do update set b = excluded.b || t.a returning a, b
insert into t select x, 'gen' from (values (1), (2), (200), (201)) v(x) on conflict (a) do nothing returning a
insert into t values (null, 'x') on conflict (a) do nothing
insert into m values (1, 1, 'p'), (1, 2, 'q'), (2, 1, null), (2, 2, null)
insert into m values (1, 1, 'r') on conflict do nothing
insert into m values (9, 9, 'p') on conflict do nothing
insert into m values (9, 9, 'p') on conflict (a, b) do nothing
insert into m values (9, 9, 'p') on conflict (b, a) do update set c = 'zz'
insert into m values (1, 1, 'new') on conflict (b, a) do update set c = excluded.c returning *
insert into m values (1, 1, 'new') on conflict (c) do update set b = 7 returning *
insert into m values (1, 2, 'again') on conflict (a, b) do update set c = 'new'
insert into m values (5, 5, null), (6, 6, null) on conflict (c) do nothing
insert into m values (5, 5, 'k1'), (5, 5, 'k2') on conflict (c) do nothing
insert into m values (7, 7, 'k'), (8, 8, 'k') on conflict (c) do nothing returning a
insert into plain values (1), (1) on conflict do nothing
insert into plain values (1) on conflict (a) do nothing
insert into nn values (null, 1) on conflict do nothing
insert into nn values (null, 2) on conflict (a) do update set b = excluded.b returning *
insert into nn values (null, 3), (1, 1) on conflict (a) do nothing returning *
insert into nn values (null, 3)
insert into t values (1, 'x') on conflict (lower(b)) do nothing
insert into t values (11, 'x') on conflict (a) where c > 0 do nothing
insert into t values (11, 'x') on conflict (a desc) do nothing
insert into t values (12, 'w') on conflict (a) do update set b = (select string_agg(b, ',' order by b) from plain p(b2) join t x on true where x.a < 3)
