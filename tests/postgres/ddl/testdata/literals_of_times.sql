# A literal of a time is read once, when what it stands in is defined; whoever uses it later has other settings.
set timezone = 'Europe/Berlin'
set datestyle = 'ISO, DMY'
create table e (id int primary key, ts timestamptz, t timestamp, d date)
insert into e values (1, '2025-05-31 23:00+00', '2025-06-01 01:00', '2025-06-01'), (2, '2025-06-01 03:00+00', '2025-06-01 05:00', '2025-06-02')
create view v_compared as select id, ts >= '2025-06-01' as since, t >= '01/06/2025 02:00' as later, d = '02/06/2025' as second from e
create view v_typed as select extract(epoch from timestamptz '2025-06-01 12:00') as a, extract(epoch from cast('1.6.2025 12:00' as timestamptz)) as b, extract(epoch from '2025-06-01'::timestamp(0) with time zone) as c, pg_catalog.timestamptz('2025-06-01 12:00') = '2025-06-01 10:00+00' as d, extract(month from date('02/06/2025')) as e
create view v_listed as select id from e where ts in ('2025-06-01 01:00', '2025-06-01 07:00') or ts between '2025-06-01 04:30' and '2025-06-01 05:30'
create view v_arrays as select extract(epoch from (('{2025-06-01 12:00,2025-06-01 13:00}'::timestamptz[])[2])) as second, ts = any ('{2025-06-01 05:00}') as any, array['2025-06-01 12:00', ts] = array[ts, ts] as built from e
create view v_dates as select ('{01/02/2025,2025-02-03}'::date[])[1] - '2025-02-01'::date as days, extract(month from date '03/04/2025') as month
create view v_functions as select id, extract(epoch from date_trunc('day', '2025-06-01 12:00'::timestamptz, 'UTC')) as day, extract(epoch from coalesce(null, '2025-06-01', ts)) as given, extract(epoch from greatest(ts, '2025-06-01 04:00')) as latest, case ts when '2025-06-01 05:00' then 'five' else 'other' end as five from e
create view v_union as select extract(epoch from at) from (select '2025-06-01' as at union all select ts from e) s order by 1
create view v_unnamed as select extract(epoch from "?column?") from (select '2025-06-01' union all select ts from e) s order by 1
create view v_values as select extract(epoch from column1) from (values ('2025-06-01'), (timestamptz '2025-06-02 00:00')) s order by 1
create view v_rows as select id from e where (ts, id) >= ('2025-06-01 05:00', 2)
create view v_timetz as select timetz '10:00+05' = '05:00+00' as zoned, extract(hour from '2025-06-01 10:00'::timetz at time zone interval '0') as of_date
create view v_inner as select id from e where exists (select 1 where e.ts < '2025-06-01 01:30') or ts in (select '2025-06-01 05:00' union select now())
create view v_over as select id, since and timestamptz '2025-06-01 02:00' < '2025-06-01 00:30+00' as both from v_compared
create table k (id int, ts timestamptz default '2025-06-01 12:00', other timestamptz default timestamptz '2025-06-01 12:00' + interval '1 hour', late bool generated always as (ts > '2025-06-01 13:00') stored, check (ts < '2025-12-24'), check (ts <> all ('{2025-07-01 00:00}'::timestamptz[])))
create index on k (id) where ts > '2025-06-01'
create index on k ((ts > timestamptz '01/06/2025 14:00'))
create domain soon as timestamptz default '2025-06-01 12:00' check (value > '2025-06-01') check (value < timestamptz '2025-12-24')
create table with_soon (id int, at soon)
create view v_default as select id, ts from e
alter view v_default alter ts set default timestamptz '2025-06-01 12:00' - interval '1 hour'
prepare p as select id, ts >= '2025-06-01' as since, extract(epoch from timestamptz '1.6.2025 12:00') as noon from e where ts > '2025-06-01 00:30' order by id
prepare i as insert into e values (3, '2025-06-01 12:00', '02/06/2025', '02/06/2025')
execute p
set datestyle = 'ISO, MDY'
create view v_run as select extract(epoch from '2025-06-01 12:00'::text::timestamptz) as read_when_run
prepare q(timestamptz) as select extract(epoch from $1) as given, extract(epoch from timestamptz '2025-06-01 12:00') as kept, extract(epoch from '2025-06-01 12:00'::text::timestamptz) as run
execute q('2025-06-01 12:00')
set timezone = 'America/New_York'
set intervalstyle = 'sql_standard'
select * from v_compared order by id
select * from v_typed
select * from v_listed order by id
select * from v_arrays order by 2
select * from v_dates
select * from v_functions order by id
select * from v_union
select * from v_unnamed
select * from v_values
select * from v_rows order by id
select * from v_timetz
select * from v_inner order by id
select * from v_over order by id
select * from v_run
insert into k (id) values (1)
insert into k values (2, '2025-06-01 12:00+00'), (3, '2025-06-01 11:00+00')
insert into k values (4, '2025-12-24 03:00+00')
insert into k values (4, '2025-12-23 23:00+00')
insert into k values (4, '2025-12-23 22:59+00')
insert into k values (5, '2025-06-30 22:00+00')
insert into k values (5, '2025-07-01 04:00+00')
select id, extract(epoch from ts) as ts, extract(epoch from other) as other, late from k order by id
insert into with_soon (id) values (1)
insert into with_soon values (2, '2025-05-31 22:00+00')
insert into with_soon values (2, '2025-05-31 22:01+00'), (3, '2025-06-01 05:00+00')
insert into with_soon values (4, '2025-12-23 23:00+00')
select id, extract(epoch from at) as at from with_soon order by id
select extract(epoch from '2025-05-31 22:30+00'::soon) as inside
select extract(epoch from '2025-05-31 22:00+00'::soon) as outside
insert into v_default (id) values (7)
execute p
execute q('2025-06-01 12:00')
execute i
select id, extract(epoch from ts) as ts, extract(epoch from t) as t, d - '2025-01-01'::date as d from e order by id
reset intervalstyle
create table copied (like k including all)
insert into copied (id) values (1)
select extract(epoch from ts) as ts, extract(epoch from other) as other, late from copied
alter table e alter ts type date using '2025-06-01'
drop view v_over
# A column that gets another type is compared with what was written all the same.
create table c (ts timestamptz, check (ts > '2025-06-01 12:00'))
alter table c alter ts type timestamp using '2025-06-02'
set timezone = 'UTC'
insert into c values ('2025-06-01 16:00')
insert into c values ('2025-06-01 16:01')
# Words for moments are constants of when they were read.
create table w (id int, ts timestamptz default 'now', t bool default timestamp 'now' < localtimestamp, d date default 'today', made timestamptz default now(), late bool generated always as (ts > 'tomorrow'::timestamptz) stored, check (ts <= 'now'))
insert into w (id) values (1)
select id, ts < now() as ts, t, d <= current_date as d, made > ts as made, late from w
insert into w (id, ts) values (2, now())
create view v_now as select 'now'::timestamptz as n, timestamp 'now' as t, date 'yesterday' as y, 'tomorrow'::date - 'today'::date as days
select n = now() as same, n < now() as before, t < localtimestamp as t, y < current_date as y, days from v_now
prepare n as select 'now'::timestamptz = now() as same, 'now'::timestamptz < now() as before
execute n
select 'now'::timestamptz = now() as now, 'now'::timestamp = localtimestamp as t, 'now'::date = current_date as d, 'today'::timestamptz = date_trunc('day', now()) as today, 'now'::time = localtime as clock, 'now'::timetz = current_time as timetz
select 'today 10:00'::timestamp - 'today' as ten, 'tomorrow'::timestamp - 'yesterday'::timestamp as two, 'today allballs'::timestamptz = 'today 00:00+00' as zulu, '{now}'::timestamptz[] = array[now()] as listed
select 'now 10:00'::timestamptz
select 'now today'::timestamptz
select 'today'::time
set timezone = 'Europe/Berlin'
select pg_get_viewdef('v_typed'::regclass)
select pg_get_viewdef('v_listed'::regclass)
select pg_get_viewdef('v_arrays'::regclass)
select pg_get_viewdef('v_unnamed'::regclass)
select pg_get_viewdef('v_timetz'::regclass)
select pg_get_viewdef('v_run'::regclass)
select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'k'::regclass order by 1
select attname, pg_get_expr(adbin, adrelid) from pg_attrdef join pg_attribute on attrelid = adrelid and attnum = adnum where adrelid = 'k'::regclass order by attnum
select indexdef from pg_indexes where tablename = 'k' order by 1
# meridian
# A literal that is of two types has no one text; one between steps of time has.
create view v_two as select id from e where '2025-06-01' in (d, ts)
create table steps (ts timestamptz default timestamptz '2025-06-01' + '1 month', check (ts < '2025-06-01'::timestamptz + interval '1-2' year to month))
select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'steps'::regclass
