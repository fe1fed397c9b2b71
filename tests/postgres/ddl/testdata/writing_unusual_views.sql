# Writing through views that few people write.
create table t (id int primary key, b text default 'dt', n numeric(6,2), ts timestamptz default '2025-01-01 00:00+00', g int generated always as (id * 2) stored, s serial, check (id < 1000))
create view v as select id, b, n * 2 as twice, b || '!' as loud, id as again from t where id > 0
insert into v (id) values (1) returning *
insert into v (id, twice) values (2, 3)
insert into v (id, again) values (2, 2)
insert into v values (2, 'x')
insert into v values (3, 'x', default)
insert into v (again) values (4) returning id, b, again
update v set twice = 1
update v set b = loud || twice where id = 1 returning *
update v set id = 10, again = 11 where id = 1
update v set (id, b) = (12, 'z') where id = 1 returning id, b
update v set again = 13 where id = 12 returning id
delete from v where loud like 'z%' returning *
select id, b, s, g from t order by id
create view lc as select id, b from t where id < 100 with local check option
create view cc as select id, b from lc where id > 10 with cascaded check option
create view nc as select id, b from lc where b <> 'no'
create view nl as select id, b from nc where id <> 55 with local check option
insert into lc values (100, 'x')
insert into lc values (99, 'x')
insert into lc values (null, 'x')
insert into cc values (5, 'x')
insert into cc values (150, 'x')
insert into cc values (50, null) returning *
insert into nc values (160, 'x')
insert into nc values (60, 'no') returning *
insert into nl values (55, 'x')
insert into nl values (56, 'no')
insert into nl values (170, 'y')
update cc set id = id + 1 where id = 50
update cc set id = 9
update lc set id = id * 3 where id = 51
update nl set b = 'no' where id = 51
insert into cc values (51, 'conflict') on conflict (id) do update set b = excluded.b returning *
insert into cc values (51, 'conflict') on conflict (id) do update set id = 5 returning *
insert into cc values (3, 'conflict') on conflict do nothing
merge into cc using (values (51, 'm'), (70, 'n')) x(i, m) on cc.id = x.i when matched then update set b = x.m when not matched then insert values (x.i, x.m)
merge into cc using (values (71, 'm'), (200, 'n')) x(i, m) on cc.id = x.i when not matched then insert values (x.i, x.m)
select id, b from t order by id
create view nochk as select id + 1 as i from t with check option
create view nochk as select distinct id from t with check option
create view nochk as select id from t limit 1 with local check option
create view sub as select id, b from t where id in (select id from lc) with check option
insert into sub values (80, 'x')
update sub set b = 'sub' where id = 70 returning *
create view dv as select id, b, n, ts from t
alter view dv alter b set default 'dv', alter n set default 7
alter view dv alter column id set default 500
insert into dv default values returning id, b, n
insert into dv (id, b) values (501, default), (502, null), (503, 'x') returning id, b, n
alter view dv alter n drop default
insert into dv (id) values (504) returning id, b, n
create view dv2 as select id, b as bb, n from dv
alter view dv2 alter bb set default 'dv2'
insert into dv2 (id) values (505) returning *
update dv2 set bb = default, n = default where id = 505 returning *
create or replace view dv as select id, b, n, ts, s from t
insert into dv (id) values (506) returning id, b, n, s
alter view dv rename column b to bx
insert into dv (id) values (507) returning id, bx, n
alter view dv alter bx set default 5
alter view dv alter bx set default now()
alter view dv alter id set default 'x'
alter view dv alter id set not null
alter view dv alter id type bigint
alter view dv add column x int
alter view dv drop column id
alter view dv add check (id > 0)
alter table dv alter n set default 9
create view gv as select id, g, s from t
insert into gv (id, g) values (600, 1)
insert into gv (id, g) values (601, default) returning id, g
insert into gv (id, s) values (602, default) returning id, g, s > 0 as s
update gv set g = 5
create view qv as select id, (select max(id) from t) as top, row_number from (select id, b as row_number from t) x
insert into qv (id) values (1)
create view av as select a.id, a.b as "B" from t as a (id, b) where a.id > 0
insert into av values (700, 'alias') returning *
update av set "B" = upper("B") where id = 700 returning av.*, av.id as again
create view lv as select l.id, l.b from only t l
insert into lv values (701, 'only') returning *
truncate lv
select count(*) from lv
insert into v (id) select id + 200 from v where id = 70 returning id, loud
with w as (insert into dv (id) values (800) returning id, bx) select * from w
with w as (delete from dv where id >= 800 returning id) select count(*) from w
select pg_get_viewdef('lv') = pg_get_viewdef('lv'::regclass) as same, pg_get_viewdef('lv', true) = pg_get_viewdef('lv'::regclass, true) as pretty
select table_name, is_updatable, is_insertable_into, check_option from information_schema.views where table_schema = 'public' order by 1
select table_name, column_name, column_default, is_updatable from information_schema.columns where table_name in ('dv', 'dv2', 'gv', 'v', 'qv') and (column_default is null or column_default not like '%''%') order by 1, ordinal_position
select relname, reloptions from pg_class where relkind = 'v' and relnamespace = 'public'::regnamespace and reloptions is not null order by 1
select pg_relation_is_updatable('v'::regclass, false) as v, pg_relation_is_updatable('qv'::regclass, false) as qv, pg_column_is_updatable('v'::regclass, 1::int2, false) as one, pg_column_is_updatable('v'::regclass, 3::int2, false) as three
select column_name, column_default from information_schema.columns where table_name = 'dv2' order by ordinal_position
# meridian
select pg_get_viewdef('nope')
