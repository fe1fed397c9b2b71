# pg_proc and what stands on it, of functions that both have.
select oid, proname, pronamespace, proowner, prolang, procost, prorows, provariadic, prosupport, prokind, prosecdef, proleakproof, proisstrict, proretset, provolatile, proparallel from pg_proc where proname in ('initcap', 'concat', 'avg', 'jsonb_set', 'json_array_elements_text', 'row_number', 'percentile_cont', 'textin', 'nextval', 'generate_series', 'log10', 'upper') and oid not in (3849, 4236) order by oid
select oid, pronargs, pronargdefaults, prorettype, proargtypes, proallargtypes, proargmodes, proargnames, pg_get_expr(proargdefaults, 0), prosrc, probin, proconfig, proacl from pg_proc where proname in ('initcap', 'concat', 'avg', 'jsonb_set', 'json_array_elements_text', 'row_number', 'percentile_cont', 'textin', 'nextval', 'make_interval', 'jsonb_delete') order by oid
select oid, pg_get_function_result(oid), pg_get_function_arguments(oid), pg_get_function_identity_arguments(oid), oidvectortypes(proargtypes), pg_function_is_visible(oid) from pg_proc where proname in ('initcap', 'concat', 'avg', 'jsonb_set', 'json_array_elements_text', 'row_number', 'percentile_cont', 'mode', 'rank', 'textin', 'make_interval', 'jsonb_delete', 'pg_sleep') order by oid
select pg_get_function_result(1), pg_get_function_arguments(1), pg_get_function_identity_arguments(1), pg_function_is_visible(1), pg_get_functiondef(1), pg_get_function_arg_default(1, 1)
select pg_get_function_result(null), pg_get_function_arguments(null), pg_function_is_visible(null), pg_get_functiondef(null), oidvectortypes(null)
select pg_get_function_arg_default(3305, n) from generate_series(0, 5) n
select pg_get_functiondef(oid) from pg_proc where oid in (872, 3305, 3969, 3100, 1614) order by oid
select pg_get_functiondef(2101)
# One that stands in no list has no such overload with us.
select count(*) from pg_proc where proname in ('lower', 'nosuch') and prorettype = 25
select proname from pg_proc where proargtypes[0] = 25 and proname in ('lower', 'initcap', 'abs') order by 1

# What psql asks.
select n.nspname as "Schema", p.proname as "Name", pg_catalog.pg_get_function_result(p.oid) as "Result data type", pg_catalog.pg_get_function_arguments(p.oid) as "Argument data types", case p.prokind when 'a' then 'agg' when 'w' then 'window' when 'p' then 'proc' else 'func' end as "Type" from pg_catalog.pg_proc p left join pg_catalog.pg_namespace n on n.oid = p.pronamespace where pg_catalog.pg_function_is_visible(p.oid) and n.nspname <> 'pg_catalog' and n.nspname <> 'information_schema' order by 1, 2, 4
select n.nspname as "Schema", p.proname as "Name", pg_catalog.pg_get_function_result(p.oid) as "Result data type", pg_catalog.pg_get_function_arguments(p.oid) as "Argument data types", case p.prokind when 'a' then 'agg' when 'w' then 'window' when 'p' then 'proc' else 'func' end as "Type", case when p.provolatile = 'i' then 'immutable' when p.provolatile = 's' then 'stable' when p.provolatile = 'v' then 'volatile' end as "Volatility", case when p.proparallel = 'r' then 'restricted' when p.proparallel = 's' then 'safe' when p.proparallel = 'u' then 'unsafe' end as "Parallel", case when prosecdef then 'definer' else 'invoker' end as "Security", case when p.proleakproof then 'yes' else 'no' end as "Leakproof?", case when pg_catalog.array_length(p.proacl, 1) = 0 then '(none)' else pg_catalog.array_to_string(p.proacl, E'\n') end as "Access privileges", l.lanname as "Language", case when l.lanname in ('internal', 'c') then p.prosrc end as "Internal name" from pg_catalog.pg_proc p left join pg_catalog.pg_namespace n on n.oid = p.pronamespace left join pg_catalog.pg_language l on l.oid = p.prolang where p.proname operator(pg_catalog.~) '^(initcap|concat.*)$' collate pg_catalog.default and pg_catalog.pg_function_is_visible(p.oid) order by 1, 2, 4
select n.nspname as "Schema", p.proname as "Name", pg_catalog.pg_get_function_arguments(p.oid) as "Argument data types" from pg_catalog.pg_proc p left join pg_catalog.pg_namespace n on n.oid = p.pronamespace left join pg_catalog.pg_type t0 on t0.oid = p.proargtypes[0] left join pg_catalog.pg_namespace nt0 on nt0.oid = t0.typnamespace where p.proname operator(pg_catalog.~) '^(lower)$' collate pg_catalog.default and pg_catalog.pg_function_is_visible(p.oid) and (t0.typname operator(pg_catalog.~) '^(text)$' collate pg_catalog.default or pg_catalog.format_type(t0.oid, null) operator(pg_catalog.~) '^(text)$' collate pg_catalog.default) and pg_catalog.pg_type_is_visible(t0.oid) order by 1, 2, 3
select n.nspname as "Schema", p.proname as "Name", pg_catalog.format_type(p.prorettype, null) as "Result data type", case when p.pronargs = 0 then cast('*' as pg_catalog.text) else pg_catalog.pg_get_function_arguments(p.oid) end as "Argument data types" from pg_catalog.pg_proc p left join pg_catalog.pg_namespace n on n.oid = p.pronamespace where p.prokind = 'a' and p.proname operator(pg_catalog.~) '^(avg|count)$' collate pg_catalog.default and pg_catalog.pg_function_is_visible(p.oid) order by 1, 2, 4
select lanname, lanowner, lanispl, lanpltrusted, lanplcallfoid, laninline, lanvalidator, lanacl from pg_language where lanname <> 'plpgsql' order by oid

