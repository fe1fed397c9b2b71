create table if not exists ine (id int primary key, a int, b text, constraint ine_once unique (a, b))
create table if not exists ine (id int primary key, a int, b text, constraint ine_once unique (a, b))
create table if not exists ine (id serial, x ine_no_type references ine_no_table, check (nothing))
create table if not exists ine (id int, id int)
create table if not exists ine as select 1 as other
select column_name from information_schema.columns where table_name = 'ine' order by ordinal_position
insert into ine values (1, 1, 'x')
insert into ine values (2, 1, 'x')
create view ine_view as select id from ine
create table if not exists ine_view (id int, constraint ine_once unique (id))
create table if not exists ine_other (id int, constraint ine_once unique (id))
create table if not exists ine_other (id int, constraint ine_once_too unique (id))
drop table ine_other
drop table ine cascade
