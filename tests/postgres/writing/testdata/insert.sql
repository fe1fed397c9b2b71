# tables t, u, k
create table t (a int, b text default 'dflt', c numeric(6,2) default 1.5, d date)
create table u (a int not null, b varchar(3), c bigint)
create table k (a int primary key, b int unique, c text not null default 'c')
insert into t values (1, 'x', 2.345, '2024-02-29')
insert into t default values
insert into t (c, a) values (1, 2), (default, 3), (3.14159, default)
insert into t (a) values (1), (2) returning *
insert into t (a, b) values (7, default) returning a, b || '!', c * 2 as twice, lower(b)
insert into t values (1, 2, 3, null, 5)
insert into t (a, b) values (1)
insert into t (a, a) values (1, 2)
insert into t (a, nope) values (1, 2)
insert into t values (1, 'x'), (2)
insert into t (a) values ('abc')
insert into t (a) values (true)
insert into t (d) values (5)
insert into nope values (1)
insert into t (c) values (123456)
insert into t (c) values (9999.999)
insert into u values (null, 'abc', 1)
insert into u values (1, 'abcd', 1)
insert into u values (1, 'abc   ', 9223372036854775807)
insert into u values (1, 'a', 9223372036854775808)
insert into u (b) values ('x')
insert into u select a, b, a * 1000 from t where a < 3
insert into u select a, left(b, 3) from t where a < 3 returning a, c is null
insert into u (c, a) select count(*), max(a) from t
insert into u select a from u union all select 1 + a from u
insert into u (a) select 'x'
insert into u (a, b) select 1
insert into u (a) select 1, 2
insert into u with q as (select 40 as a) select a from q
with q as (select 41 as a, 'w' as b) insert into u select * from q returning *
insert into u as target (a) values (99) returning target.a, target.*
insert into u as target (a) values (99) returning u.a
insert into u (a) values (98) returning old.a, new.a, old.*, new.c
insert into u (a) values (97) returning with (old as o, new as n) o.a, n.a
insert into u (a) values (97) returning with (old as o, old as n) o.a
insert into u (a) values (97) returning with (old as u) u.a
insert into u (a) values (97) returning nope
insert into u (a) values (97) returning x.a
insert into u (a) values (97) returning count(*)
insert into u (a) values (96) returning (select max(a) from t), (select count(*) from u where u.a = 96)
insert into u (a) values (95) returning a, case when exists (select 1 from t where t.a = 1) then 'yes' end
insert into k values (1, 1), (2, 2), (3, null)
insert into k values (4, null), (5, null)
insert into k values (1, 9)
insert into k values (9, 1)
insert into k values (10, 10), (10, 11)
insert into k values (10, 10), (11, 10)
insert into k values (12, 2), (12, 3)
insert into k values (null, 20)
insert into k values (20, 20, null)
insert into k (a, c) select a + 100, 'from k' from k returning a, c
insert into k (a) select a from k where a < 3
insert into k (a) values (1 / 0)
insert into k (a) values (2147483647), (2147483648)
insert into k (a) values (1000) returning 1 / (a - 1000)
insert into k (a, b) values (1001, (select max(b) + 1 from k)) returning b
insert into t (a) values (1), ((select max(a) from k)) returning a
insert into t (a, d) values (5, date '2024-01-01' + (now()::date - current_date)) returning d = '2024-01-01'
