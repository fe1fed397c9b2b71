-- literals
select '{1,2,3}'::int[], '{}'::int[], '{NULL}'::int[], '{null, 5 }'::int[], ' { 1 , 2 } '::int4[]
select '{a,b c," d ","","NULL",null,"q\"u","b\\s",x\,y}'::text[]
select '{1.5,-0.25,1e3}'::numeric[], '{1.5,NaN,Infinity,-0}'::float8[], '{0.1,1e10}'::float4[]
select '{t,f,yes,off}'::bool[], '{2024-01-31,1999-12-31}'::date[], '{"2024-01-31 10:00:00.5"}'::timestamp[]
select '{"2024-01-31 10:00:00+02"}'::timestamptz[], '{"1 day 02:00","-3 mons"}'::interval[]
select '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'::uuid[], '{"\\x00ff","\\\\x61"}'::bytea[]
select '{abc,de}'::varchar(2)[], '{abc,de}'::char(5)[], '{1.256,2}'::numeric(5,2)[], '{x}'::name[], '{5}'::oid[]
select '{1,2'::int[]
select '1,2}'::int[]
select '{1,2}x'::int[]
select '{1,,2}'::int[]
select '{1,}'::int[]
select '{,1}'::int[]
select '{a"b}'::text[]
select '{"a"b}'::text[]
select '{"a" "b"}'::text[]
select '{"a'::text[]
select '{a b}'::text[], '{ a\ }'::text[], '{a\}'::text[]
select '{a\'::text[]
select ''::int[]
select '{'::int[]
select '{{1,2},{3}}'::int[]
select '{{1},2}'::int[]
select '{1,{2}}'::int[]
select '{{}}'::int[], '{{},{}}'::int[]
select '{x}'::int[]
select '{1.5}'::int[]
select '{99999999999}'::int[]
select '[1:2]={1,2}'::int[], '[1]={7}'::int[]
select '[1:3]={1,2}'::int[]
select '[2:1]={1}'::int[]
select '[1:2={1,2}'::int[]
select '[]={1}'::int[]
select '[1:]={1}'::int[]
select '[1:2]{1,2}'::int[]
select '[1:2]=1,2'::int[]
select '{{1,2},{3,4}}'::int[]
select '[0:1]={1,2}'::int[]
select '{1}{2}'::int[]
select '{{{{{{{1}}}}}}}'::int[]
select '{(,)}'::text[]
select '{"2024-13-01"}'::date[]
-- constructors
select array[1,2,3], array[1,null], array['a','b'], array[null], array[1,2.5], array[1.50,2]
select array[1,'2'], array['1',2], array[true,null], array[date '2024-01-01', null]
select array[]::int[], array[]::text[], array['1','2']::int[], array[1,2]::text[], array[1.7,2.2]::int[]
select array[]
select array[1,'x']
select array[1,true]
select array[array[1,2],array[3,4]]
select array[[1,2],[3,4]]
select array(select x from (values (3),(1),(2)) v(x) order by x)
select array(select x from (values (3),(1),(2)) v(x) order by x desc limit 2)
select array(select x from (values (3)) v(x) where x > 5), array(select null::text)
select x, array(select y from (values (1),(2),(3)) w(y) where y <= x order by y) from (values (1),(2),(0)) v(x) order by x
select array(select 1, 2)
-- subscripts and slices
select (array[10,20,30])[1], (array[10,20,30])[3], (array[10,20,30])[0], (array[10,20,30])[4], (array[10,20,30])[-1], (array[10,20,30])[null]
select ('{a,b}'::text[])[2], (null::int[])[1], (array[1.5,2.5])[2], (array['x','y'])['1']
select (array[1,2,3])[2:3], (array[1,2,3])[:2], (array[1,2,3])[2:], (array[1,2,3])[:], (array[1,2,3])[3:2], (array[1,2,3])[0:9], (array[1,2,3])[-5:-1], (array[1,2,3])[5:]
select (array[1,2,3])[null:2], (array[1,2,3])[1:null], (null::int[])[1:2]
select (array[1,2])['x']
select (array[1,2])[1.5]
select (array[1,2])[true]
select (5)[1]
select ('abc'::text)[1]
select x[2], x[1:1] from (values (array[1,2]), (array[]::int[]), (null)) v(x)
-- comparison
select array[1,2] = array[1,2], array[1,2] = array[1,2,3], array[1,null] = array[1,null], array[1] <> array[2], array[]::int[] = '{}'
select array[1,2] < array[1,3], array[1,2] < array[1,2,0], array[1,null] > array[1,9], array[null]::int[] >= array[1], array[2] > array[1,5]
select array['a','B'] < array['a','b'], array[1.50] = array[1.5], array['NaN'::float8] = array['NaN'::float8], array[-0.0::float8] = array[0.0::float8]
select array[1,2] = '{1,2}', '{1,2}' = array[1,2], array['a'] = '{a}', null::int[] = array[1]
select array[1] = array['a']
select array[1] = array[1::int8]
select array[1,2] = 1
select array[1,2] = '{1'
select array['1 month'::interval] = array['30 days'::interval], array['a'::char(3)] = array['a'::char(5)]
select greatest(array[1,2], array[1,3]), least(array['b'], array['a'], null)
select array[1] is distinct from null, array[1] is not distinct from array[1], array[1] in (array[2], array[1])
select x from (values (array[2]), (array[1,null]), (array[1,5]), (null), (array[]::int[]), (array[null::int])) v(x) order by x
select x from (values (array[2]), (array[1,null]), (array[1,5]), (null), (array[]::int[])) v(x) order by x desc
select x, count(*) from (values (array[1,2]), (array[1,2]), (array[1,null]), (array[1,null]), (null), (null)) v(x) group by x order by x
select distinct x from (values (array['a']), (array['a']), (array[]::text[])) v(x) order by x
select count(distinct x) from (values (array[1]), (array[1]), (array[2]), (null)) v(x)
select array[1] union select array[1] union select array[2] order by 1
select array[1] union all select array[1.5] order by 1
select case when true then array[1] else array[2.5] end, coalesce(null, array[1]), nullif(array[1], array[1])
select array[1] union select array['a']
-- containment
select array[1,2,3] @> array[1], array[1] @> array[1,1], array[1,2] @> '{}', array[1,null] @> array[null]::int[], array[1] <@ array[1,2], '{}' <@ array[1], array[1,2] && array[2,3], array[1] && '{}', array[null]::int[] && array[null]::int[]
select array['a','b'] @> array['a'], array['a'::text] && '{b,c}', null::int[] @> array[1], array[1.5] <@ array[1.50,2]
select array[1] @> array['a']
select array[1] && 1
-- any, all
select 1 = any(array[1,2]), 3 = any(array[1,2]), 3 = any(array[1,null]), null = any(array[1]), 1 = any('{}'::int[]), null = any('{}'::int[]), 1 = any(null::int[])
select 1 <> all(array[1,2]), 3 <> all(array[1,2]), 3 <> all(array[1,null]), 1 = all('{}'::int[]), 1 > all(array[0,-1]), 1 < any(array[0,null]), 5 >= all('{1,2,5}')
select x = any(y), x <> all(y), x < any(y), x >= all(y) from (values (1, array[1,2]), (3, array[1,null]), (null, array[1]), (1, '{}'), (1, null)) v(x, y)
select x from (values (1),(2),(3),(null)) v(x) where x = any('{1,3}')
select x from (values (1),(2),(3),(null)) v(x) where x <> all('{1,3}')
select x from (values ('a'),('b'),('c')) v(x) where x = any(array['a','c']::text[])
select x from (values ('a'),('b%'),('cab')) v(x) where x like any(array['a%','%b'])
select 'abc' ilike all(array['A%','%C']), 'abc' not like all(array['b%'])
select 1.5 = any(array[1,2]), 1 = any(array[1.0,2.5]), 1::int8 = any(array[1,2]), '1' = any(array[1,2]), 2 = any('{1,2}'::int8[])
select '2024-01-01' = any(array[date '2024-01-01']), timestamp '2024-01-01' = any(array[date '2024-01-01'])
select 'a'::varchar = any('{a,b}'), 'a'::char(3) = any('{a,b}'::char(5)[]), 1.10::numeric(5,2) = any('{1.1}'::numeric[])
select 1 = any(5)
select 1 = any('x')
select 'a' = any(array[1])
select 1 + any(array[1])
select 1 = any(array['a','b'])
select true = any(array[1])
select 5 = any(array(select x from (values (4),(5)) v(x)))
select array[1] = any('{}')
-- functions
select array[1,2] || array[3], array[1,2] || 3, 0 || array[1,2], array[1] || null::int[], null || array[1], array[1] || null, null::int[] || 5, array[]::int[] || array[]::int[]
select array[1,2] || '{3,4}', '{3,4}' || array[1], array[1] || 2.5, array['a'] || 'b'::text, array['a','b'] || array['c']
select array['a'] || 'b'
select array[1] || '3'
select array[1] || 'x'::text
select array[1] || array['a']
select 'x' || array['a'::text]
select array_append(array[1,2],3), array_append(null,3), array_append(array[1],null), array_append('{}'::text[],'x'), array_append(array[1],2.5)
select array_prepend(0,array[1]), array_prepend(null,array[1]), array_prepend(1,null), array_cat(array[1],array[2]), array_cat(null,array[2]), array_cat(null::int[],null)
select array_remove(array[1,2,1,null],1), array_remove(array[1,null],null), array_remove(null::int[],1), array_remove(array[1],5), array_replace(array[1,2,1],1,9), array_replace(array[1,null],null,0), array_replace(array[1],1,null)
select array_position(array['a','b','a'],'a'), array_position(array['a','b','a'],'a',2), array_position(array[1,null],null), array_position(array[1],5), array_position(null::int[],1), array_position(array[1,2,1],1,-5), array_position(array[1,2],1,9)
select array_position(array[1],1,null)
select array_positions(array[1,2,1],1), array_positions(array[1],9), array_positions(array[null,1],null), array_positions(null::int[],1)
select array_length(array[1,2],1), array_length('{}'::int[],1), array_length(array[1],2), array_length(array[1],0), array_length(null::int[],1), array_length(array[1],null)
select array_upper(array[1,2],1), array_lower(array[1,2],1), array_lower('{}'::int[],1), array_upper(array[1],2), array_ndims(array[1]), array_ndims('{}'::int[]), array_dims(array[1,2,3]), array_dims('{}'::int[]), cardinality(array[1,2]), cardinality('{}'::int[]), cardinality(null::int[])
select array_length(null,1)
select array_length(5,1)
select cardinality('{1,2}')
select array_to_string(array[1,2,null,3],','), array_to_string(array[1,null],',','*'), array_to_string('{}'::int[],','), array_to_string(array['a','b'],''), array_to_string(array['a','b'],null), array_to_string(array[1.5,2],'|'), array_to_string(array[true,false],','), array_to_string(array['x',null],'-',null), array_to_string(null::int[],',')
select array_to_string(array[date '2024-01-01'],','), array_to_string(array[1.5::float8,1e20],';'), array_to_string(array['a"b','{}'],',')
select string_to_array('a,b,c',','), string_to_array('',','), string_to_array('abc',null), string_to_array('abc',''), string_to_array(null,','), string_to_array('a,,b',',',''), string_to_array('xx--yy--','--'), string_to_array('a,NULL,b',',','NULL'), string_to_array('a.b.c','.'), string_to_array('','x','')
select array_fill(7,array[3]), array_fill('x'::text,array[2]), array_fill(null::int,array[2]), array_fill(1,array[0]), array_fill(1,'{}'), array_fill(7,array[2],array[1])
select array_fill(1,array[-1])
select array_fill(1,null)
select array_fill(1,array[null]::int[])
select array_fill(1,array[2,2])
select array_fill(1,array[2],array[5])
select array_fill(null,array[2])
select trim_array(array[1,2,3],1), trim_array(array[1,2,3],3), trim_array(array[1],0), trim_array(null::int[],1)
select trim_array(array[1],2)
select trim_array(array[1],-1)
select array_reverse(array[1,2,3]), array_reverse('{}'::int[]), array_reverse(array[null,'a'])
select array_sort(array[3,1,null,2]), array_sort(array['b','a'], true), array_sort(array[3,null,1], true, false), array_sort(array[1,null], false, true)
select array_foo(array[1])
select array_append(1,2)
select array_append(array[1],'x')
select array_append(array[1],'x'::text)
select array_cat(array[1],array['a'])
-- casts
select array[1,2]::int8[], array[1,2]::text[], array['1','2']::int[], array[1,2]::float8[], array[1.26,2]::numeric(5,1)[], array['abc']::varchar(2)[], array[1,2]::text, array[true,null]::text, '{1,2}'::text::int[], array['a b']::varchar
select array[1.5]::int[], array[null]::int[], null::int[], cast('{1}' as integer[]), array[1,2]::_int8, '{1}'::integer[][], '{1}'::int[3]
select array['x']::int[]
select array[1]::int
select 1::int[]
select array[1]::date[]
select array[300000]::int2[]
select array[1]::nope[]
select '{1}'::nope
select array['2024-01-01']::date[]::timestamp[], array[timestamp '2024-01-01 10:00']::date[]
select array[timestamptz '2024-01-01 10:00+00']::text[], array[timestamptz '2024-01-01 10:00+00']::timestamp[]
select array['a'::char(3)]::text[], array[1::int2, 2::int8]
-- aggregates
select array_agg(x) from (values (1),(2),(null)) v(x)
select array_agg(x order by x desc), array_agg(distinct x), array_agg(x) filter (where x > 1) from (values (1),(2),(2),(null)) v(x)
select array_agg(x) from (values (1)) v(x) where x > 5
select g, array_agg(x order by x) from (values (1,'b'),(1,'a'),(2,null)) v(g,x) group by g order by g
select array_agg(n order by n) from (values (1.50),(2.25)) v(n)
select array_agg(distinct x order by x desc) from (values ('a'),('b'),('a'),(null)) v(x)
select array_agg(x) from (values (array[1]),(array[2])) v(x)
select array_agg(null)
select array_agg(d order by d) from (values (date '2024-02-01'),('2024-01-01')) v(d)
select array_length(array_agg(x), 1), cardinality(array_agg(x)) from (values (1),(2)) v(x)
select array_to_string(array_agg(x order by x), ',') from (values ('b'),('a')) v(x)
-- concat and text functions with arrays
select concat(array[1,2], 'x'), concat_ws('-', array['a b'], null, 1), 'x' || array[1,2]::text, length(array[1]::text)
select min(x), max(x) from (values (array[2,1]),(array[1,9]),(null)) v(x)
