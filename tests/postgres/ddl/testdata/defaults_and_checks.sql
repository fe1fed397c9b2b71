create table t (a int default 1+1, b text default 'x'||'y', c timestamptz default now(), d int check (d > 0), check (a < d))
insert into t (d) values (5)
insert into t (d) values (5), (6)
select a,b,d,c is not null from t
insert into t (d) values (1)
insert into t (d) values (-1)
insert into t (d, a) values (10, default), (null, 3)
update t set d = -3
update t set a = default
update t set a = 100 where d = 5
insert into t select 1,'b',now(), x from (values (3),(0)) v(x)
create table u (a int constraint pos check (a > 0), b int, constraint big check (a+b < 100))
insert into u values (1,99)
insert into u values (-1,101)
insert into u values (1,null)
create table v (a int check (b > 0))
create table v (a int check (a))
create table v (a int check (a in (select 1)))
create table v (a int check (count(a) > 1))
create table v (a int default (select 1))
create table v (a int default b)
create table v (a int default 'x')
create table v (a varchar(2) default 'abc')
insert into v default values
create table w (a int check (a>0) check (a<10), check (a <> 5), constraint w_a_check2 check (a<>6))
insert into w values (11)
insert into w values (0)
insert into w values (5)
insert into w values (6)
create table w2 (a int, constraint c check (a>0), constraint c check (a<5))
create table w3 (a int not null check (a > 0), b int not null)
insert into w3 values (null, null)
insert into w3 values (0, null)
insert into w3 values (0, 1)
insert into w3 values (1,1),(0,1),(null,1)
insert into w3 values (1,1),(null,1),(0,1)
create table x (a int default random()*0 + 7, b date default current_date, c text default current_user)
insert into x default values
select a, b = current_date from x
begin
create table y (a int check (a <> 3))
insert into y values (3)
rollback
create table z (a int default null, b int default -5)
insert into z default values
select * from z
