# The arrays of a user's type are also called by the name that pg_type has for them.
create schema app
set search_path = app
create type st as enum ('a', 'b')
select '_st'::regtype, 'app._st'::regtype, to_regtype('_st'), to_regtype('app._st'), '_st'::text::regtype
select '{a}'::_st, '{b,a}'::app._st, cast(null as _st), array['b']::_st
create table t (a _st default '{a}'::_st, b app._st check (b <> '{b}'::app._st), c text default pg_typeof('{b}'::_st)::text)
insert into t (b) values ('{a,b}')
select * from t
select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 't'::regclass order by adnum
select pg_get_constraintdef(oid) from pg_constraint where conrelid = 't'::regclass
select format_type(atttypid, atttypmod) from pg_attribute where attrelid = 't'::regclass and attnum > 0 order by attnum
create view v as select '{a}'::_st as x, '_st'::regtype as y
select pg_get_viewdef('v'::regclass)
select '_none'::regtype
select '{a}'::_none
select '{a}'::app._none
select '{a}'::none._st
set search_path = public
select 'app._st'::regtype, to_regtype('_st')
select '_st'::regtype
select * from app.v
select x, x = '{a}'::app.st[] from app.v
select pg_get_viewdef('app.v'::regclass)
insert into app.t default values
select * from app.t
