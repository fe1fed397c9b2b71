create table t (a int primary key, b int default 7, c text)
create view v as select a, b, c from t
create view w as select a, b from v where c = 'x'
create table t0 (a int primary key, b int default 7, c text)
create view v0 as select a, b, c from t0
create view ro as select a, count(*) as n from t group by a
create sequence s
create index ix on t (b)
alter view v rename column b to bb
alter view v rename a to aa
alter view v rename nope to x
alter view v rename c to aa
alter view v rename c to c
alter view s rename column last_value to x
alter sequence s rename column last_value to x
alter view nope rename column a to x
alter view if exists nope rename column a to x
alter table v rename column c to cc
alter index ix rename column b to x
select * from v
select * from w
insert into v (aa, bb) values (1, 2) returning *
insert into v (aa) values (2) returning *
select column_name from information_schema.columns where table_name = 'v' order by ordinal_position
select attname from pg_attribute where attrelid = 'w'::regclass order by attnum
create or replace view v as select a as aa, b as bb, c as cc from t
select * from w
create or replace view v as select a as aa, b as bb, c as cc from t where a < 1000
alter view v alter column bb set default 100
alter view v alter cc set default 'def' || 'ault'
insert into v (aa) values (3) returning *
insert into v (aa, bb) values (4, default) returning *
insert into v (aa, bb, cc) values (5, null, null) returning *
insert into v (aa) select 6 returning *
insert into v default values
update v set bb = default where aa = 1 returning *
insert into t (a) values (10) returning *
insert into w (a) values (11) returning *
alter view w alter b set default 200
insert into w (a) values (12) returning *
insert into w (a, b) values (13, default) returning *
select adnum, pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'v'::regclass and adnum = 2
select column_name, column_default from information_schema.columns where table_name = 'v' and column_name <> 'cc' order by ordinal_position
alter view v alter bb drop default
insert into v (aa) values (14) returning *
alter view v alter nope set default 1
alter view v alter nope drop default
alter view v alter bb set default 'x'
alter view v alter bb set default aa
alter view v alter bb set default (select 1)
alter view ro alter n set default 5
alter table v alter bb set default 5
insert into v (aa) values (15) returning *
alter table v alter bb drop default
alter table v alter bb type text
alter table v alter bb set not null
alter table v add column x int
alter table v drop column bb
alter table v add constraint x check (aa > 0)
alter table v add primary key (aa)
alter table v enable row level security
alter view t alter a set default 5
alter view s alter a set default 5
alter view nope alter a set default 5
alter view if exists nope alter a set default 5
alter view v alter bb set default nextval('s')
insert into v (aa) values (16), (17) returning *
insert into v (aa) select x from (values (18), (19)) q(x) returning *
drop sequence s
drop sequence s cascade
insert into v (aa) values (20) returning *
create or replace view v as select a as aa, b as bb, c as cc, a + 1 as d from t
insert into v (aa) values (21) returning *
alter view v alter d set default 5
insert into v (aa) values (22) returning *
insert into v (aa, d) values (22, default) returning *
merge into v using (values (30)) q(k) on aa = k when not matched then insert (aa) values (k) returning aa, bb, cc
insert into v (aa) values (30) on conflict (aa) do update set cc = default, bb = 8 returning *
alter sequence s add column x int
alter table s2 add column x int
alter table ro rename to ro2
alter table ro2 owner to postgres
alter view v alter d drop default
insert into v (aa) values (23) returning *
alter table s add column x int
create sequence q
alter sequence q add column x int
alter table q alter last_value set default 5
create table checked (a int, b int)
create view cv as select * from checked where a > 5
insert into cv values (1, 1)
alter view cv set (check_option = local)
insert into cv values (1, 1)
select table_name, check_option from information_schema.views where table_name = 'cv'
alter view cv set (check_option = 'cascaded')
select table_name, check_option from information_schema.views where table_name = 'cv'
alter view cv set (check_option = 'some')
alter view cv set (nope = 1)
alter view ro2 set (check_option = local)
alter view cv set (check_option = local, check_option = cascaded)
alter view cv reset (check_option)
insert into cv values (1, 1)
alter view cv reset (nope)
# meridian
alter view cv set (security_barrier)
alter view cv reset (security_barrier)
alter table cv enable trigger all
