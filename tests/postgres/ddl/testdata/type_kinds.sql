# Names of types, domains and relations where another kind is wanted.
create table t (a int)
create type e as enum ('x')
create domain d as int
create view v as select 1 as a
create sequence s
drop domain if exists t
drop domain t
drop type if exists t
drop type t
drop type v
drop type if exists v
drop type s
drop type if exists s
drop type if exists d
drop type d
create domain d as int
drop domain e
drop domain if exists e
drop domain if exists nosuch
drop type if exists nosuch
drop domain nosuch
drop type nosuch
drop type if exists nosch.x
drop domain if exists nosch.x
drop type nosch.x
drop domain nosch.x
drop type int
drop type pg_catalog.int4
drop domain int4
drop type if exists int4[]
drop type e[]
drop type if exists t cascade
alter domain e rename to e2
alter domain e rename constraint a to b
alter domain t rename to x
alter domain e drop default
alter domain e add check (value > 0)
alter domain e set schema public
alter domain e owner to current_user
alter type d rename to d2
alter type d2 rename to d
alter type t rename to t2
alter type d set schema public
alter type d owner to current_user
alter type t set schema public
alter type t owner to current_user
alter type d add value 'y'
alter type t add value 'y'
alter type nosuch add value 'y'
alter type d rename value 'a' to 'b'
alter domain nosuch rename to x
alter type nosuch rename to x
alter type nosch.x rename to y
alter domain nosch.x rename to y
alter type v rename to v2
alter type s rename to s2
drop domain d, e
drop type d, e
drop type if exists d, e, nosuch
