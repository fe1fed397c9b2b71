-- input
select '{"b":1,"a":[1.0, 2e2,-0, {"c":null}], "a":"x\u00e9\n"}'::json, '{"b":1,"a":[1.0, 2e2,-0, {"c":null}], "a":"x\u00e9\n"}'::jsonb
select '{"b":1, "aa":[1.0, 2e2,-0,1E-3, {"c":null}], "a":"x\u00e9\n\/"}'::jsonb, ' [ ] '::json, ' [ ] '::jsonb, '{}'::jsonb, '"a"'::jsonb, ' 1.50 '::jsonb, 'null'::jsonb, 'true'::jsonb, '[1,2,"x"]'::jsonb
select '{"a":'::json
select '{"a" 1}'::jsonb
select '[1,]'::json
select '{,}'::json
select 'tru'::json
select '01'::json
select '1.'::json
select '1.5x'::json
select '"abc'::json
select '"a\x"'::json
select '"\u00g0"'::json
select '"\u00'::json
select '[1 2]'::json
select '1 2'::json
select ''::json
select ' '::jsonb
select '{"a":1,}'::json
select '-'::json
select '1e'::json
select '1e+'::json
select '-a'::json
select '.5'::json
select '+1'::json
select 'nan'::json
select '{"a":1}x'::json
select '{a:1}'::json
select '{''a'':1}'::json
select '{"a":1'::json
select '["a"'::json
select '{"a":}'::json
select '[}'::json
select '{1:2}'::json
select '"\ud800"'::json, '"\u0000"'::json
select '"\ud800"'::jsonb
select '"\ude00"'::jsonb
select '"\ud800\ud800"'::jsonb
select '"\u0000"'::jsonb
select '"\ud83d\ude00"'::jsonb, '"a\tb\\\"\u001f\u007f"'::jsonb, '{"é":1,"z":2,"aaa":3}'::jsonb
select '1e200000'::jsonb
select '1e99999999999999999999999'::jsonb
select '1e-99999999999999999999999'::jsonb
select '1e99999999999999999999999'::json::text
select '{"a": 1e200000, "a": 1}'::jsonb
select '["\ud800", {"a": 1e-20000, "a": 1}]'::jsonb
select '{"a": 1e-20000, "a": "\u00e4"}'::jsonb
select '[{"a": 1e-20000}, tru]'::jsonb
select '{"a": 1e200000, "a": 1'::jsonb
select '{"a": 1e200000, "a": 1}'::json::jsonb
select '"\u0000"'::json::jsonb
select to_jsonb('"\ud800"'::json)
select to_jsonb('{"a": 1e200000, "a": 1}'::json)
select jsonb_build_array('{"a": 1, "a": 1e200000}'::json)
select '{"a": 1e200000, "a": 1}'::json
select '[[[[[]]]]]'::jsonb, '{"a":{"b":{"c":[{}]}}}'::jsonb
select 'true '::json::text, '{"a" : 1}'::json::text, '{"a":1}'::jsonb::text, '[1, 2]'::text::jsonb, '{"x":1,"x":2}'::json::jsonb, '{"x" : 1}'::jsonb::json
select json '[1]', jsonb '{"a":1}', null::json, null::jsonb
-- getting
select '{"a":{"b" : 1}}'::json -> 'a', '{"a":{"b" : 1}}'::jsonb -> 'a', '{"a":1}'::json -> 'x', '[1,{"a":2},"x"]'::json -> 1, '[1,{"a":2},"x"]'::jsonb -> -1, '[1]'::jsonb -> 5, '{"a":1}'::jsonb -> 0, '[1]'::jsonb -> 'a', '1'::jsonb -> 'a', '"x"'::jsonb -> 0
select '{"a":"x\"y\u00e9"}'::json ->> 'a', '{"a":"x\"y"}'::jsonb ->> 'a', '{"a":null}'::json ->> 'a', '{"a":null}'::jsonb -> 'a', '{"a":null}'::jsonb ->> 'a', '{"a":1.50}'::json ->> 'a', '{"a":1.50}'::jsonb ->> 'a', '{"a":[1, 2]}'::json ->> 'a', '{"a":[1,2]}'::jsonb ->> 'a', '[true]'::jsonb ->> 0, '[1e2]'::json ->> 0, '{"a":1,"a":2}'::json -> 'a'
select '{"a":{"b":[1,{"c":"d"}]}}'::json #> '{a,b,1,c}', '{"a":{"b":[1,{"c":"d"}]}}'::jsonb #> '{a,b,1,c}', '{"a":{"b":[1,{"c":"d"}]}}'::jsonb #>> '{a,b,1,c}', '{"a":{"b":[1,{"c":"d"}]}}'::json #>> '{a,b,-1}', '{"a":1}'::jsonb #> '{}', '{"a":1}'::jsonb #> '{a,b}', '[1,2]'::jsonb #> '{x}', '{"1":5}'::jsonb #> '{1}', '{"a":1}'::jsonb #>> '{b}', '{"a":1}'::jsonb #> array['a',null]
select null::jsonb -> 'a', '{"a":1}'::jsonb -> null, '{"a":1}'::jsonb ->> null::text
select json_extract_path('{"a":{"b":2}}', 'a', 'b'), jsonb_extract_path('{"a":{"b":2}}', 'a'), json_extract_path_text('{"a":{"b":"x"}}', 'a', 'b'), jsonb_extract_path_text('{"a":[5]}', 'a', '0')
select ('{"a":{"b":[10,20]}}'::jsonb)['a'], ('{"a":{"b":[10,20]}}'::jsonb)['a']['b'][1], ('[1,2,3]'::jsonb)[0], ('[1,2,3]'::jsonb)[-1], ('{"a":1}'::jsonb)['x'], ('[1]'::jsonb)['0']
select ('{"a":1}'::json)['a']
select ('{"a":1}'::jsonb)[1.5]
select ('{"a":1}'::jsonb)[1:2]
select x -> 'a' -> 'b' ->> 0, x @> '{"a":{}}' from (values ('{"a":{"b":[7]}}'::jsonb), ('{"a":1}'), (null)) v(x)
select '[1,2]' -> 0
select 1 -> 'a'
-- containment and existence
select '{"a":1,"b":2}'::jsonb @> '{"a":1}', '[1,2,[3,4]]'::jsonb @> '[[3]]', '[1,2]'::jsonb @> '1', '1'::jsonb @> '1', '1'::jsonb @> '[1]', '{"a":[1,2]}'::jsonb @> '{"a":[2]}', '{"a":{"b":1}}'::jsonb @> '{"a":{}}', '[1]'::jsonb @> '[1,1]', '{}'::jsonb @> '[]', '[]'::jsonb @> '{}', '[1]'::jsonb <@ '[1,2]', '{"a":1.0}'::jsonb @> '{"a":1}', '["x"]'::jsonb @> '"x"', '[[1]]'::jsonb @> '1', '{"a":null}'::jsonb @> '{"a":null}', '[{"a":1,"b":2}]'::jsonb @> '[{"a":1}]'
select '{"a":1}'::jsonb ? 'a', '["a"]'::jsonb ? 'a', '"a"'::jsonb ? 'a', '{"a":{"b":1}}'::jsonb ? 'b', '[1]'::jsonb ? '1', '{"a":1}'::jsonb ?| array['x','a'], '{"a":1}'::jsonb ?& array['x','a'], '{"a":1}'::jsonb ?& '{}', '{"a":1}'::jsonb ?| '{}', '{"a":1,"b":2}'::jsonb ?& array['a','b'], '{"a":1}'::jsonb ?| array[null,'a'], '{"a":1}'::jsonb ?& array[null,'a']
-- changing
select '{"a":1}'::jsonb || '{"b":2,"a":3}', '[1]'::jsonb || '[2]', '[1]'::jsonb || '2', '1'::jsonb || '[2]', '{"a":1}'::jsonb || '[2]', '[1]'::jsonb || '{"a":2}', '1'::jsonb || '2', '{}'::jsonb || '[]', '[]'::jsonb || '{}', '{"a":1}'::jsonb || '2', '{"a":1}'::jsonb || null, '[]'::jsonb || '[]', '{}'::jsonb || '{}'
select '{"a":1,"b":2}'::jsonb - 'a', '["a","b",1]'::jsonb - 'a', '[1,2,3]'::jsonb - 1, '[1,2,3]'::jsonb - -1, '[1]'::jsonb - 7, '{"a":1,"b":2,"c":3}'::jsonb - '{a,c}'::text[], '["a","b"]'::jsonb - array['a'], '{}'::jsonb - 'a'
select '1'::jsonb - 'a'
select '{"a":1}'::jsonb - 1
select '"a"'::jsonb - 1
select '{"a":{"b":1,"c":2}}'::jsonb #- '{a,b}', '[1,[2,3]]'::jsonb #- '{1,0}', '{"a":1}'::jsonb #- '{x}', '{"a":1}'::jsonb #- '{}', '[1,2]'::jsonb #- '{-1}', '{"a":1}'::jsonb #- '{a,b}'
select '1'::jsonb #- '{a}'
select '[1]'::jsonb #- '{x}'
select jsonb_set('{"a":1}', '{a}', '2'), jsonb_set('{"a":1}', '{b}', '2'), jsonb_set('{"a":1}', '{b}', '2', false), jsonb_set('[1,2]', '{0}', '"x"'), jsonb_set('[1,2]', '{5}', '9'), jsonb_set('[1,2]', '{-5}', '9'), jsonb_set('[1,2]', '{-1}', '9'), jsonb_set('{"a":{"b":1}}', '{a,c}', '[1]'), jsonb_set('{"a":{"b":1}}', '{x,c}', '1'), jsonb_set('{"a":1}', '{a,b}', '1'), jsonb_set('{}', '{a}', '1', false), jsonb_set('[]', '{0}', '1'), jsonb_set('{"a":1}', '{}', '2'), jsonb_set(null, '{a}', '1'), jsonb_set('{"a":1}', '{a}', null)
select jsonb_set('1', '{a}', '2')
select jsonb_set('[1]', '{x}', '2')
select jsonb_set('[1]', '{1x}', '2')
select jsonb_set('{"a":1}', array[null], '2')
select jsonb_set('{"a":[1]}', '{a,b}', '2')
select jsonb_insert('{"a":[0,1]}', '{a,1}', '"x"'), jsonb_insert('{"a":[0,1]}', '{a,1}', '"x"', true), jsonb_insert('{"a":1}', '{b}', '2'), jsonb_insert('[1,2]', '{-1}', '9'), jsonb_insert('[1,2]', '{-1}', '9', true), jsonb_insert('[1]', '{9}', '2'), jsonb_insert('[]', '{0}', '1')
select jsonb_insert('{"a":1}', '{a}', '2')
select jsonb_set_lax('{"a":1}', '{a}', null), jsonb_set_lax('{"a":1}', '{a}', null, true, 'delete_key'), jsonb_set_lax('{"a":1}', '{a}', null, true, 'return_target'), jsonb_set_lax('{"a":1}', '{a}', '5')
select jsonb_set_lax('{"a":1}', '{a}', null, true, 'raise_exception')
select jsonb_set_lax('{"a":1}', '{a}', null, true, 'x')
select json_strip_nulls('{"a":null,"b":[1,null,{"c":null}], "d" : 1.0}'), jsonb_strip_nulls('{"a":null,"b":[1,null,{"c":null}]}'), json_strip_nulls('[1,null]', true), jsonb_strip_nulls('[1,null,{"a":null}]', true), json_strip_nulls('null'), json_strip_nulls(' "x" ')
select jsonb_pretty('{"a":[1,{"b":2},[]],"c":{}, "d":"x"}'), jsonb_pretty('1'), jsonb_pretty('[]'), jsonb_pretty('[[1],[2]]')
-- what it is
select json_typeof('{}'), json_typeof('[]'), json_typeof('"x"'), json_typeof('1'), json_typeof('true'), json_typeof('null'), jsonb_typeof('{}'), jsonb_typeof('[]'), jsonb_typeof('"x"'), jsonb_typeof('-1'), jsonb_typeof('false'), jsonb_typeof('null'), jsonb_typeof(null)
select json_array_length('[1,[2,3]]'), jsonb_array_length('[]')
select json_array_length('{}')
select jsonb_array_length('1')
select jsonb_array_length('{}')
select json_array_length('1')
-- comparison
select '{"a":1}'::jsonb = '{"a": 1.0}', '[1]'::jsonb < '[2]', '[1,2]'::jsonb < '[3]', '{}'::jsonb > '[]', '1'::jsonb < 'true', 'null'::jsonb < '"a"', '"a"'::jsonb < '1', '[]'::jsonb < 'null', '{"a":1}'::jsonb < '{"b":1}', '{"b":1}'::jsonb < '{"aa":0}', '[[]]'::jsonb > '[1]', '"a"'::jsonb < '"B"', '[]'::jsonb < '1', '[1]'::jsonb > '1', '{"a":2}'::jsonb > '{"a":1}', '1'::jsonb <> '1.00'
select x from (values ('1'::jsonb), ('"a"'), ('[]'), ('{}'), ('null'), ('true'), ('false'), ('[1,2]'), ('[3]'), ('{"a":1}'), ('10'), ('9'), ('"B"'), ('{"b":0}'), ('{"aa":0}'), (null)) v(x) order by x
select x, count(*) from (values ('1'::jsonb), ('{"a":1,"b":2}'), ('{"b":2,"a":1}'), (null)) v(x) group by x order by x
select distinct x from (values ('[1]'::jsonb), ('[1]'), ('[2]')) v(x) order by x
select '{"a":1}'::json = '{"a":1}'::json
select '{}'::json = '{}'
select x from (values ('1'::json)) v(x) order by x
select x from (values ('1'::json)) v(x) group by x
select distinct x from (values ('1'::json)) v(x)
select '1'::json union select '2'::json
select '1'::json as x union all select '2'::json
select count(distinct x) from (values ('1'::json)) v(x)
select x from (values ('1'::jsonb), ('2')) v(x) where x in ('1', '3')
select x from (values ('1'::jsonb), ('2')) v(x) where x = any(array['2']::jsonb[])
select greatest('1'::jsonb, '2'), '1'::jsonb is distinct from '1.0'
select coalesce('{"a":1}'::jsonb, '{}'), case when true then '1'::json else '2' end, nullif('1'::jsonb, '1')
-- casts
select '5'::jsonb::int, '5.7'::jsonb::int, '2.5'::jsonb::int8, '-2.5'::jsonb::int2, '1.25'::jsonb::numeric, '1.25'::jsonb::numeric(3,1), '1.5'::jsonb::float8, '1.1'::jsonb::float4, 'true'::jsonb::bool, 'null'::jsonb::int, 'null'::jsonb::bool
select '"a"'::jsonb::int
select '[1]'::jsonb::numeric
select '{}'::jsonb::bool
select 'true'::jsonb::int
select '1'::jsonb::bool
select '99999999999'::jsonb::int
select '1'::json::int
select 1::json
select 1::jsonb
select ('{"a":"5"}'::jsonb ->> 'a')::int + 1, ('{"a":5}'::jsonb -> 'a')::int
select '{"a":1}'::varchar::jsonb, '[1]'::jsonb::varchar(2)
-- making
select to_json(1), to_json('x'::text), to_json(true), to_json(1.50), to_json(1.5::float8), to_json('NaN'::float8), to_json(null::int), to_json(array[1,2]), to_json(array['a',null]), to_json('{"a" : 1}'::json), to_json(date '2024-01-31'), to_json(timestamp '2024-01-31 10:00:00.5'), to_json(timestamptz '2024-01-31 10:00:00+00'), to_json(interval '1 day'), to_json('\x00ff'::bytea)
select to_jsonb(1), to_jsonb('x'::text), to_jsonb(true), to_jsonb(1.50), to_jsonb(1.5::float8), to_jsonb('Infinity'::float8), to_jsonb(array[1,2]), to_jsonb(array['a',null]), to_jsonb('{"a" : 1}'::json), to_jsonb(date '2024-01-31'), to_jsonb(timestamp '2024-01-31 10:00:00'), to_jsonb(timestamptz '2024-01-31 10:00:00+00'), to_jsonb(1e20::float8), to_jsonb('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid)
select to_json('x')
select to_jsonb(null)
select json_build_array(1,'a',null,true,1.5,'{"x" : 1}'::json), jsonb_build_array(1,'a',null,true,1.5,'{"x" : 1}'::json), json_build_array(), jsonb_build_array(), json_build_array(array[1,2], date '2024-01-01')
select json_build_object('a',1,'b',null,'c','x','d',array[1,2]), jsonb_build_object('b',1,'a',null,'b',3), json_build_object(), jsonb_build_object(), json_build_object(1,2), jsonb_build_object(true,'x'), json_build_object('a"b', '{"x":1}'::jsonb)
select json_build_object('a')
select jsonb_build_object('a',1,'b')
select json_build_object(null,1)
select jsonb_build_object(null,1)
select jsonb_build_object('a',1,null,2)
select jsonb_build_object(array[1],1)
select json_object('{a,1,b,null}'), jsonb_object('{a,1,b,NULL}'), json_object('{a,b}','{1,2}'), jsonb_object('{b,a}','{1,2}'), json_object('{}'), jsonb_object('{a,1,a,2}')
select json_object('{a}')
select json_object('{a,b}','{1}')
select json_object('{null,1}')
select array_to_json(array[1,2]), array_to_json(array['a'], true), array_to_json(array[1,2], true)
-- aggregates
select json_agg(x), jsonb_agg(x) from (values (1),(2),(null)) v(x)
select json_agg(x order by x desc), jsonb_agg(x order by x), json_agg(x) filter (where x > 1) from (values (1),(2)) v(x)
select json_agg(x), jsonb_agg(x) from (values ('a'),('b"c')) v(x)
select json_agg(x), jsonb_agg(x) from (values (array[1,2]),(array[3])) v(x)
select json_agg(x) from (values (1)) v(x) where false
select json_object_agg(k, v), jsonb_object_agg(k, v) from (values ('a',1),('b',null)) t(k,v)
select json_object_agg(k, v) from (values (null,1)) t(k,v)
select json_object_agg(k, v), jsonb_object_agg(k, v) from (values (1,'x'::text),(2,'y')) t(k,v)
select g, jsonb_agg(x order by x), json_agg(t order by x) from (values (1,2,'{"a":1}'::json),(1,1,'2'),(2,3,null)) v(g,x,t) group by g order by g
select jsonb_agg(x) from (values ('{"b":1,"a":2}'::jsonb)) v(x)
select json_agg(d) from (values (timestamptz '2024-01-31 10:00:00+00')) v(d)
select jsonb_build_object('n', count(*), 'l', jsonb_agg(x order by x)) from (values (2),(1)) v(x)
-- arrays of json
select array['{"a":1}'::jsonb, '2'], '{"{\"a\": 1}",2,null}'::jsonb[], array['1'::json]::text, array['1'::jsonb] = array['1.0'::jsonb]
select length('{"a":1}'::jsonb::text), '{"a":1}'::jsonb::text like '%a%', 'x' || '{"a":1}'::jsonb, concat('{"a":1}'::jsonb, 1)
-- sets
select * from json_array_elements('[1, {"a" : 2}, null]'), jsonb_array_elements('[3]') x
select value from jsonb_array_elements('[1,2]') where value > '1'
select x, x.value from jsonb_array_elements('[{"a":1},{"a":2}]') x
select x ->> 'a' from jsonb_array_elements('[{"a":1},{"a":2}]') as x
select e from json_array_elements_text('["a",null,1.50]') t(e)
select * from jsonb_array_elements_text('["a",null,1.50,[1]]') with ordinality
select k from jsonb_object_keys('{"bb":1,"a":2}') k order by 1
select * from json_object_keys('{"bb":1,"a":2,"bb":3}')
select * from json_each('{"a":1,"b" : [2, 3]}')
select * from jsonb_each('{"bb":1,"a":{"x":null}}')
select key, value from json_each_text('{"a":"x","b":null}')
select k, v from jsonb_each_text('{"a":"x","b":null}') as t(k, v)
select t.id, e.value from (values (1, '[10,20]'::jsonb), (2, '[]'), (3, null)) t(id, j) cross join lateral jsonb_array_elements(t.j) e order by 1, 2
select t.id, x from (values (1, '{"a":[1,2]}'::jsonb)) t(id, j), jsonb_array_elements_text(j -> 'a') x order by x
select jsonb_array_elements('[1,2]'), json_object_keys('{"a":1}')
select count(*), sum(value::int) from jsonb_array_elements_text('[1,2,3]')
select * from json_array_elements('{"a":1}')
select * from json_array_elements('1')
select * from jsonb_array_elements('{"a":1}')
select * from jsonb_array_elements('1')
select * from json_object_keys('[1]')
select * from json_object_keys('1')
select * from jsonb_object_keys('[1]')
select * from jsonb_object_keys('1')
select * from json_each('[1]')
select * from json_each('1')
select * from jsonb_each('[1]')
select * from jsonb_each_text('1')
select json_each('{"a":1}')
select json_agg(x) over (), jsonb_agg(x) over (order by x) from (values (1), (2)) v(x)
select json_agg(x) over () from (values (timestamptz '2024-01-31 10:00:00+00')) v(x)
select array_agg(x) over (order by x) from (values (1), (null)) v(x)
select array_agg(x) over () from (values (1.50), (2.25)) v(x)
select unnest(array[1,2]), unnest('{a,b,c}'::text[])
select * from unnest(array[1,2], array['a','b','c']) with ordinality as t(x, y, n)
select x from generate_series(timestamp '2024-01-01', timestamp '2024-01-03', interval '1 day') x
select x from generate_series(date '2024-01-01', date '2024-03-01', interval '1 month') x
select g, json_object_agg(k, v order by k desc), jsonb_object_agg(k, v) filter (where v > 1) from (values (1,'a',1),(1,'b',2),(2,'c',null)) t(g,k,v) group by g order by g
select json_object_agg(k, d) from (values ('x', timestamptz '2024-01-31 10:00:00+00')) t(k,d)
-- rows
select row_to_json(t) from (values (1, 'x'::text, null::int), (2, 'y"', 3)) t(a, b, c) order by a
select to_json(t), to_jsonb(t) from (select 1 as a, array[1,2] as "B c", '{"z" : 1}'::json as j, 1.50 as n) t
select json_agg(t), jsonb_agg(t) from (values (1, 'x'::text), (2, 'y')) t(a, b)
select json_agg(t order by a desc) from (values (1, 'x'::text), (2, 'y')) t(a, b)
select row_to_json(row(1, 'x', null)), to_json(row(1)), to_jsonb(row(true, 'a'))
select json_agg(t) from (values (1)) t(a) where false
select row_to_json(t) from (values (timestamptz '2024-01-31 10:00:00+00')) t(d)
select row_to_json(a) from (values (1)) t(a)
select a, row_to_json(t) from (values (1), (2)) t(a) order by a desc
select row_to_json(x) from (select g, count(*) as n from (values (1), (1), (2)) v(g) group by g order by g) x
select (select json_agg(t) from (values (1), (2)) t(a)) as list
select row_to_json(5)
select row_to_json(u) from (values (1)) t(a) left join (values (2, 3)) u(b, c) on a = b
