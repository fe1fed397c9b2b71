insert into t (a) values (1)
insert into t (a, b) values (1, 'x'), (2, default)
insert into t default values
insert into t (a) values (1) returning *
insert into t (a) values (1) returning a, a + 1 as k, b || 'x', lower(b)
insert into t (a, n) values (1, 2.5) returning n, t.n
insert into t (a, b, d) select a, b, d from t
insert into t (a) select '5'
insert into t (a, b) select 1, 'x'
insert into t (a, b) select 1, 'x' union select 2, 'y'
insert into t (a, b) values ('5', 5)
insert into t (n, f, r, s) values (1, 1, 1.5, 1)
insert into t (v, c) values ('abc', 'd')
insert into t (d, ts, tz) values ('2024-01-01', '2024-01-01 10:00', '2024-01-01 10:00+02')
insert into t (d, ts, tz) values (now(), now(), current_date)
insert into t (b) values (1), (2.5)
insert into t (o) values ('t'), (true), (null)
insert into t (a) values ($1)
insert into t (a, b, n, d, o) values ($1, $2, $3, $4, $5)
insert into t (a) values ($1 + 1)
insert into t (a) select $1
insert into t (v) values ($1) returning v
insert into t (l) values (5), ($1)
insert into w values (1, 'x')
insert into w values (1)
insert into w as z (a) values (1) returning z.a
with x as (select 1 as a) insert into t (a) select a from x
update t set a = 1
update t set a = a + 1, b = default where a > 1
update t set a = $1 where b = $2
update t set (a, b) = (1, 'x')
update t set n = 1, f = 2, r = n where o
update t set a = u.x from u where u.y = t.b
update t x set a = x.a + 1 where x.b = 'q' returning x.a, x.b
update t set a = (select max(x) from u) returning a
update t set b = a
update t set v = $1, c = $2, d = $3
update t set a = '5' returning *
update t set l = a, s = a, a = l
delete from t
delete from t where a = 1
delete from t where a = $1 returning *
delete from t using u where u.x = t.a
delete from t x where x.a in (select x from u) returning x.a
delete from t where b like $1
