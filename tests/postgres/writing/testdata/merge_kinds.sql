# tables t, s, log, pairs, keyed
create table t (id int primary key, qty int not null default 5, note text, at timestamp)
create table s (id int, delta int, note text)
create table log (what text, id int)
create table pairs (a int, b text, c numeric(8,2), unique (a, b))
create table keyed (code varchar(4) primary key, n int check (n >= 0))
insert into t values (1, 10, 'one', '2024-01-01'), (2, 20, 'two', null), (3, 30, null, '2024-03-03')
insert into s values (1, 1, 'uno'), (3, -30, 'tres'), (4, 4, 'cuatro'), (null, 9, 'nada')
merge into t using s on t.id = s.id when matched then do nothing
merge into t using s on t.id = s.id when matched then update set qty = t.qty + s.delta
merge into t using s on t.id = s.id when matched and t.qty = 0 then delete when matched then update set note = s.note, at = at + interval '1 day'
merge into t using s on t.id = s.id when not matched and s.id is not null then insert (id, note) values (s.id, s.note)
merge into t using s on t.id = s.id when not matched by target and s.id is null then insert values (99, s.delta, s.note, default) when matched then do nothing
merge into t using s on t.id = s.id when not matched by source then delete
merge into t using s on t.id = s.id when not matched by source and t.id > 1 then update set qty = -t.qty, note = default returning merge_action(), t.*
merge into t using s on t.id = s.id when not matched then insert values (s.id, s.delta)
merge into t using (values (2, 'b'), (5, 'e')) v(k, x) on id = k when matched then update set note = x when not matched then insert (id, note) values (k, upper(x)) returning merge_action(), id, note, x
merge into t using (values (5), (5)) v(k) on id = k when matched then update set qty = qty + 1
merge into t using (values (5), (5)) v(k) on id = k when matched then delete
merge into t using (values (6), (6)) v(k) on id = k when not matched then insert (id) values (k)
merge into t using (values (1), (2)) v(k) on id = k when matched and k = 1 then update set (qty, note) = (k * 100, 'row') when matched then update set (qty, note) = row(k * 200, 'row 2') returning id, qty, note
merge into t using (values (1)) v(k) on id = k when matched then update set (qty, note) = (select max(delta), min(s.note) from s)
merge into t as target using s as source on target.id = source.id and source.delta > 0 when matched then update set note = source.note || '!' returning target.id, source.id, note
merge into t as target using s on t.id = s.id when matched then delete
merge into t using t as u on t.id = u.id + 1 when matched then update set qty = u.qty returning t.id, t.qty, u.qty
merge into only t using s on t.id = s.id when matched then update set qty = 1
merge into t using s left join log on log.id = s.id on t.id = s.id when matched then update set note = coalesce(log.what, 'unlogged') returning t.id, t.note
merge into t using s on true when matched then do nothing
merge into t using s on false when not matched by source then update set note = 'lonely' when not matched and s.id = 4 then insert (id, qty) values (40, 40)
merge into t using s on t.id = s.id when matched then update set id = s.id + 1000
merge into t using (values (1003, 1001)) v(a, b) on id = a when matched then update set id = b
merge into t using (values (7, null)) v(a, b) on id = a when not matched then insert (id, qty) values (a, b)
merge into t using (values (7, 1)) v(a, b) on id = a when not matched then insert (id, qty) overriding user value values (a, b)
merge into t using (values (8, 1)) v(a, b) on id = a when not matched then insert default values
merge into t using (values (8, 1)) v(a, b) on id = a when not matched then insert (id, id) values (a, b)
merge into t using (values (8, 1)) v(a, b) on id = a when not matched then insert (id, nope) values (a, b)
merge into t using (values (8, 1)) v(a, b) on id = a when not matched then insert (id) values (a, b)
merge into t using (values (8, 1)) v(a, b) on id = a when not matched then insert (id, qty) values (a)
merge into t using (values (8, 1)) v(a, b) on id = a when not matched then update set qty = 1
merge into t using (values (8, 1)) v(a, b) on id = a when matched then insert values (1)
merge into t using (values (8, 1)) v(a, b) on id = a when matched then update set nope = 1
merge into t using (values (8, 1)) v(a, b) on id = a when matched then update set qty = 1, qty = 2
merge into t using (values (8, 1)) v(a, b) on id = a when matched then do nothing when matched then delete
merge into t using (values (8, 1)) v(a, b) on id = a when not matched then do nothing when not matched and a = 1 then do nothing
merge into t using (values (8, 1)) v(a, b) on id = a when not matched then insert (id) values (t.id)
merge into t using (values (8, 1)) v(a, b) on id = a when not matched and t.qty = 1 then do nothing
merge into nope using s on true when matched then delete
merge into t using nope on true when matched then delete
merge into t using s on id = 1 when matched then delete
merge into t using s on t.id = s.id when matched and count(*) > 1 then delete
merge into t using s on t.id = s.id when matched then delete returning merge_action() as what, t.id, s.note as told
merge into t using s on t.id = s.id when not matched then do nothing returning *
insert into pairs values (1, 'x', 1.5), (1, 'y', 2.5), (2, 'x', null)
merge into pairs p using (values (1, 'x', 10.005), (2, 'y', 20), (3, 'z', null)) v(a, b, c) on p.a = v.a and p.b = v.b when matched then update set c = v.c when not matched then insert values (v.a, v.b, v.c) returning merge_action(), p.*
merge into pairs p using (select a, count(*) as n from pairs group by a) g on p.a = g.a and p.b = 'x' when matched and g.n > 1 then delete when matched then update set c = g.n
merge into pairs p using (values (2)) v(a) on p.a = v.a when matched then update set b = 'same'
merge into pairs p using (values (1)) v(x) on p.a = x when matched then update set c = 1 / (x - 1)
merge into pairs p using (values (1)) v(x) on p.a = x when matched then update set c = 12345678.9
merge into keyed k using (values ('a', 1), ('b', 2)) v(c, n) on k.code = v.c when not matched then insert values (v.c, v.n) when matched then update set n = k.n + v.n returning *
merge into keyed k using (values ('a', -5), ('c', 3)) v(c, n) on k.code = v.c when not matched then insert values (v.c, v.n) when matched then update set n = k.n + v.n
merge into keyed k using (values ('abcde', 1)) v(c, n) on k.code = v.c when not matched then insert values (v.c, v.n)
merge into keyed k using (values ('d', 1), ('d', 2)) v(c, n) on k.code = v.c when not matched then insert values (v.c, v.n)
merge into keyed k using (values ('a', 1), ('b', 1)) v(c, n) on k.code = v.c when matched then update set code = 'z'
merge into keyed k using (values ('a', 1), ('b', 1)) v(c, n) on k.code = v.c when matched and k.n = 1 then delete when matched then update set code = 'a'
with v as (select 'q' as c, 9 as n) merge into keyed k using v on k.code = v.c when not matched then insert values (v.c, v.n) returning code, n
with done as (merge into keyed k using (values ('q'), ('r')) v(c) on k.code = v.c when matched then delete when not matched then insert values (v.c, 0) returning merge_action() as what, k.code) insert into log select what, ascii(code) from done returning *
with gone as (delete from log returning id) merge into t using gone on t.id = gone.id when not matched then insert (id, note) values (gone.id, chr(gone.id)) returning t.id, t.note
merge into t using (select 1) v(k) on id = k when matched then update set qty = default, note = default, at = default when not matched then insert (id, qty, note) values (k, default, default)
merge into t using (select 1) v(k) on id = k when matched then update set qty = (select count(*) from t) returning old.qty, new.qty, old.id is null as fresh
merge into t using (select 500) v(k) on id = k when not matched then insert (id) values (k) returning old.qty, new.qty, old.id is null as fresh
merge into t using (select 500) v(k) on id = k when matched then delete returning old.qty, new.qty, new.id is null as gone
merge into t using generate_series(1, 3) g(i) on id = i when matched then update set note = 'g' || i when not matched then insert (id, note) values (i, 'made ' || i)
merge into t using s on t.id = s.id when matched and exists (select from log where log.id = s.id) then delete when matched and (select count(*) from log) = 0 then update set note = 'no log'