# What pgjdbc asks.
select n.nspname as "PROCEDURE_SCHEM", p.proname as "PROCEDURE_NAME", null, null, null, d.description as "REMARKS", 2 as "PROCEDURE_TYPE", p.proname || '_' || p.oid as "SPECIFIC_NAME" from pg_catalog.pg_namespace n, pg_catalog.pg_proc p left join pg_catalog.pg_description d on (p.oid=d.objoid) left join pg_catalog.pg_class c on (d.classoid=c.oid and c.relname='pg_proc') left join pg_catalog.pg_namespace pn on (c.relnamespace=pn.oid and pn.nspname='pg_catalog') where p.pronamespace=n.oid and p.prokind='p' and n.nspname like '%' and p.proname like 'i%' order by "PROCEDURE_SCHEM", "PROCEDURE_NAME", p.oid::text
select n.nspname as "FUNCTION_SCHEM", p.proname as "FUNCTION_NAME", case when (format_type(p.prorettype, null) = 'unknown') then 0 when (substring(pg_get_function_result(p.oid) from 0 for 6) = 'TABLE') or (substring(pg_get_function_result(p.oid) from 0 for 6) = 'SETOF') then 2 else 1 end as "FUNCTION_TYPE", p.proname || '_' || p.oid as "SPECIFIC_NAME" from pg_catalog.pg_proc p inner join pg_catalog.pg_namespace n on p.pronamespace=n.oid left join pg_catalog.pg_description d on p.oid=d.objoid where true and p.prokind='f' and n.nspname like 'pg_catalog' and p.proname like 'json_array_el%' and has_function_privilege(p.oid,'EXECUTE') order by "FUNCTION_SCHEM", "FUNCTION_NAME", p.oid::text
select n.nspname,p.proname,p.prorettype,p.proargtypes, t.typtype,t.typrelid, p.proargnames, p.proargmodes, p.proallargtypes, p.oid from pg_catalog.pg_proc p, pg_catalog.pg_namespace n, pg_catalog.pg_type t where p.pronamespace=n.oid and p.prorettype=t.oid and n.nspname like 'pg_catalog' and p.proname like 'json_array_el%' order by n.nspname, p.proname, p.oid::text
select typinput='pg_catalog.array_in'::regproc as is_array, typtype, typname, pg_type.oid from pg_type where typname in ('_text', 'text') order by oid

# What Npgsql asks.
select typ.typname, typ.typtype, case when proc.proname='array_recv' then 'a' else typ.typtype end from pg_type typ left join pg_proc proc on proc.oid = typ.typreceive where typ.typname in ('_int4', 'int4', 'name', 'json') order by 1
select typname, typinput, typoutput, typreceive, typsend, typmodin, typmodout, typanalyze, typsubscript from pg_type where typname in ('int4', '_int4', 'name', 'varchar', 'jsonb', 'regproc', 'unknown', 'void') order by oid
create type mood as enum ('sad', 'happy')
create domain short as varchar(3)
select typname, typinput, typoutput, typreceive, typsend, typmodin, typmodout, typanalyze, typsubscript from pg_type where typname in ('mood', '_mood', 'short') order by typname
select amname, amhandler from pg_am where amname in ('heap', 'btree') order by oid

