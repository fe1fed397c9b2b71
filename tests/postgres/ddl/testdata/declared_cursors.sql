# What may be declared as a cursor, and how.
create table a (i int primary key)
insert into a values (1)
begin
declare c scroll no scroll cursor for select 1
rollback
begin
declare c insensitive asensitive cursor for select 1
rollback
begin
declare c insensitive cursor for select i from a for update
rollback
begin
declare c scroll cursor for select i from a for no key update
rollback
declare c cursor with hold for select i from a for share
declare c scroll cursor with hold for select i from a for key share of a for update
begin
declare c scroll cursor with hold for select 1 for update
fetch c
rollback
begin
declare c scroll cursor for select i from a union select i from a order by 1
fetch c
rollback
begin
declare c cursor for with x as (insert into a values (4) returning i) select * from x
rollback
begin
declare c cursor for with x as (delete from a returning i) select * from x union select 1
rollback
begin
declare c scroll cursor for with x as (select i from a for update) select * from x
rollback
begin
declare c insensitive no scroll cursor without hold for select i from a
fetch next c
rollback
declare c cursor with hold for select i into z from a
declare c cursor with hold for select 1 into z union select 2
explain declare c cursor for select i into z from a
explain declare c scroll cursor for select i from a for update
explain declare c cursor for with x as (insert into a values (4) returning i) select * from x
select * from a
insert into a select 5 into z
select * from (select 1 into z) q
select (select 1 into z)
with x as (select 1 into z) select * from x
select 1 union select 2 into z
create table z2 as select 1 into z
copy (select 1 into z) to stdout
select to_regclass('z')
# meridian
begin
declare c binary cursor for select 1
rollback
