# tables t, p
create table t (a int primary key, b text default 'dflt', c int check (c < 100))
create table p (k int primary key)
insert into p values (1), (2), (3)
create view plain as select * from t where a > 0
create view loc as select * from plain where b <> 'bad' with local check option
create view casc as select * from plain where b <> 'bad' with cascaded check option
create view over_loc as select a as x, b as y from loc where a < 50
create view over_casc as select * from casc with check option
create view mid as select * from loc where a <> 7 with cascaded check option
create view sub as select * from t where a in (select k from p) with check option
create view opt with (check_option = local) as select * from t where c > 5
create view pair as select * from t where row(a, c) is not null with check option
insert into loc values (-1, 'ok', 1)
insert into loc values (1, 'bad', 1)
insert into loc values (1, null, 1)
insert into casc values (-2, 'ok', 1)
insert into casc values (2, 'bad', 1)
insert into casc values (2, 'ok', 1) returning *
insert into over_loc values (60, 'ok')
insert into over_loc values (61, 'bad')
insert into over_casc values (-3, 'ok')
insert into over_casc values (3, 'bad')
insert into over_casc values (-3, 'bad')
insert into over_casc values (3, 'ok')
insert into mid values (7, 'ok')
insert into mid values (-7, 'bad')
insert into mid values (-7, 'ok')
insert into mid values (8, 'bad')
insert into mid values (8, 'ok'), (9, 'bad')
insert into mid values (8, 'ok'), (9, 'good') returning a
insert into sub values (1, 'in p')
insert into sub values (4, 'not in p')
insert into sub select k, 'sel', 3 from p where k = 1 on conflict (a) do update set b = excluded.b
insert into opt values (10, 'opt', 6)
insert into opt values (11, 'opt', 5)
insert into opt values (11, 'opt')
insert into opt values (11, 'opt', 100)
insert into opt values (10, 'opt', 1) on conflict do nothing
insert into opt values (10, 'opt', 7) on conflict (a) do update set c = 4
insert into opt values (10, 'opt', 1) on conflict (a) do update set c = 14
insert into opt values (10, 'opt', 7) on conflict (a) do update set c = excluded.c + 1 returning *
insert into opt select 20 + n, 'series', n from generate_series(6, 9) n
insert into opt select 30 + n, 'series', n from generate_series(4, 9) n
insert into pair values (70, 'p', 1)
insert into pair values (71, 'p', null)
update loc set b = 'bad' where a = 8
update loc set a = -a where a = 9 returning *
update casc set a = -20 where a = 8
update over_casc set a = a + 1 where a = 8
update over_loc set x = 55 where x = 3
update mid set a = 7 where a = 10
update mid set a = 71 where a = 8 returning *
update sub set a = 99 where a = 1
update sub set b = 'fine' where a = 1
update opt set c = c - 1 where b = 'series'
update opt set c = c + 1 where b = 'series'
update opt set c = 1000 where a = 10
update t set b = 'bad' where a = 71
merge into casc using (values (80), (-80)) s (i) on casc.a = s.i when not matched then insert (a, b) values (i, 'm')
merge into casc using (values (80), (81)) s (i) on casc.a = s.i when not matched then insert (a, b) values (i, 'm') returning a, b
merge into casc using (values (80), (82)) s (i) on casc.a = s.i when not matched then insert (a, b) values (i, 'm') when matched then update set b = 'bad'
merge into casc using (values (80)) s (i) on casc.a = s.i when matched then delete
delete from over_casc where a = 81 returning *
with x as (insert into casc values (90, 'x', 1) returning a) insert into loc select a + 1, 'bad' from x
with x as (insert into casc values (90, 'x', 1) returning a) insert into loc select a + 1, 'good' from x returning *
create view no1 as select max(a) as m from t with check option
create view no2 as select a + 1 as a from t with check option
create view no3 as select * from t, p with local check option
create view no4 with (check_option = maybe) as select * from t
create view no5 with (check_option = local) as select * from t with check option
create or replace view opt as select * from t where c > 5
insert into opt values (12, 'opt', 5)
create or replace view opt with (check_option = cascaded) as select * from t where c > 5
insert into opt values (13, 'opt', 5)
create view gone as select * from opt where b = 'opt'
insert into gone values (14, 'opt', 1)
insert into gone values (15, 'none', 10)
select table_name, check_option, is_updatable, is_insertable_into from information_schema.views where table_schema = 'public' order by 1
select relname, reloptions from pg_class where relname in ('loc', 'casc', 'opt', 'plain', 't') order by 1
create view few (x, y, z) as select a, c + 1, (select 1) from t
create view none as select a + 1 as n from t
create view never as select distinct a from t
create view above as select x, y from few
select c.relname, pg_relation_is_updatable(c.oid, false) as r, pg_column_is_updatable(c.oid, 1::int2, false) as c1, pg_column_is_updatable(c.oid::regclass, 2::int2, true) as c2 from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'public' and c.relkind in ('r', 'v') order by 1
select table_name, column_name, is_updatable from information_schema.columns where table_name in ('few', 'above', 'none', 'never', 'p') order by 1, ordinal_position
select table_name, is_insertable_into from information_schema.tables where table_schema = 'public' order by 1
select table_name, is_updatable, is_insertable_into from information_schema.views where table_schema = 'public' order by 1
select pg_relation_is_updatable('pg_class'::regclass, true), pg_relation_is_updatable(0::oid::regclass, true)
