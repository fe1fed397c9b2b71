select nope
select nope from t
select t.nope from t
select nope.a from t
select x.a from t
select t.a from t x
select public.nope.a from t
select a from nope
select a from nope.t
select a from public.nope
select a from t, w
select b from t join w on true
select * from t join t on true
select * from t, t
select * from t x, u x
select 1 from t join w using (nope)
select 1 from t join w using (a, a)
select *
select nope.* from t
select a from t x (p, q, r, s2, t2, u2, v2, w2, x2, y2, z2, a2, b2, c2, d2, e2, f2, g2)
select 'a' + 1
select b + 1 from t
select 1 + b from t
select a || l from t
select o + 1 from t
select -b from t
select not a from t
select d + d from t
select ts + ts from t
select a = b from t
select b = 1 from t
select d = 1 from t
select o = 1 from t
select uid = 1 from t
select a like 'x' from t
select a < true from t
select a is true from t
select 1 where 1
select 1 where 'x'
select a from t where a
select a from t where b
select a and o from t
select case when 1 then 2 end
select case when true then 1 else 'x' end
select case when true then 1 else true end
select case 1 when 'x' then 2 end
select case when o then a else b end from t
select coalesce(1, 'x')
select coalesce(1, true)
select coalesce(a, b) from t
select greatest(a, b) from t
select nullif(a, b) from t
select nullif(1, 'x')
select a in (1, 'x') from t
select a in (1, true) from t
select a in (b) from t
select a between 'x' and 5 from t
select 'x'::int
select 'x'::bool
select 'x'::date
select '2024-13-01'::date
select '2024-02-30'::date
select date 'nope'
select 'x'::uuid
select '99999999999'::int
select '99999'::int2
select 'x'::numeric
select 'x'::float8
select '1e400'::float8
select 'x'::timestamp
select 'x'::interval
select true::date
select d::int from t
select a::date from t
select 5::uuid
select 'x'::nope
select 1::nope.int4
select cast(1 as nope)
select 1::varchar(0)
select 1::numeric(0)
select 1::numeric(2000)
select 1::int4(5)
select nope()
select nope(1, 'x', null)
select nope(a, b) from t
select lower()
select lower(1)
select lower(b, b) from t
select length(1)
select abs('x')
select abs(b) from t
select substring(1 from 2)
select public.lower('x')
select nope.lower('x')
select round(f, 2) from t
select date_trunc('day', a) from t
select lower(*) from t
select count()
select count(a, b) from t
select sum(b) from t
select sum(o) from t
select avg(d) from t
select sum() from t
select sum(*) from t
select lower(distinct b) from t
select lower(b) filter (where true) from t
select min(o) from t
select a, count(*) from t
select a from t having count(*) > 1
select a, b from t group by a
select t.a, t.b from t group by t.a
select a + b from t group by a
select a from t group by count(*)
select count(*) from t group by 1
select a from t group by 2
select a from t group by 0
select a from t group by 'x'
select a from t where count(*) > 1
select count(*) from t where sum(a) > 1
select sum(count(*)) from t
select sum(a + max(l)) from t
select a from t join u on count(*) = 1
select a from t order by 2
select a from t order by 'x'
select a from t order by 1.5
select a from t order by nope
select a as x, b as x from t order by x
select distinct a from t order by b
select a from t limit 'x'
select a from t limit a
select a from t limit true
select a from t offset b
select * from t having a > 1
select b from t group by a order by b
select max(a) from t order by b
select (select a, b from t)
select a from t where a in (select x, y from u)
select a from t where (a, b) in (select x from u)
select a from t where a in (select y from u)
select a from t where a = (select b from t)
select (1, 2) = (1, 2, 3)
select 1 union select 1, 2
select 1 union select true
select 1 union select 'x'
select a from t union select b from t
select a from t union select x from u order by x
select a from t union select x from u order by a + 1
select a from t union select x from u order by 3
select 1 intersect select 'x'::text
values (1), (1, 2)
values (1), ('x')
values (1), (true)
with x as (select 1) select * from y
with x as (select 1), x as (select 2) select 1
with x (a, b) as (select 1) select * from x
with x as (select nope) select 1
select * from (select a from t) s where s.b = 1
select * from t, (select t.a) s
select * from t, (select * from u where u.x = t.a) s
select * from t join (select t.a as q) s on true
select s.a from (select 1 as a, 2 as a) s
select default
select a from t where a = default
select a.b.c.d.e from t
select otherdb.public.t.a from t
select * from otherdb.public.t
select count(distinct *) from t
select 1 as
select from where
select 1 +
select (1
selekt 1
select 'abc
select "abc
select $$abc
select 1 from
select 1 group by
create tabel x
select 1 limit 1 limit 2
select a from t order by a asc desc
select x'zz'
insert into nope values (1)
insert into t (nope) values (1)
insert into t (a, a) values (1, 2)
insert into t (a) values (1, 2)
insert into t (a, b) values (1)
insert into w values (1, 2, 3, 4, 5, 6, 7)
insert into t (a) values ('x')
insert into t (a) values (true)
insert into t (a) values (b)
insert into t (a) values (nope)
insert into t (d) values (1)
insert into t (d) values ('x')
insert into t (o) values (1)
insert into t (a) select b from t
insert into t (a) select 'x'
insert into t (a, b) select 1
insert into t (a) select 1, 2
insert into t (a) values (count(*))
insert into t (a) values ((select a, b from t))
insert into t values (1) returning nope
insert into t (a) values (1), (1, 2)
insert into t (uid) values (1)
insert into t (n) values (true)
update nope set a = 1
update t set nope = 1
update t set a = 'x'
update t set a = b
update t set a = true
update t set a = 1, a = 2
update t set a = nope
update t set a = count(*)
update t set a = 1 where nope = 1
update t set a = 1 where b
update t set (a, b) = (1)
update t set (a, b) = (1, 2, 3)
update t set t.a = 1
update t set a = u.x
update t set a = 1 returning nope
update t set a = 1 from t
update t set a = 1 from u where nope.x = 1
delete from nope
delete from t where nope
delete from t where a = 'x'
delete from t where count(*) > 1
delete from t using nope
delete from t where t.nope = 1
delete from t returning nope
delete from t x where t.a = 1
