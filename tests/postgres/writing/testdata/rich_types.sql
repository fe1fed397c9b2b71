# tables r, arr, js, e
create type mood as enum ('sad', 'ok', 'happy')
create domain posint as int check (value > 0)
create domain short_text as varchar(5) not null
create table r (id int primary key, i interval, d date, t time, ts timestamp(3), tz timestamptz, u uuid, b bytea, f real, g double precision, m mood, p posint, n numeric(6,3), o boolean, c char(4), v varchar(6))
insert into r (id, i, d, t, ts, tz) values (1, '1 month 2 days 03:04:05.678', '2024-02-29', '12:34:56.789', '2024-02-29 12:34:56.789654', '2024-02-29 12:00:00+02')
insert into r (id, u, b, f, g) values (2, 'A0EEBC99-9c0b-4ef8-bb6d-6bb9bd380a11', '\x00ff', 1.1, 1e300), (3, null, 'abc\\000', 'NaN', '-Infinity')
insert into r (id, m, p, n, o, c, v) values (4, 'ok', 7, 123.4567, 'yes', 'ab', 'abcdef')
insert into r (id, m) values (5, 'angry')
insert into r (id, p) values (5, 0)
insert into r (id, n) values (5, 1000)
insert into r (id, c) values (5, 'abcde')
insert into r (id, c) values (5, 'abcd   ') returning c, length(c)
insert into r (id, v) values (6, 'abcdef   ') returning v, length(v)
insert into r (id, v) values (7, 'abcdefg')
insert into r (id, u) values (7, 'not-a-uuid')
insert into r (id, d) values (7, '2023-02-29')
insert into r (id, t) values (7, '25:00')
insert into r (id, i) values (7, 'one fortnight')
insert into r (id, b) values (7, '\x0')
insert into r (id, g) values (7, '1e400')
insert into r (id, o) values (7, 'maybe')
insert into r (id, ts) values (7, '2024-13-01')
update r set i = i * 2, d = d + 1, t = t + interval '1 hour', ts = ts - interval '1 year', tz = tz + interval '1 day' where id = 1 returning i, d, t, ts, tz
update r set i = justify_interval(i), d = d - date '2024-01-01' + date '2024-01-01' where id = 1 returning i, d
update r set u = '00000000000000000000000000000001', b = b || '\x01', f = f * 2, g = -g where id = 2 returning u, b, f, g
update r set m = 'happy', p = p + 1, n = n / 3, o = not o, c = 'x', v = left(v, 2) where id = 4 returning m, p, n, o, c, v
update r set m = case when m > 'ok' then 'sad'::mood else m end where m is not null returning m
update r set m = m::text::mood, p = p::int where id = 4 returning m, p
update r set m = 'bad' where id = 4
update r set p = -p where id = 4
update r set p = null, m = null where id = 4 returning p, m
update r set id = id where m < 'ok'
delete from r where tz > '2024-03-01 00:00+00' returning id
insert into r (id, m) select 10 + n, x from (values (1, 'sad'::mood), (2, 'happy')) v(n, x) returning id, m
insert into r (id, m) select 20, 'sad'::text
insert into r (id, p) select 20, 5::bigint returning p
insert into r (id, p) select 21, -5::bigint
insert into r (id, d) select 22, '2024-01-01'::timestamp returning d
insert into r (id, t) select 23, '2024-01-01 10:20'::timestamp returning t
insert into r (id, i) select 24, '10:20'::time returning i
insert into r (id, o) select 25, 1
insert into r (id, u) select 25, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::text
insert into r (id, v) select 25, 123456 returning v
insert into r (id, v) select 26, 1234567
insert into r (id, n) select 27, 1.23456::double precision returning n
insert into r (id, c, v) values (28, null, '') on conflict (id) do update set v = 'again' returning c, v, v is null
insert into r (id, m, d) values (11, 'ok', 'epoch') on conflict (id) do update set m = excluded.m, d = excluded.d returning m, d
merge into r using (values (11, 'sad'::mood, interval '1 day')) v(k, m, i) on r.id = v.k and r.m > v.m when matched then update set m = v.m, i = v.i returning r.m, r.i
create table arr (id int primary key, a int[], s text[] default '{x,"y z",null}', m mood[], d date[], n numeric(5,1)[])
insert into arr (id, a) values (1, '{1,2,3}'), (2, array[4, null, 6]), (3, '{}'), (4, null) returning *
insert into arr (id, s) values (5, '{"a,b","c\"d",NULL,"null"}') returning s, s[4], array_length(s, 1)
insert into arr (id, m) values (6, '{sad,ok}') returning m
insert into arr (id, m) values (7, '{sad,bad}')
insert into arr (id, a) values (7, '{1,x}')
insert into arr (id, a) values (7, '{1,2')
insert into arr (id, n) values (7, '{1.25,99999}')
insert into arr (id, n) values (7, '{1.25,null}') returning n
insert into arr (id, d) values (8, '{2024-01-01,never}')
insert into arr (id, d) values (8, '{2024-01-01}') returning d
update arr set a = a || 9, s = array_append(s, 'more') where id = 1 returning a, s
update arr set a = array_remove(a, 2), n = '{1,2}' where id in (1, 7) returning a, n
update arr set a = array(select x from generate_series(1, id) x) where id = 3 returning a
update arr set m = m || 'happy'::mood where id = 6 returning m
update arr set a = '{1,2,3}'::text[]::int[] where id = 4 returning a
update arr set a = 5
update arr set s = null where a is null returning id
delete from arr where 9 = any(a) returning id, a
delete from arr where a = '{}' or a @> '{6}' returning id
insert into arr (id, a) select id + 100, array_agg(x) from arr, generate_series(1, 2) x group by id returning id, a
insert into arr (id, a) values (6, '{7}') on conflict (id) do update set a = arr.m::text[]::int[]
insert into arr (id, a) values (6, '{7}') on conflict (id) do update set a = excluded.a || 8 returning a, m
create table js (id int primary key, j json, b jsonb default '{"a": [1, 2]}', check (b ? 'a' or b is null))
insert into js (id, j) values (1, '{"x": 1,  "x": 2}'), (2, 'null'), (3, null) returning *
insert into js values (4, '[1, 2.50, "a"]', '{"b": 1, "a": null, "b": 2}') returning *
insert into js values (5, '{bad}', null)
insert into js values (5, null, '{"a": 01}')
insert into js values (5, null, '{"b": 1}')
insert into js values (5, to_json('t'::text), jsonb_build_object('a', id_list)) 
insert into js select 5, to_json(array[1, 2]), jsonb_build_object('a', 'x', 'n', null) returning *
update js set b = b || '{"c": true}' where id = 1 returning b
update js set b = jsonb_set(b, '{a,0}', '10') where id = 1 returning b
update js set b = b - 'c', j = b where id = 1 returning j, b
update js set b = b - 'a' where id = 1
update js set b = b #- '{a,0}' where b @> '{"a": [10]}' returning id, b
update js set j = '1'::jsonb where id = 2 returning j
update js set j = 'text' where id = 2
delete from js where b ->> 'a' = 'x' returning id, j ->> 0
insert into js (id, b) values (4, '{"a": 5}') on conflict (id) do update set b = js.b || excluded.b, j = null returning b
create table e (m mood primary key, s short_text, p posint unique)
insert into e values ('sad', 'x', 1), ('ok', 'y', null)
insert into e values ('sad', 'z', 2)
insert into e values ('happy', null, 2)
insert into e (m) values ('happy')
insert into e values ('happy', 'toolong', 2)
insert into e values ('happy', 'z', 1)
insert into e values ('happy', 'z', -1)
insert into e values ('sad', 'w', 5) on conflict (m) do update set s = excluded.s || e.s, p = excluded.p returning *
insert into e values ('happy', 'z', 5) on conflict (p) do update set m = 'happy' returning *
update e set s = null
update e set m = 'happy'
update e set s = s || s || s || s
delete from e where m between 'sad' and 'ok' returning m
alter type mood add value 'ecstatic' after 'happy'
insert into e values ('ecstatic', 'v', 9) returning m, m > 'happy'
alter type mood rename value 'sad' to 'blue'
update e set m = 'sad'
update e set m = 'blue' where m = 'happy' returning m
select id, m from r where m is not null order by id
drop type mood
drop domain posint cascade
select * from e
