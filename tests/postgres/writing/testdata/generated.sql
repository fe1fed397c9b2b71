# tables g, h, p
create table g (id int primary key, price numeric(8,2), qty int default 1, total numeric(12,2) generated always as (price * qty) stored, label text generated always as ('#' || id || ':' || coalesce(qty::text, '-')) stored)
insert into g (id, price) values (1, 2.50), (2, 10.005)
insert into g values (3, 1, 3) returning *
insert into g values (4, 1, 3, default, default) returning total, label
insert into g values (4, 1, 3, 5)
insert into g (id, total) values (5, 1)
insert into g (id, total) values (5, default) returning *
insert into g (id, price, qty, total) select 6, 1, 2, 3
insert into g (id, price, qty) select 6 + x, x * 1.5, x from (values (1), (2)) v(x) returning id, total
insert into g (id, price, qty) overriding system value values (9, 2, 2) returning total
insert into g (id, price, qty, total) overriding system value values (10, 2, 2, 9)
insert into g (id, price, qty, total) overriding user value values (10, 2, 2, 9)
update g set qty = qty + 1 where id = 1 returning total, label, old.total
update g set total = 5
update g set total = default, label = default where id = 2 returning *
update g set (qty, total) = (1, default) where id = 2 returning *
update g set id = id + 100 where id = 9 returning id, label
update g set qty = null where id = 3 returning total, label
update g set price = v.p from (values (1, 100.0)) v(i, p) where g.id = v.i and g.total > 5 returning g.*
insert into g (id, price, qty) values (1, 7, 7) on conflict (id) do update set price = excluded.price, qty = excluded.qty returning total, label
insert into g (id, price, qty) values (1, 7, 7) on conflict (id) do update set price = excluded.total returning total
insert into g (id, price, qty) values (1, 7, 7) on conflict (id) do update set total = 1
merge into g using (values (1), (50)) v(k) on g.id = v.k when matched then update set qty = 2 when not matched then insert (id, price) values (k, k) returning merge_action(), g.*
merge into g using (values (1)) v(k) on g.id = v.k when matched then update set total = 2
merge into g using (values (51)) v(k) on g.id = v.k when not matched then insert values (k, 1, 1, 1)
delete from g where total > 100 returning id, total, label
alter table g add column half numeric(12,3) generated always as (price / 2) stored
alter table g add column bad int generated always as (nope + 1) stored
alter table g add column bad int generated always as (total + 1) stored
alter table g add column bad double precision generated always as (random()) stored
alter table g add column bad int generated always as ((select 1)) stored
alter table g add column bad int generated always as (count(*)) stored
alter table g alter column total set default 1
alter table g alter column total drop default
alter table g alter column qty drop expression
alter table g alter column qty drop expression if exists
alter table g alter column half drop expression
update g set half = 0 where id = 1 returning half
alter table g alter column label set not null
alter table g alter column price type numeric(10,1)
alter table g alter column price type numeric(10,1) using price + 1
alter table g drop column qty
alter table g drop column qty cascade
alter table g rename column price to cost
insert into g (id, cost) values (200, 3) returning *
create table h (a int, b int generated always as (a + 1) stored not null, c int generated always as (a * 2) stored check (c < 50), d int generated always as (a % 10) stored unique)
insert into h values (1), (2) returning *
insert into h values (null)
insert into h values (30)
insert into h values (11)
insert into h values (13), (23)
update h set a = a + 1 where a = 2 returning *
update h set a = 40
update h set a = null where a = 2
update h set a = 13 where a = 3
insert into h (a) values (12) on conflict (d) do update set a = excluded.a + 2 returning *
insert into h (a) select x from generate_series(5, 7) x returning b, c, d
create table p (a int, b int generated always as (a) stored default 5)
create table p (a int default 3, b int generated always as (a) stored primary key)
insert into p default values
insert into p default values
insert into p (a) values (4) returning b
create table q (like p including generated)
drop table q
