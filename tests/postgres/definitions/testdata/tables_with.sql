create table c1 (a int check (a > 0), b text check (b in ('x', 'y')), c varchar(5) constraint c1_c check (length(c) > 1 and c <> 'no'))
create table c2 (k text check (k in ('x')), check (k is not null or k = 'a'))
create table c3 (a int, b int, check (a < b), check (a between 1 and 10), constraint c3_both check (a > 0 and b > 0 or a is null))
create table c4 (f bool check (f), g bool check (not g), h text check (h ~ '^[a-z]+$'), i text check (h like 'a%' or i ilike '%b'))
create table c5 (n numeric(10, 2) check (n >= 0), d date check (d > '2000-01-01'), ts timestamptz check (extract(year from ts) > 2000))
create table c6 (a int, b int, c text, check (coalesce(a, b) is not null), check (case when a > 1 then b > 2 else true end), check (c::int > 5))
create table c7 (po positive, mo mood check (mo <> 'sad'), ia int[] check (array_length(ia, 1) < 5), check (po < 100))
create table c8 (j jsonb check (j ? 'a'), check (jsonb_typeof(j) = 'object'), w varchar check (w in ('a', 'b', 'c')), check (lower(w) = w))
create table d1 (a int default 0, b bigint default 0, c bigint default -1, d numeric default 0, e numeric default '0', f numeric(10, 2) default '1.50', g text default 5, h text default '5', i int default '7', j float8 default 0, k float8 default 1.5, l float8 default '1.5', m real default 2)
create table d2 (a varchar(10) default 'x', b varchar default 'x'::text, c text default 'x'::varchar(3), d char(3) default 'ab', e text default '', f text default 'it''s', g text default E'a\\b', h text default null, i int default null)
create table d3 (a timestamp default now(), b timestamptz default current_timestamp, c date default current_date, d date default '2020-1-1', e timestamp default '2020-01-01 12:00', f time default '12:00', g interval default '1 day', h timestamptz default now() + interval '1 day', i timestamp default localtimestamp(0), j date default now()::date)
create table d4 (a bool default true, b bool default 'f', c bool default (not true), d uuid default gen_random_uuid(), e json default '{}', f jsonb default '{"b":1,"a":2}', g jsonb default '[]'::jsonb, h int[] default '{}', i int[] default array[1, 2], j text[] default array[]::text[], k mood default 'ok', l bytea default '\x01')
create table d5 (a serial, b bigserial, c int default nextval('sq'), d int default nextval('sq'::regclass) + 1, e int default 1 + 1, f int default (2 * 3), g text default 'a' || 'b', h text default upper('x'), i int default length('abc'), j text default current_user, k int default 2::bigint, l varchar(3) default 'abc'::varchar(3))
create table d6 (a positive default 3, b short, c short default 'q', d int generated always as identity, e int generated always as (d + 1) stored, f text generated always as (lower(c::text) || '-') stored, g numeric(5, 1) generated always as (d * 2) stored)
create index i1 on t (a)
create index i2 on t (lower(x))
create index i3 on t ((a + b))
create index i4 on t (a desc nulls last, (x || 'y'), upper(w))
create index i5 on t (a) where a > 5 and x is not null
create index i6 on t ((x::varchar(5)))
create unique index i7 on t (lower(w)) where f
create index i8 on t ((jb ->> 'a'))
create index i9 on t (coalesce(a, 0), (case when f then 1 else 2 end))
create index i10 on t (a, b) include (x) where w in ('a', 'b')
create index i11 on t ((day - 1)) where ts > '2020-01-01'
create index i12 on s.o ("B b", "select" desc)
create index i13 on t using hash (x)
create index i14 on t ((f is true)) where not f
create index i15 on t (date_trunc('day', ts), extract(year from day))
create index i16 on t ((po + 1), (a * 2)) where mo = 'ok'
create index i17 on t (md5(x), substring(x from 1 for 3), trim(x))
create domain dd1 as text default 'a' check (value like 'a%') check (value in ('a', 'ab'))
create domain dd2 as numeric(10, 2) default 0 check (value >= 0 and value < 100)
create domain dd3 as int default 1 constraint dd3_in check (value = any (array[1, 2])) not null
create domain dd4 as varchar(5) check (value ~ '^\d+$' or upper(value) = value)
alter table c1 add constraint later check (a < 100) not valid
alter table u add constraint u_y check (y <> 'x' and y not like '%z')
alter table w alter k set default 'dflt'
alter table w alter q type bigint
alter table w alter q set default 5
