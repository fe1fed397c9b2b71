select $1
select $1::int
select $1::text, $2::varchar(5), $3::numeric(5,2)
select $1 + 1
select 1 + $1, 1.5 + $2
select $1 || 'x'
select $1 || $2
select $1 = $2
select a from t where a = $1
select a from t where b = $1 and n > $2 and d = $3 and uid = $4 and f < $5 and o = $6
select a from t where v = $1
select a from t where c = $1
select a from t where a = $1 or l = $1
select a from t where a in ($1, $2)
select a from t where a between $1 and $2
select a from t where b like $1
select a from t limit $1 offset $2
select coalesce($1, 1), coalesce(b, $2) from t
select case when $1 then 1 else $2 end
select $1 is null
select $1::int is null
select $1, $1::int
select $1::int, $1
select $1::int, $1::text
select $2
select $1 + $2
select $1::int + $2
select lower($1), length($2), abs($3)
select sum($1::int)
select -$1
select not $1
select $1 and $2
select a from t where $1
select a + $1, l + $2, n * $3, f / $4, d + $5, ts - $6 from t
select $1 union select 1
select 1 union select $1
select $1 union select $2
values ($1, 1), (2, $2)
select a from t where a = any (select $1)
select (select $1)
select * from (select $1 as p) s
select $1::date + 1, $2::timestamp - interval '1 day'
select extract(year from $1::date)
select substring($1 from 1 for 2), substring($1::text from $2), trim($3), position($1 in $2)
select $0
select date_trunc('day', $1)
select round($1, 2)
select concat($1, $2)
select greatest($1, 1.5)
select nullif($1, 1), nullif($2, 'x')
select $1 is distinct from 1
select a from t group by a having count(*) > $1
select a from t order by $1
select cast($1 as bigint), $2::smallint, $3::bool, $4::bytea, $5::uuid, $6::timestamptz
select a from t where $1 is null or a = $1
select a from t where a = $1 or $1 is null
select a from t where ($1 is null or a = $1) and ($2 is null or b = $2)
select a from t where $1::int is null or a = $1
select $1, $2
select 1 + $1
select @ $1
select extract(year from $1)
select case when $1 then 1 else 2 end
select case $1 when 1 then 'a' else 'b' end
select case $1 when 'a' then 1 else 2 end
select coalesce($1, 1)
select coalesce($1, $2)
select nullif($1, 1)
select nullif($1, $2)
select greatest($1, 1, 2.5)
select greatest($1, $2)
select row($1, 1)
select row($1, $2)
select ($1, 1) = (1, $2)
select array[$1]
select array[$1, 1]
select array[$1, $2]
select array[$1]::int[]
select ($1::int[])[$2]
select $1::regclass
select $1::regtype
select $1::regnamespace
select $1::regrole
select $1::oid
select $1::regclass::oid
select 'g'::regclass = $1
select oid from pg_class where oid = $1
select oid from pg_class where oid = $1::regclass
select relname from pg_class where relname = $1
select attname from pg_attribute where attrelid = $1 and attnum > $2
select attname from pg_attribute where attrelid = $1::regclass
select pg_get_indexdef($1)
select format_type($1, $2)
select has_table_privilege($1, $2)
select current_setting($1)
select set_config($1, $2, $3)
select $1::date + 1
select $1::numeric(10,2)
select $1::varchar(3)
select $1::char(3)
select $1::timestamp(3)
select cast($1 as text)
select $1::json -> 'a'
select $1::jsonb ->> $2
select limit_ from (select 1 as limit_) s limit $1 offset $2
select sum($1)
select max($1)
select min($1::date)
select count($1)
select count(distinct $1)
select string_agg($1, ',')
select array_agg($1)
select array_agg($1::int)
select avg($1)
select json_agg($1)
select json_build_object($1, $2)
select json_build_object('a', $1)
select jsonb_build_array($1, $2)
select to_json($1)
select to_jsonb($1::int)
select concat('a', $1)
select concat_ws($1, $2, 'x')
select format($1, $2)
select format('%s', $1)
select lower($1)
select length($1)
select upper($1) || lower($2)
select substring($1 from $2 for $3)
select substring($1, $2)
select position($1 in $2)
select overlay($1 placing $2 from $3)
select trim($1)
select trim(both $1 from $2)
select replace($1, $2, $3)
select split_part($1, $2, $3)
select left($1, $2)
select lpad($1, $2, $3)
select repeat($1, $2)
select md5($1)
select abs($1)
select round($1)
select round($1, $2)
select ceil($1)
select sqrt($1)
select power($1, 2)
select mod($1, 2)
select $1 % 2
select $1 / 2
select $1 / 2.0
select $1 * 1.5
select 2 ^ $1
select $1 << 2
select $1 & 1
select $1 = 1
select $1 < 'a'
select $1 = true
select $1 is true
select $1 is distinct from $2
select $1 in (1, 2)
select $1 in ('a', 'b')
select (select $1::int)
select * from (select $1 as x) s
select x + 1 from (select $1 as x) s
select x || 'a' from (select $1 as x) s
with c as (select $1 as x) select x from c
with c as (select $1 as x) select x + 1 from c
with c(x) as (values ($1)) select x from c
values ($1, $2)
values ($1), (1)
values (1), ($1)
values ($1), ('a')
values ($1), ($2)
select $1 union all select 'a'
select $1 union select null
select null union select $1
select * from generate_series($1, $2)
select * from generate_series(1, $1)
select * from generate_series($1::timestamp, $2, $3)
select * from generate_series($1::date, $2, '1 day')
select * from unnest($1::int[])
select * from unnest($1::int[], $2::text[]) as t(a, b)
select * from json_to_recordset($1) as x(a int)
select * from jsonb_array_elements($1)
select * from json_each_text($1)
select * from string_to_table($1, $2)
select row_number() over (order by $1)
select to_char($1, 'YYYY')
select to_date($1, $2)
select to_timestamp($1)
select to_timestamp($1, $2)
select make_date($1, $2, $3)
select make_interval(days => $1)
select now() - $1
select now() + $1
select current_date + $1
select current_date - $1
select current_date + $1 * interval '1 day'
select interval '1 day' * $1
select $1 * interval '1 day'
select $1::interval
select date '2024-01-01' + $1::interval
select justify_days($1)
select ($1, $2) overlaps (date '2024-01-01', date '2024-02-01')
select $1 at time zone 'UTC'
select $1 at time zone $2
select encode($1, 'hex')
select decode($1, $2)
select array_length($1, 1)
select array_append($1, 1)
select array_cat($1, array[1])
select array_position($1, $2)
select cardinality($1)
select array_to_string($1, ',')
select string_to_array($1, ',')
select $1 = any(array[1,2])
select $1 = any('{1,2}')
select 1 = any($1)
select 'a' = any($1)
select $1 = any($2)
select any_value($1)
select bool_and($1)
select generate_subscripts($1, 1)
select pg_typeof($1)
select quote_literal($1)
select quote_ident($1)
select regexp_replace($1, $2, $3)
select $1 ~ 'a'
select $1 ~~ 'a'
select translate($1, $2, $3)
select ascii($1), chr($2)
select to_hex($1)
select width_bucket($1, 0, 10, $2)
select random($1, $2)
select pg_sleep($1)
select gen_random_uuid(), $1::uuid
select $2::int
select $1::int, $3::text
select $1 as x order by x
select $1 as x group by x
select distinct $1
select $1[1]
select $1::int[] = $2
select $1 <> all($2::text[])
select $1 collate "C"
select json_value($1, '$.a')
select json_query($1::jsonb, '$.a' passing $2 as x)
select json_array($1, $2)
select json_object('a': $1)
select $1 is json
select json($1)
select grouping($1)
select overlay('abc' placing $1 from 2)
select $1 || 1
