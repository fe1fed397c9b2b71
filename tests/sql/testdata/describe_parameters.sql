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
