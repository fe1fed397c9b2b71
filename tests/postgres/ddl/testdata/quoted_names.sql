# Messages that do not quote a relation's name do so where SQL would have to.
create schema "Odd One"
create table "Odd One"."T x" (a int)
create sequence "Odd One".s
drop schema "Odd One"
drop schema "Odd One" cascade
drop schema if exists "No Pe"
create table "Big T" (a int primary key)
create table ref (a int references "Big T")
create view "V w" as select a from "Big T"
drop table "Big T"
drop table "Big T" cascade
create type "Moo D" as enum ('a')
create table "Has It" ("Col" "Moo D", x int)
drop type "Moo D"
drop type "Moo D" cascade
create sequence "S q"
create table "D f" ("A" int default nextval('"S q"'))
drop sequence "S q"
drop sequence "S q" cascade
alter table "D f" add column x int, add column "B" int generated always as ("A" + 1) stored
alter table "D f" drop column "A"
create view "V" as select * from "D f"
alter table "D f" drop column "A" cascade
create table "Two" ("Ä" int, b int)
create table "order" (a int primary key, "B b" int unique)
create table "select me" (a int references "order", "Q" int references "order" ("B b"))
alter table "order" drop column a
alter table "order" drop constraint order_pkey
alter table "order" drop column a cascade
drop table "order"
create view "user" as select * from "Two"
create view "x y" as select * from "user"
drop table "Two"
drop view "user"
drop view "user" cascade
create unique index "U i" on "Two" (b)
alter table "Two" add constraint "C c" unique (b)
drop index "C c"
create table "R" (b int references "Two" (b))
create table "Id" (a int generated always as identity, b int)
drop sequence "Id_a_seq"
create domain "D o" as int
create table "With D" (a "D o", b int)
drop domain "D o"
drop domain "D o" cascade
alter table "Two" alter column b type text
create view "over" as select b from "Two"
alter table "Two" alter column b type text
create schema "S s"
create sequence "S s"."q Q"
create table "Def" (a int default nextval('"S s"."q Q"'), b int)
drop sequence "S s"."q Q"
drop schema "S s"
drop schema "S s" cascade
# meridian
# PostgreSQL says in which schema they are.
create schema vis
create table vis."T" (a int)
create view vis."V" as select * from vis."T"
drop table vis."T"
drop table vis."T" cascade
