# tables t, public.t, w, c, v, l
create table t (id int primary key, s text)
insert into t values (1, 'a'), (2, 'b')
create temp table t (id int primary key, s text default 'temp', n int check (n > 0))
insert into t (id) values (1), (3)
insert into t values (1, 'again', 1)
insert into t values (9, 'bad', -1)
insert into t select id + 10, s, id from public.t returning *
update t set s = p.s from public.t p where p.id = t.id returning t.*
insert into public.t select id, s from t where id > 2
delete from t using public.t p where p.id = t.id and t.id > 10 returning t.id
create temp table w as select id, s from public.t where id > 1
create temp table w as select 1
create temp table if not exists w as select 1
insert into w values (5, 'w')
alter table w add column extra int default 7
alter table w rename column s to text
update w set extra = id * 2 where id > 2
alter table w drop column text
create unique index w_id on w (id)
insert into w values (5, 1)
insert into w values (5, 1) on conflict (id) do update set extra = w.extra + excluded.extra returning *
insert into w values (6, 1) on conflict (id) do update set extra = w.extra + excluded.extra returning *
create temp table c (id int references t on delete cascade, s text)
insert into c values (1, 'one'), (3, 'three'), (null, 'none')
insert into c values (99, 'orphan')
delete from t where id = 1
truncate t
truncate t cascade
insert into t values (1, 'x', 1), (2, 'y', 2), (3, 'z', 3)
create view v as select t.id, w.extra from t join w using (id)
create temp view v2 as select * from v
insert into w values (1, 100), (2, 200)
drop table t
drop table w cascade
select * from t order by id
create temp table l (like t including all)
insert into l select * from t
insert into l values (1)
merge into l using public.t p on l.id = p.id when matched then update set s = p.s || '!' when not matched then insert values (p.id, p.s)
with gone as (delete from l where id < 3 returning *) insert into public.t select id + 100, s from gone returning id
select s, id into temp picked from l where id > 2
select * from picked order by id
alter table l rename to renamed
alter table renamed rename to l
alter table l add constraint short check (length(s) < 3)
delete from l where length(s) > 2
alter table l add constraint short check (length(s) < 3)
insert into l values (50, 'long')
comment on table l is 'a temporary one'
drop table l, picked
drop table pg_temp.t cascade
insert into t values (77, 'permanent')
drop table t
drop table if exists t
