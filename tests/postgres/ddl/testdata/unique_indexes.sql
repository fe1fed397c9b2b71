create table u (id int primary key, email text, state text, n int, deleted timestamp)
insert into u values (1, 'A@x', 'open', 1, null), (2, 'b@x', 'closed', 1, null), (3, null, 'closed', 1, null)
create unique index u_email on u (lower(email))
create unique index u_n on u (n)
create unique index u_open on u (n) where state = 'open'
create unique index u_sum on u ((id + n), state) where deleted is null
create unique index u_incl on u (id) include (email)
select indisunique, indnatts, indnkeyatts, indnullsnotdistinct, indkey from pg_index i join pg_class c on c.oid = indexrelid where relname like 'u\_%' order by relname
insert into u values (4, 'a@X', 'new', 9, null)
insert into u values (4, 'c@x', 'open', 1, null)
insert into u values (4, 'c@x', 'shut', 1, null)
update u set state = 'open' where id = 2
update u set email = 'A@X' where id = 2
update u set email = 'B@X' where id = 2
update u set state = 'open', n = 2 where id = 2
update u set n = 1 where id = 2
insert into u values (5, 'd@x', 'open', 5, null), (6, 'e@x', 'open', 5, null)
insert into u values (5, 'd@x', 'z', 5, null), (6, 'D@x', 'z', 5, null)
insert into u values (7, null, 'z', 5, null), (8, null, 'z', 5, null)
insert into u values (5, 'f@x', 'z', 7, null)
insert into u values (5, 'f@x', 'z', 7, timestamp '2026-01-01')
update u set deleted = null
select id, email, state, n from u order by id
update u set id = id + 100
delete from u where id = 101
insert into u values (1, 'a@x', 'open', 2, null)
insert into u values (20, 'a@x', 'p', 20, null) on conflict (lower(email)) do nothing
insert into u values (20, 'A@x', 'p', 20, null) on conflict (lower(email)) do update set state = 'seen' returning id, email, state
insert into u values (20, 'q@x', 'open', 2, null) on conflict (n) where state = 'open' do update set n = 77 returning id, n
insert into u values (20, 'q@x', 'open', 2, null) on conflict (n) where state = 'open' and id > 3 do nothing
insert into u values (20, 'q@x', 'open', 2, null) on conflict (n) do nothing
insert into u values (20, 'q@x', 'open', 2, null) on conflict (n) where state = 'closed' do nothing
insert into u values (20, 'q@x', 'open', 2, null) on conflict (upper(email)) do nothing
insert into u values (21, 'r@x', 'open', 30, null), (22, 'R@x', 'open', 31, null), (23, 's@x', 'open', 30, null) on conflict do nothing
insert into u values (31, 'v@x', 'x', 30, null), (32, 'V@x', 'x', 31, null) on conflict (lower(email)) do update set n = 5
insert into u values (31, 'A@x', 'x', 30, null) on conflict on constraint u_email do nothing
insert into u values (102, 'other', 'zz', 30, null) on conflict (id) where true do nothing
insert into u values (21, 'z@x', 'zz', 3000, null) on conflict (id) do update set email = 'r@x' returning id
insert into u values (21, 'z@x', 'zz', 3000, null) on conflict (id) do update set email = 'Q@X' returning id, email
select id, email, state, n from u order by id
merge into u using (values (1, 'q@X'), (900, 'w@x')) v(i, e) on u.id = v.i when matched then update set email = v.e when not matched then insert values (v.i, v.e, 'm', 1, null)
merge into u using (values (1, 'q9@X'), (900, 'w@x')) v(i, e) on u.id = v.i when matched then update set email = v.e when not matched then insert values (v.i, v.e, 'm', 1, null)
alter table u add constraint c unique using index u_email
alter table u add constraint c unique using index u_open
create unique index u_bad on u (state) where state = 'z'
create unique index u_bad on u ((1 / (id - 102)))
create unique index u_bad on u (md5(email), (state is null)) where state = 'm' or state = 'x'
create unique index u_bad2 on u ((state is null))
create unique index u_bad3 on u (state) where state = 'open'
create unique index u_nnd on u (deleted) nulls not distinct where id < 0
create unique index u_nnd2 on u (deleted, state) nulls not distinct where id > 800
insert into u values (901, 'n1', 'm', 4, null)
insert into u values (901, 'n1', 'm9', 4, null)
update u set state = 'm9' where id = 900
insert into u values (-1, 'n2', 'w1', 4, null)
insert into u values (-2, 'n3', 'w2', 4, null)
alter table u alter column n type bigint
alter table u alter column email type varchar(5)
alter table u alter column email type text
alter table u alter column email type text using substr(email, 2)
alter table u rename column email to mail
alter index u_email rename to u_mail
insert into u values (903, 'W@X', 'k', 4, null)
alter table u drop column mail
select indexname from pg_indexes where tablename = 'u' order by indexname
insert into u values (904, 'k', 50, null)
drop index u_open
insert into u (id, state, n) values (905, 'open', 30), (906, 'open', 30)
create table u2 (like u including all)
insert into u2 (id, state, n) values (-1, 'x', 1), (-2, 'y', 1)
create table v (a int, b text)
create unique index v_a on v (abs(a))
insert into v values (1), (null), (null)
insert into v values (-1)
begin
insert into v values (5)
savepoint s
insert into v values (-5)
rollback to s
delete from v where a = 5
insert into v values (-5)
commit
select a from v order by a
begin
drop index v_a
insert into v values (5)
create unique index v_a on v (abs(a))
rollback
insert into v values (5)
truncate v
insert into v values (5), (6)
update v set a = -a
update v set a = case a when -5 then 6 else -a end
create unique index v_b on v (b text_pattern_ops) where a is not null
insert into v values (100, 'x'), (101, 'x')
insert into v values (null, 'x'), (null, 'x'), (101, 'x')
create unique index on v using hash (a)
create unique index v_c on v ((a + 1), lower(b)) include (a)
drop table v, u, u2
# meridian
create table w (a int, b numeric, c float8, d jsonb, t timestamp)
insert into w values (1, 1.5, 1.5, '{}', '2026-01-01'), (2, 2.5, 2.5, '{}', '2026-01-01')
create unique index w_b on w ((b + 1))
create unique index w_c on w ((c * 2))
create unique index w_d on w (d) where a > 0
create unique index w_d on w (a) where d = '{}'
create unique index w_e on w (b, c) where a > 0
insert into w values (3, 1.50, 1.5, '{}', null)
insert into w values (-3, 1.50, 1.5, '{}', null)
create unique index w_t on w (a) where t > now()
create unique index w_t on w ((t + interval '1 day'))
insert into w values (7) on conflict (b, c) where a > 5 do nothing
create table wf (a int references w (a))
alter table w add constraint c unique using index w_e
create unique index w_a on w (a) include (b)
alter table w add constraint c unique using index w_a
update w set a = 3 - a where a > 0