# regproc
select 'initcap'::regproc, 'initcap'::regproc::oid, 'pg_catalog.initcap'::regproc::text, 'INITCAP'::regproc, '"initcap"'::regproc, '872'::regproc, '-'::regproc
select 'lower'::regproc
select 'nosuch'::regproc
select 'public.initcap'::regproc
select 'nosuch.initcap'::regproc
select 'a.b.c'::regproc
select 'to_tsvector'::regproc
select ''::regproc
select to_regproc('initcap'), to_regproc('lower'), to_regproc('nosuch'), to_regproc('872'), to_regproc('public.initcap'), to_regproc(''), to_regproc(null)
select v, v::regproc, v::regproc::oid, to_regproc(v) from (values ('initcap'), ('pg_catalog.reverse'), ('array_in'), (null), ('872')) x(v)
select v::regproc from (values ('nosuch')) x(v)
select v::regproc from (values ('lower')) x(v)
select 872::regproc, 870::regproc, 1::regproc, 0::regproc, 1317::regproc::text
select 'initcap'::regproc = 872, 'initcap'::regproc::oid = 872, pg_get_function_result('initcap'::regproc)
select proname from pg_proc where oid = 'initcap'::regproc
select has_function_privilege(870, 'EXECUTE'), has_function_privilege(current_user, 870, 'execute with grant option'), has_function_privilege(10, 870, 'execute'), has_function_privilege(1, 'execute'), has_function_privilege(null, 'execute')
select has_function_privilege(870, 'select')

# regprocedure
select 'lower(text)'::regprocedure, 'lower(text)'::regprocedure::oid, 'pg_catalog.concat("any")'::regprocedure::text, 'now()'::regprocedure, ' round ( numeric , int ) '::regprocedure, 'array_append(anycompatiblearray,anycompatible)'::regprocedure, 'to_char(timestamp with time zone, text)'::regprocedure, 'array_length(anyarray, int4)'::regprocedure, '872'::regprocedure, '-'::regprocedure
select 'lower'::regprocedure
select 'lower(text'::regprocedure
select 'lower(int)'::regprocedure
select 'lower(text,)'::regprocedure
select 'lower(nosuch)'::regprocedure
select 'nosuch(text)'::regprocedure
select 'public.lower(text)'::regprocedure
select '(text)'::regprocedure
select ''::regprocedure
select to_regprocedure('lower(text)'), to_regprocedure('lower(int)'), to_regprocedure('lower'), to_regprocedure('lower(nosuch)'), to_regprocedure('870'), to_regprocedure('nosuch.lower(text)'), to_regprocedure(null)
select v, v::regprocedure, v::regprocedure::oid, to_regprocedure(v) from (values ('lower(text)'), ('sum(int4)'), ('pg_catalog.sum(numeric)'), (null), ('870')) x(v)
select v::regprocedure from (values ('lower(int)')) x(v)
select 870::regprocedure, 2108::regprocedure, 1::regprocedure, 0::regprocedure, 3305::regprocedure::text, 870::regprocedure::regproc, 872::regproc::regprocedure
select oid::regprocedure from pg_proc where proname in ('sum', 'nextval', 'avg') and oid not in (2112, 2107) and prorettype not in (790, 1231) order by oid
select pg_get_functiondef('lower(text)'::regprocedure)
select typname, typlen, typinput, typcategory, typtype from pg_type where typname = 'regprocedure'

# Vectors: as text without braces, as arrays with them.
select proargtypes, proargtypes::text, proargtypes::varchar(4), proargtypes::oid[], (proargtypes::oid[])[0], (proargtypes::oid[])[1], array_length(proargtypes::oid[], 1), proargtypes || 1::oid from pg_proc where oid = 3305
create table vt (a int primary key, b int, unique (b, a))
select indkey::text, indkey, indkey::int2[], indkey[0], cast(indkey as text) || 'x' from pg_index where indrelid = 'vt'::regclass order by 1
select array_to_string(indkey, ','), 2 = any (indkey), indkey::int2[] @> array[2::int2], string_to_array(indkey::text, ' ')::int[] from pg_index where indrelid = 'vt'::regclass order by 1

