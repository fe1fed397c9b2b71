# tables l, u
create table l (id int, k int, g text, x int, n numeric(10,2), f float8, d date, b boolean)
insert into l values (1, 1, 'a', 10, 1.50, 0.5, '2024-01-01', true), (2, 1, 'a', 20, 2.25, 1.5, '2024-01-02', false), (3, 2, 'b', null, null, null, null, null), (4, 2, 'b', 40, -4.75, -2.5, '2024-02-01', true), (5, null, null, 50, 0, 0, '2024-02-29', false), (6, 4, 'c', 60, 100.00, 1e10, '2023-12-31', null), (7, 4, null, 20, 2.25, 1.5, '2024-01-02', true)
create table r (id bigint, k int, t text, y numeric(8,3))
insert into r values (1, 1, 'one', 1.5), (2, 2, 'two', 2.25), (3, 2, 'deux', null), (4, null, 'none', 0), (5, 9, 'nine', 40), (6, 4, null, 100)
create table u (id int primary key, k int, x int)
insert into u values (1, 1, 10), (2, 2, null), (4, null, 7), (9, 4, 60)
create table l0 as select * from l
delete from l o where not exists (select i.id from r i where o.k = (select min(p.k) from l p where p.id = i.id)) returning o.id
with gone as (delete from l) insert into l select * from l0
delete from l o where not exists (select max(i.k) from r i where i.k = o.k) returning o.id
with gone as (delete from l) insert into l select * from l0
delete from l o where o.id = 1 or o.x > any (select a.k from r a, (select max(i.k) as m from r i where i.k = o.k and i.y > o.x / 20) q where a.k is distinct from q.m) returning o.id
with gone as (delete from l) insert into l select * from l0
update l o set g = 'z' returning o.id, exists (select q.m from (select max(i.k) as m from r i where i.k < o.k union all select min(i.k) from r i where i.k < o.k) q)
with gone as (delete from l) insert into l select * from l0
merge into l t using l o on t.id = o.id + 3 when matched then do nothing when not matched and not exists (select sum(i.id) from r i where i.k = o.k and i.y > o.x / 20 group by i.k having count(*) > 1) then insert (id, x) values (o.id + 20, 1) when not matched then insert (id, x) values (o.id + 30, 2) returning merge_action(), t.id, t.x
with gone as (delete from l) insert into l select * from l0
with d as (update l o set x = (select count(*) from (select a.k from r a, (select max(i.k) as m from r i where i.k < o.k) q where a.k is distinct from q.m) s(z)) returning o.id, o.x, o.k) select o.id, o.x from d o
with gone as (delete from l) insert into l select * from l0
delete from l o where exists (values (o.k), (o.x)) returning o.id
with gone as (delete from l) insert into l select * from l0
delete from l o where exists (select i.k + o.x from r i where (i.k = o.k or o.x > 30) order by i.id desc limit 1) returning o.id
with gone as (delete from l) insert into l select * from l0
delete from l o where not exists (select i.k from r i where o.k > 1) returning o.id
with gone as (delete from l) insert into l select * from l0
delete from l o where not exists (select i.k from r i where i.k = o.k and i.y > o.x / 20 union select o.k) returning o.id
with gone as (delete from l) insert into l select * from l0
delete from l o where o.k in (select max(i.k) from r i where i.k = o.k) returning o.id
with gone as (delete from l) insert into l select * from l0
delete from l o where o.k in (select i.id + o.x from r i where i.k < o.k order by i.id limit 1 offset 1) returning o.id
with gone as (delete from l) insert into l select * from l0
delete from l o where o.k not in (select i.k + o.k from r i where (i.k = o.k or o.x > 30)) returning o.id
with gone as (delete from l) insert into l select * from l0
delete from l o where o.k not in (select i.k from r i where o.k > 1 except select 2) returning o.id
with gone as (delete from l) insert into l select * from l0
delete from l o where o.id = 1 or o.x > any (select count(*) from r i where i.k = o.k and i.y > o.x / 20) returning o.id
with gone as (delete from l) insert into l select * from l0
delete from l o where o.id = 1 or o.x > any (select max(q.m) from (select i.k as m from r i where i.k = o.k order by i.id limit 2) q) returning o.id
with gone as (delete from l) insert into l select * from l0
delete from l o where o.x >= all (select max(i.k) from r i where i.k < o.k) returning o.id
with gone as (delete from l) insert into l select * from l0
delete from l o where o.x >= all (select row_number() over (order by i.id) from r i where (i.k = o.k or o.x > 30)) returning o.id
with gone as (delete from l) insert into l select * from l0
delete from l o where (select count(*) + o.k from r i where o.k > 1) > 1 returning o.id, o.x
with gone as (delete from l) insert into l select * from l0
delete from l o where (select count(*) from (select max(i.y) as m from r i where i.k = o.k and i.y > o.x / 20) q) > 1 returning o.id, o.x
with gone as (delete from l) insert into l select * from l0
delete from l o where o.b or not exists (select i.k from r i where i.k = o.k group by i.k) returning o.id
with gone as (delete from l) insert into l select * from l0
delete from l o where o.b or not exists (select max(q.m) from (select i.k as m from r i where i.k < o.k order by i.id limit 2) q) returning o.id
with gone as (delete from l) insert into l select * from l0
delete from l o where (select count(*) from r i where (i.k = o.k or o.x > 30) having count(*) > 1) is null returning o.id
with gone as (delete from l) insert into l select * from l0
delete from l o where (select coalesce(sum(q.n), -1) from (select count(*) as n from r i where o.k > 1 group by i.k) q) is null returning o.id
with gone as (delete from l) insert into l select * from l0
update l o set x = (select sum(i.id) from r i where i.k = o.k and i.y > o.x / 20 group by i.k having count(*) > 1) returning o.id, o.x
with gone as (delete from l) insert into l select * from l0
update l o set x = (select i.k from r i left join r a on a.id = i.id + o.id where i.k = o.k) returning o.id, o.x
with gone as (delete from l) insert into l select * from l0
update l o set (x, k) = (select z, z + 1 from (select i.k from r i where i.k < o.k group by i.k) s(z)) returning o.id, o.x, o.k
with gone as (delete from l) insert into l select * from l0
update l o set (x, k) = (select z, z + 1 from (select a.k from r a join r i on a.id = i.id + 1 where (i.k = o.k or o.x > 30)) s(z)) returning o.id, o.x, o.k
with gone as (delete from l) insert into l select * from l0
update l o set x = case when o.b then (select distinct i.k from r i where o.k > 1) else -1 end where o.k in (select distinct i.k from r i where o.k > 1) returning o.id, old.x, new.x
with gone as (delete from l) insert into l select * from l0
with gone as (delete from l) insert into l select * from l0
update l o set x = s.z from (select b.id, (select max(z) from (select i.k + b.x from r i where i.k = b.k order by i.id desc limit 1) q(z)) from l b) s(id, z) where s.id = o.id returning o.id, o.x, s.z
with gone as (delete from l) insert into l select * from l0
update l o set x = s.z from (select b.id, (select max(z) from (select i.k from r i left join r a on a.id = i.id + b.id where i.k < b.k) q(z)) from l b) s(id, z) where s.id = o.id returning o.id, o.x, s.z
with gone as (delete from l) insert into l select * from l0
update l o set x = z from l c, lateral (select max(z) from (select i.k from r i where (i.k = c.k or c.x > 30) order by i.id limit 1) q(z)) s(z) where c.id = o.id and z is distinct from 2 returning o.id, o.x, z
with gone as (delete from l) insert into l select * from l0
with gone as (delete from l) insert into l select * from l0
delete from l o using (select c.id, exists (select i.id + c.x from r i where i.k = c.k and i.y > c.x / 20 order by i.id limit 1 offset 1) from l c) s(id, e) where s.id = o.id and not s.e returning o.id
with gone as (delete from l) insert into l select * from l0
delete from l o using (select c.id, exists (select coalesce(max(q.m) over (), -2) from (select max(i.k) as m from r i where i.k = c.k) q) from l c) s(id, e) where s.id = o.id and not s.e returning o.id
with gone as (delete from l) insert into l select * from l0
delete from l o using l c left join lateral (select z from (select i.k + c.x from r i where i.k < c.k order by i.id desc limit 1) q(z) where z > 1 limit 1) s on c.b where c.id = o.id and s.z is null returning o.id, s.z
with gone as (delete from l) insert into l select * from l0
delete from l o using l c left join lateral (select z from (select row_number() over () from (select max(i.k) as m from r i where (i.k = c.k or c.x > 30)) q) q(z) where z > 1 limit 1) s on c.b where c.id = o.id and s.z is null returning o.id, s.z
with gone as (delete from l) insert into l select * from l0
update l o set g = 'z' returning o.id, exists (select i.k from r i where o.k > 1 union select o.k), (select max(z) from (select i.k from r i where o.k > 1 union select o.k) s(z))
with gone as (delete from l) insert into l select * from l0
update l o set g = 'z' returning o.id, exists (select coalesce(q.m, -1) from (select max(i.k) as m from r i where i.k = o.k and i.y > o.x / 20) q), (select max(z) from (select coalesce(q.m, -1) from (select max(i.k) as m from r i where i.k = o.k and i.y > o.x / 20) q) s(z))
with gone as (delete from l) insert into l select * from l0
merge into l o using (select c.id, (select max(z) from (select row_number() over (order by i.id) from r i where i.k = c.k) q(z)) from l c where c.id > 2) s(id, z) on o.id = s.id when matched and s.z is null then delete when matched then update set x = s.z when not matched by source then update set x = -5 returning merge_action(), o.id, o.x
with gone as (delete from l) insert into l select * from l0
merge into l o using r s on o.id = s.id when matched and exists (select i.k from r i where i.k < o.k union select o.k) then update set x = 77 when matched and not exists (select i.k from r i where i.k < o.k union select o.k) then delete when not matched by source and o.k in (select i.k from r i where i.k < o.k union select o.k) then update set x = 5 returning merge_action(), o.id, o.x
with gone as (delete from l) insert into l select * from l0
with gone as (delete from l) insert into l select * from l0
merge into l t using l o on t.id = o.id + 3 when matched then do nothing when not matched and not exists (select row_number() over (order by i.id) from r i where o.k > 1) then insert (id, x) values (o.id + 20, 1) when not matched then insert (id, x) values (o.id + 30, 2) returning merge_action(), t.id, t.x
with gone as (delete from l) insert into l select * from l0
merge into l o using (select k, count(*) n from r group by k) s on o.k = s.k and o.id in (1, 4, 6) when matched and s.n > all (select max(q.m) from (select i.k as m from r i where i.k = o.k and i.y > o.x / 20 order by i.id limit 2) q) then delete when matched then update set x = (select max(q.m) from (select i.k as m from r i where i.k = o.k and i.y > o.x / 20 order by i.id limit 2) q) when not matched by source and coalesce((select max(q.m) from (select i.k as m from r i where i.k = o.k and i.y > o.x / 20 order by i.id limit 2) q), 0) < 3 then update set x = -1 returning merge_action(), o.id, o.x
with gone as (delete from l) insert into l select * from l0
insert into l (id, k, x) select o.id + 10, o.k, (select count(*) from (select max(i.y) as m from r i where i.k = o.k) q) from l o where o.k not in (select count(*) from (select max(i.y) as m from r i where i.k = o.k) q) or o.b returning id, k, x
with gone as (delete from l) insert into l select * from l0
insert into l (id, x) select o.id + 10, z from l o, lateral (select row_number() over (order by i.id) from r i where i.k < o.k) s(z) returning id, x
with gone as (delete from l) insert into l select * from l0
insert into u as o select c.id, c.k, c.x from l c on conflict (id) do update set x = excluded.x + 1 where exists (select max(q.m) from (select i.k as m from r i where (i.k = o.k or o.x > 30) order by i.id limit 2) q) returning o.id, o.k, o.x
truncate u
insert into u values (1, 1, 10), (2, 2, null), (4, null, 7), (9, 4, 60)
insert into u as o select c.id + 1, 2, c.x from l c where c.k > 1 on conflict (id) do update set x = (select max(z) from (select count(*) from (select max(i.y) as m from r i where o.k > 1) q) s(z)) returning id, k, x
truncate u
insert into u values (1, 1, 10), (2, 2, null), (4, null, 7), (9, 4, 60)
with d as (delete from l o where not exists (select coalesce(sum(q.n), -1) from (select count(*) as n from r i where i.k = o.k and i.y > o.x / 20 group by i.k) q) returning o.id, o.k, o.x) insert into u select id + 10, k, x from d returning *
truncate u
insert into u values (1, 1, 10), (2, 2, null), (4, null, 7), (9, 4, 60)
with gone as (delete from l) insert into l select * from l0
with d as (update l o set x = (select count(*) from (select a.k from r a join r i on a.id = i.id + 1 where i.k = o.k) s(z)) returning o.id, o.x, o.k) select o.id, o.x, (select max(z) from (select a.k from r a join r i on a.id = i.id + 1 where i.k = o.k) s(z)) from d o
with gone as (delete from l) insert into l select * from l0
insert into l (id, k, x) values (10, 1, 20), (11, 2, null), (12, null, 5) returning id, (select max(z) from (select count(*) from (select max(i.y) as m from r i where i.k < l.k) q) s(z)), exists (select count(*) from (select max(i.y) as m from r i where i.k < l.k) q)
with gone as (delete from l) insert into l select * from l0
