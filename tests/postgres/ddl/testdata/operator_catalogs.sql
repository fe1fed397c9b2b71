# Operators, their classes and families, aggregates: those that are here, as PostgreSQL has them.
create table t (a int primary key, b text, c text[], d numeric)
create index i on t (b, c, d)
create index j on t (b text_pattern_ops)
create index k on t (lower(b), (a + 1), (d * 2) desc, (c[1]) collate "C")
select oid::int, oprname, oprkind, oprcanmerge, oprcanhash, oprleft::regtype, oprright::regtype, oprresult::regtype, oprcom::int, oprnegate::int, oprcode, oprrest, oprjoin from pg_operator where oprname in ('=', '<', '||', '~', '+') and oprleft in ('int4'::regtype, 'text'::regtype, 'bool'::regtype, 'date'::regtype, 'anyarray'::regtype::oid) order by oid
select oprname, oprright::regtype, oprcode from pg_operator where oprkind = 'l' and oprright in ('int4'::regtype, 'float8'::regtype) order by oid
select oid::int, opcname, opcnamespace::regnamespace, opcfamily::int, opcintype::regtype, opcdefault, opckeytype from pg_opclass where opcmethod = 403 and opcname in ('int4_ops', 'text_ops', 'varchar_ops', 'text_pattern_ops', 'array_ops', 'enum_ops', 'record_ops', 'timestamptz_ops', 'jsonb_ops') order by oid
select f.opfname, o.amoplefttype::regtype, o.amoprighttype::regtype, o.amopstrategy, o.amoppurpose, o.amopopr::int from pg_amop o join pg_opfamily f on f.oid = o.amopfamily where f.opfname in ('integer_ops', 'text_ops') and o.amopmethod = 403 and f.opfmethod = 403 order by 1, 2, 3, 4
select f.opfname, p.amproclefttype::regtype, p.amprocrighttype::regtype, p.amprocnum, p.amproc from pg_amproc p join pg_opfamily f on f.oid = p.amprocfamily where f.opfname in ('integer_ops', 'bool_ops') and f.opfmethod = 403 and p.amproclefttype = p.amprocrighttype order by 1, 2, 3, 4
select aggfnoid::oid::int, aggfnoid, aggkind, aggtransfn, aggfinalfn, aggcombinefn, aggtranstype::regtype, agginitval from pg_aggregate where aggfnoid::oid in (select oid from pg_proc where proname in ('sum', 'max', 'count', 'string_agg', 'percentile_cont') and prokind = 'a') and aggtranstype <> 'internal'::regtype::oid and aggfnoid::oid in ('sum(int4)'::regprocedure::oid, 'max(text)'::regprocedure::oid, 'count("any")'::regprocedure::oid) order by 1
select c.relname, i.indclass, i.indcollation from pg_index i join pg_class c on c.oid = i.indexrelid where i.indrelid = 't'::regclass order by 1
select c.relname, o.opcname from pg_index i join pg_class c on c.oid = i.indexrelid join pg_opclass o on o.oid = any (i.indclass) where i.indrelid = 't'::regclass order by 1, 2
create table u (a int, b text, c text[], d jsonb, e varchar(5), f text collate "C")
create index u1 on u using hash (b)
create index u2 on u using gin (c, d, d jsonb_path_ops)
create index u3 on u using brin (a, b, e)
create index u4 on u using gin (string_to_array(b, ','))
create index u5 on u (lower(b), (a + 1), lower(b) text_pattern_ops, (c || 'x'::text))
create index u6 on u using spgist (e)
create index u7 on u using hash (f)
select i.indexrelid::regclass, i.indclass, i.indcollation, i.indoption from pg_index i where i.indrelid = 'u'::regclass order by i.indexrelid::regclass::text
select i.indexrelid::regclass, o.opcname, o.opcdefault, m.amname from pg_index i, unnest(i.indclass) with ordinality c(oid, place), pg_opclass o, pg_am m where i.indrelid = 'u'::regclass and o.oid = c.oid and m.oid = o.opcmethod order by i.indexrelid::regclass::text, place
select attrelid::regclass, attnum, atttypid::regtype, attcollation from pg_attribute where attrelid in (select indexrelid from pg_index where indrelid = 'u'::regclass) order by attrelid::regclass::text, 2
