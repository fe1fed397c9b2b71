select interval '1 month' = interval '30 days', interval '1 month -1 day' = interval '29 days', interval '1 day' < interval '25 hours', interval '-1 month' < interval '0', interval '1 year' > interval '359 days', interval '1 mon' <> interval '720 hours'
select x from (values (interval '1 month'), (interval '29 days'), (interval '721 hours'), (null), (interval '-1 day')) v(x) order by x
select x from (values (interval '1 month'), (interval '29 days'), (null), (interval '-1 day')) v(x) order by x desc nulls last
select min(x), max(x), count(x), count(distinct x) from (values (interval '1 month'), (interval '30 days'), (interval '29 days'), (null)) v(x)
select count(*) from (values (interval '1 month'), (interval '30 days'), (interval '29 days'), (null)) v(x) group by x order by 1 desc
select distinct x from (values (interval '1 day'), (interval '1 day'), (null), (interval '2 days')) v(x) order by x
select x, sum(n) from (values (interval '1 day', 1), (interval '1 day', 2), (null, 3)) v(x, n) group by x order by x
select x in (interval '30 days', interval '1 day'), x = any(array[interval '30 days']), x is distinct from interval '720 hours' from (values (interval '1 month'), (interval '2 days'), (null)) v(x)
select sum(x), avg(x) from (values (interval '1 day'), (interval '3 days')) v(x)
select interval '1 month' + interval '1 day', interval '1 day' - interval '1 hour', interval '1 day' * 2, interval '3 days' / 2, - interval '1 month', 1.5 * interval '1 hour'
select timestamp '2024-03-31 10:00' - timestamp '2024-02-28 12:30', timestamp '2024-01-01' - timestamp '2024-01-02 00:00:01', timestamptz '2024-03-31 10:00+00' - timestamptz '2024-03-30 10:00+00'
select date '2024-01-31' + interval '1 month', timestamp '2024-01-31 10:00' - interval '1 month 1 day 1 hour', timestamptz '2024-01-31 10:00+00' + interval '36 hours'
select interval '178000000 years', interval '2562047788 hours'
select interval '1 day'::text, '1 day 02:03:04.5'::interval, interval '1-2', interval '1 2:03', interval 'P1Y2M3DT4H5M6S', interval '-1 mon +2 days -03:00'
select coalesce(null, interval '1 day'), case when true then interval '1 day' else interval '2 days' end, nullif(interval '1 mon', interval '30 days'), greatest(interval '1 mon', interval '29 days')
select array[interval '1 day', null], array_agg(x order by x) from (values (interval '2 days'), (interval '1 day')) v(x)
select row_number() over (partition by x order by x), x from (values (interval '30 days'), (interval '30 days'), (interval '1 day')) v(x) order by 2, 1
select interval '1 day' union all select interval '2 days'
select interval '1 day' union select interval '1 day'
select a.x from (values (interval '1 mon')) a(x) join (values (interval '30 days')) b(y) on a.x = b.y
select extract(epoch from interval '1 month 1 day 1 hour'), extract(month from interval '14 months'), extract(day from interval '1 mon 40 days')
