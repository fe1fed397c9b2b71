# tables t, p
create table t (a int primary key, b text default 'dflt', c numeric(6,2) not null default 1.5, d date)
create table p (k int primary key, v text)
create view v as select a, b as bee, c from t
create view w (x, bigger, name) as select a, a + 1, b from t where a > 10
create view o as select name, x, x * 2 as twice from w where name <> 'hidden'
create view same as select a, a as again, b from t
create view cast_ as select a::int as a, b::text as b, c::numeric as c, c::numeric(6,2) as cc from t
create view sorted as select a, b from t order by a desc
create view inq as select a, b from t where a in (select k from p)
create view scal as select a, (select v from p where k = a) as pv, b from t
insert into v values (1, 'one', 2)
insert into v (a) values (2)
insert into v (bee, a) values ('three', 3), (default, 4)
insert into v values (5)
insert into v default values
insert into v values (6, 'x', null)
insert into v values (1, 'again', 2)
insert into v values (7, 'seven', 12345.678)
insert into v values (7, 'seven', 'abc')
insert into v (a, nothere) values (1, 2)
insert into v (a, d) values (1, '2020-01-01')
insert into v (a, a) values (1, 2)
insert into v values (1, 'a', 2, 4)
insert into v (a, bee) values (1)
insert into v (a, bee) values (true, 'x')
insert into v select k + 20, v from p
insert into w values (11, 12, 'eleven')
insert into w (x, bigger) values (11, 12)
insert into w (x, bigger) values (11, default)
insert into w (x, name, bigger) values (12, 'twelve', default), (13, 'thirteen', default)
insert into w (x, name) values (12, 'twelve'), (5555, default)
insert into w (x, name) values (8, 'outside') returning *, x + bigger as s
insert into w (x, name) select a + 100, b from t where a < 3 returning w.x, w.bigger, name
insert into o (name, x) values ('new', 20) returning *
insert into o (name, x) values ('hidden', 21) returning old.x, new.x, new.twice, o.*
insert into o values ('o', 22)
insert into o values ('o', 23, 46)
insert into o (twice) values (1)
insert into same values (30, 31, 'x')
insert into same (a, b) values (30, 'x') returning *
insert into same (again, b) values (31, 'y') returning *
insert into cast_ values (40, 'forty', 1)
insert into cast_ (a, b) values (40, 'forty') returning *
insert into cast_ (c) values (40)
insert into cast_ (cc) values (40)
insert into sorted values (50, 'fifty')
insert into inq values (60, 'sixty')
insert into scal (a, b) values (61, 'sixty-one') returning *
insert into scal (a, pv) values (62, 'sixty-one')
update v set bee = 'uno' where a = 1
update v set bee = bee || '!', c = c + 1 where bee like 't%' returning *
update v set bee = default where a = 1
update v set (bee, c) = ('pair', 3) where a = 2
update v set (bee, c) = (select 'sub', 4) where a = 2 returning old.bee, new.bee
update v set d = '2020-01-01'
update v set nothere = 1
update v set a = 2 where a = 1
update v set c = null where a = 1
update v set bee = 'two', bee = 'three'
update v as q set bee = q.a::text where q.a = 3 returning q.*
update v as q set bee = 'x' where v.a = 3
update w set name = 'seen' returning *
update w set bigger = 1
update w set name = 'small' where x = 1
update w set x = x - 100 where x > 5000
update w set name = p.v from p where p.k = w.x returning w.x, p.v
update o set name = 'upd', x = x + 1000 where twice = 40 returning *
update o set twice = 1
update o set name = 'nobody sees' where name = 'hidden'
update same set a = 32, b = 'same' where again = 31 returning *
update same set a = 33, again = 33 where a = 30
update same set a = again + 1 where a = 32
update cast_ set c = 1
update cast_ set b = 'cast' where cc = 1.5 returning a
update sorted set b = 'sorted' where a = 50
insert into p values (1, 'p1'), (11, 'p11'), (60, 'p60')
update inq set b = 'in p' returning *
update scal set b = pv where pv is not null returning *
update scal set b = pv || pv, a = a where a = 60 returning pv, pv || b
update scal set pv = 'x'
update t set d = '2021-01-01' from w where w.x = t.a
update v set bee = 'where current' where exists (select 1 from w where w.x = v.a)
delete from w where x = 13 returning *
delete from w where x = 3
delete from o where twice = 2040 returning old.*, new.twice
delete from o using p where p.k = o.x returning p.v, o.x
delete from v where bee is null
delete from inq where a = 60 returning *
delete from same where again = 32
delete from scal where pv = 'p1'
delete from sorted where a = 50
create view nocols as select a + 1 as n from t
insert into nocols values (1)
update nocols set n = 1
delete from nocols where n = 6 returning n
insert into v values (1, 'dup', 1) on conflict do nothing
insert into v values (2, 'dup', 1) on conflict (a) do nothing returning *
insert into v values (2, 'conflict', 9) on conflict (a) do update set bee = excluded.bee, c = v.c + excluded.c returning *
insert into v values (2, 'conflict', 9) on conflict (a) do update set bee = excluded.bee || '+' || v.bee where v.c > 100 returning *
insert into v values (2, 'conflict', 9), (80, 'eighty', 8) on conflict (a) do update set bee = 'both' returning old.*, new.*
insert into v values (2, 'c', 9) on conflict (bee) do nothing
insert into v values (2, 'c', 9) on conflict (b) do nothing
insert into v values (2, 'c', 9) on conflict on constraint t_pkey do nothing
insert into w (x, name) values (12, 'up') on conflict (x) do update set name = excluded.name || excluded.bigger returning *
insert into w (x, name) values (2, 'not seen') on conflict (x) do update set name = excluded.name returning *
insert into w (x, name) values (12, 'up') on conflict (bigger) do nothing
insert into w (x, name) values (12, 'up') on conflict (x) do update set bigger = 3
insert into o (name, x) values ('o', 12) on conflict (x) do update set name = excluded.name || o.twice returning *
merge into v using p on v.a = p.k when matched then update set bee = p.v when not matched then insert values (p.k, p.v, 3) returning merge_action(), v.*, p.k
merge into w using (values (11, 'm11'), (2, 'm2'), (99, 'm99')) s (i, n) on w.x = s.i when matched then update set name = s.n when not matched and s.i > 50 then insert (x, name) values (s.i, s.n) returning merge_action(), w.*
merge into w using (values (2, 'm2')) s (i, n) on w.x = s.i when not matched then insert (x, name) values (s.i, s.n)
merge into w using (values (99, 'm2')) s (i, n) on w.x = s.i when not matched by source then delete when matched then do nothing returning old.x, old.bigger, new.x
merge into o using (values (99, 'm2')) s (i, n) on o.x = s.i when matched then update set twice = 2
merge into o using (values (99, 'm2')) s (i, n) on o.x = s.i when not matched then insert (twice) values (1)
merge into o using (values (99, 'm2')) s (i, n) on o.x = s.i when matched and o.twice = 198 then update set name = n || twice when matched then delete returning *
with x as (insert into v (a, bee) values (90, 'cte') returning a, bee) select * from x
with x as (delete from v where a = 90 returning *) insert into w (x, name) select a + 10, bee from x returning *
truncate v
create index vi on v (a)
alter table t rename column b to bb
insert into v (a, bee) values (93, 'renamed') returning *
alter table t rename to tt
update w set name = 'r' where x = 93 returning *
alter table tt rename to t
alter table t add column e int default 7
insert into v (a) values (94) returning *
select * from t where a = 94 order by 1
create or replace view v as select a, bb as bee, c, e from t
insert into v (a, e) values (95, 8) returning *
drop view v
insert into v values (1)