# pg_cast, and what psql asks of it.
select * from pg_cast where castsource in (20, 21, 23, 25, 1042, 1043, 1114, 1184, 3802, 2205, 16) and casttarget in (16, 20, 21, 23, 25, 26, 700, 701, 1042, 1043, 1082, 1083, 1114, 1184, 1700) order by oid
select pg_catalog.format_type(castsource, null) as "Source type", pg_catalog.format_type(casttarget, null) as "Target type", case when c.castmethod = 'b' then '(binary coercible)' when c.castmethod = 'i' then '(with inout)' else p.proname end as "Function", case when c.castcontext = 'e' then 'no' when c.castcontext = 'a' then 'in assignment' else 'yes' end as "Implicit?" from pg_catalog.pg_cast c left join pg_catalog.pg_proc p on c.castfunc = p.oid left join pg_catalog.pg_type ts on c.castsource = ts.oid left join pg_catalog.pg_namespace ns on ns.oid = ts.typnamespace left join pg_catalog.pg_type tt on c.casttarget = tt.oid left join pg_catalog.pg_namespace nt on nt.oid = tt.typnamespace where ( (true and pg_catalog.pg_type_is_visible(ts.oid) and (ts.typname operator(pg_catalog.~) '^(date|numeric)$' collate pg_catalog.default or pg_catalog.format_type(ts.oid, null) operator(pg_catalog.~) '^(date|numeric)$' collate pg_catalog.default) ) or false) and tt.typname <> 'money' order by 1, 2

# information_schema
select specific_schema, specific_name, routine_schema, routine_name, routine_type, data_type, type_udt_schema, type_udt_name, dtd_identifier, routine_body, routine_definition, external_name, external_language, parameter_style, is_deterministic, sql_data_access, is_null_call, schema_level_routine, max_dynamic_result_sets, security_type, as_locator, is_udt_dependent from information_schema.routines where routine_name in ('initcap', 'array_append', 'avg', 'row_number', 'log10', 'string_to_array', 'json_array_elements') order by specific_name
select specific_schema, specific_name, ordinal_position, parameter_mode, is_result, as_locator, parameter_name, data_type, udt_schema, udt_name, dtd_identifier, parameter_default from information_schema.parameters where specific_name in ('initcap_872', 'jsonb_set_3305', 'json_array_elements_text_3969', 'concat_3058', 'make_interval_3464') order by specific_name, ordinal_position
select r.routine_name, p.ordinal_position, p.data_type from information_schema.routines r left join information_schema.parameters p on r.specific_name = p.specific_name where r.routine_schema not in ('pg_catalog', 'information_schema') order by 1, 2
select format_type(2281, null), format_type(2276, -1), format_type(18, null), format_type(1034, null)

# What Meridian refuses is listed, too.
select 'pg_stat_reset'::regproc
select 'pg_stat_reset_shared(text)'::regprocedure
select 'lower(anyrange)'::regprocedure
select count(*) from pg_proc where proname = 'to_tsvector'
select 'int4range'::regtype, 'tsvector'::regtype::oid, format_type(3904, null), format_type(790, null), 'money[]'::regtype
select typname, typtype, typcategory, typarray, typelem from pg_type where typname in ('int4range', 'tsvector', 'inet', '_inet', 'bit', 'anyrange', 'trigger', 'xml') order by oid
select rngtypid::regtype, rngsubtype::regtype, rngmultitypid::regtype, rngcollation, rngcanonical, rngsubdiff from pg_range order by rngtypid
select lanname, lanplcallfoid::regproc, laninline::regproc, lanvalidator::regproc from pg_language order by oid
select prosrc, probin, prolang from pg_proc where proname like 'plpgsql%' order by oid
select count(*), count(distinct oid) from pg_type where oid < 12000 and typtype <> 'c' and typname not like '\_pg\_%'
select (select count(*) from pg_operator), (select count(*) from pg_opclass), (select count(*) from pg_amop), (select count(*) from pg_aggregate), (select count(*) from pg_collation where oid < 12000), (select count(*) from pg_cast)
select cfgname, pg_ts_config_is_visible(oid) from pg_ts_config where cfgname < 'b' order by 1
select pg_ts_dict_is_visible(3765), pg_ts_parser_is_visible(3722), pg_ts_template_is_visible(3727), pg_conversion_is_visible(4402), pg_ts_dict_is_visible(1), pg_conversion_is_visible(null)
select * from ts_token_type(3722) where tokid < 4
select t.alias from ts_token_type('default') t where t.description like 'XML%' order by 1
