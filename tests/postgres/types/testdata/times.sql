select '10:00'::time, '10:00:01.5'::time, '24:00:00'::time, '00:00'::time, '23:59:60'::time, '10:59:60'::time, '1:2:3'::time, '040506'::time, '0405'::time, '04:05 PM'::time, '12:00 am'::time, '12:30 pm'::time, 'allballs'::time, ' 10:00 '::time, '10:00:00.9999999'::time, '10:00:00.1234565'::time
select '10:00+02'::time, '10:00:00Z'::time, '10:00 UTC'::time, '2024-01-31 10:00:05'::time, '10:00-05:30'::time, '040506.789'::time, 'T04:05:06'::time
select '25:00'::time
select '10:60'::time
select '10:00:61'::time
select '24:00:01'::time
select '13:00 pm'::time
select 'abc'::time
select ''::time
select '10'::time
select '10:00:00:00'::time
select '-10:00'::time
select '2024-01-31'::time
select time '10:00' < time '10:01', time '10:00' = '10:00:00', '24:00'::time > '23:59:59.999999', time '10:00' between '09:00' and '11:00'
select time '10:00' + interval '1 day 15 hours', time '10:00' - interval '11 hours', interval '30 min' + time '10:00', time '10:00' - time '11:30', date '2024-01-31' + time '10:00', time '10:00' + date '2024-01-31', time '24:00' + interval '0'
select extract(hour from time '10:11:12.5'), extract(minute from time '10:11:12.5'), extract(second from time '10:11:12.5'), extract(milliseconds from time '10:11:12.5'), extract(microseconds from time '10:11:12.5'), extract(epoch from time '10:11:12.5'), date_part('hour', time '10:11'), date_part('second', time '10:11:12.5')
select extract(day from time '10:00')
select extract(nope from time '10:00')
select make_time(10, 11, 12.5), make_time(24, 0, 0), make_time(0,0,0), make_time(null,0,0)
select make_time(25, 0, 0)
select make_time(10, 60, 0)
select make_time(10, 0, 61.5)
select time '10:00'::text, '10:00'::text::time, time '10:00'::interval, interval '1 day 02:03'::time, interval '-1 hour'::time, timestamp '2024-01-31 10:11:12.5'::time, timestamptz '2024-01-31 10:11:12+00'::time
select time '10:00'::int
select 5::time
select time '10:00'::timestamp
select date '2024-01-01'::time
select x from (values (time '10:00'), ('09:00'), (null), ('24:00')) v(x) order by x desc
select min(x), max(x), count(distinct x) from (values (time '10:00'), ('09:00'), (null), ('24:00'), ('09:00:00')) v(x)
select x, count(*) from (values (time '10:00'), ('10:00')) v(x) group by x
select array[time '10:00', null], '{10:00,"11:00:00.5"}'::time[], array_agg(x order by x) from (values (time '11:00'), ('10:00')) v(x)
select greatest(time '10:00', '11:00'), coalesce(null, time '10:00'), time '10:00' in ('10:00', '11:00')
select to_json(time '10:00'), jsonb_build_object('t', time '10:00:00.5')
select time(6) '10:00', cast('10:00' as time without time zone)
select '10:00'::time - '09:00'
