# tables t, u, moved.u, c
create table t (a int, b text, c numeric(6,2), d timestamp)
insert into t values (1, 'one', 1.25, '2024-01-01'), (2, 'two', null, null), (3, null, 99.99, '2024-12-31 23:59:59')
alter table t add column e int
alter table t add column f int default 7
alter table t add column g text not null
alter table t add column g text not null default 'g'
alter table t add column if not exists g int
alter table t add column g int
alter table t add column h int default 1 / 0
alter table t add column h timestamptz default '2024-05-05 05:05+00'
alter table t add column k serial
alter table t add column l int check (l is null or l > 0) default 3
alter table t add column m int check (m > 0) default 0
alter table t add column n int primary key
alter table t add column n int unique default 5
alter table t add column n int unique
insert into t (a, n) values (4, 40) returning *
update t set e = a * 2, n = a where n is null
alter table t drop column e
alter table t drop column e
alter table t drop column if exists e
alter table t add column e text default 'second e'
alter table t drop column h, drop column k, add column k boolean default false
insert into t (a) values (5) returning *
alter table t rename column b to bb
alter table t rename column nope to x
alter table t rename column bb to a
update t set bb = upper(bb)
alter table t rename to t2
alter table t2 rename to t
alter table t alter column a type bigint
alter table t alter column a type smallint
alter table t alter column a type text
alter table t alter column a type int
alter table t alter column a type int using a::int * 10
alter table t alter column c type int
alter table t alter column c type numeric(8,4)
alter table t alter column c type numeric(3,1)
alter table t alter column c type double precision using c / 3
alter table t alter column d type date
alter table t alter column d type text using to_char(d, 'YYYY')
alter table t alter column d type int using nullif(d, '')::int
alter table t alter column g type varchar(1)
alter table t alter column g type char(3)
alter table t alter column g type varchar(0)
alter table t alter column k type int
alter table t alter column k drop default, alter column k type int using case when k then 1 else 0 end
alter table t alter column bb type jsonb
alter table t alter column bb type jsonb using to_jsonb(bb)
alter table t alter column f type text[] using array[f::text, 'x']
alter table t alter column f drop default, alter column f type text[] using array[f::text, 'x']
alter table t alter column a set default 100, alter column g set default 'def', alter column l drop default
insert into t (n) values (77) returning *
alter table t alter column c set not null
update t set c = 0 where c is null
alter table t alter column c set not null
insert into t (c) values (null)
alter table t alter column c drop not null
alter table t alter column nope set not null
alter table t add constraint c_low check (c < 10)
alter table t add constraint c_low check (c < 1000)
alter table t add constraint c_low check (c < 2000)
insert into t (c) values (1000)
alter table t add constraint c_high check (c > 50) not valid
insert into t (c) values (10)
update t set c = 60 where a = 10 returning c
alter table t validate constraint c_high
update t set c = 60 + a
alter table t validate constraint c_high
alter table t rename constraint c_high to c_over
alter table t drop constraint c_high
alter table t drop constraint if exists c_high
alter table t drop constraint c_over, drop constraint c_low
alter table t add primary key (a)
alter table t add unique (a, g)
alter table t add constraint t_k unique (k)
alter table t drop constraint t_k
update t set a = n where a = 100
delete from t where a is null or n is null
alter table t add primary key (a)
alter table t add primary key (n)
insert into t (a) values (10)
insert into t (a) values (null)
alter table t drop constraint t_pkey
insert into t (a) values (10), (null)
alter table t alter column a drop not null
insert into t (a) values (null)
create table u (id int primary key, t_n int references t (n), self int references u)
insert into u values (1, 77, null), (2, null, 1)
alter table t drop constraint t_n_key
insert into u values (3, 12345, 2)
alter table u drop constraint u_pkey
create schema moved
alter table u set schema moved
select * from u
insert into moved.u values (4)
alter table moved.u rename to w
alter table moved.w rename to u
alter table moved.u add column x int default 5, drop column self, alter column t_n set default 9, add check (x > 0)
insert into moved.u (id, x) values (5, -1)
insert into moved.u (id) values (5) returning *
alter table moved.u alter column x type bigint, alter column x set default 50, add column y text default 'y'
insert into moved.u (id) values (6) returning *
alter table moved.u drop column x, alter column x set default 1
alter table moved.u alter column id type text
insert into moved.u (id) values ('7'), ('007') returning id
insert into moved.u (id) values ('7')
alter table moved.u add constraint big check (length(id) < 4), drop column t_n
alter table moved.u set schema nope
alter table moved.u set schema public
drop schema moved
create table c (a int, b int)
# One key only is there twice: of several PostgreSQL names the first that its sort meets.
insert into c select x, greatest(x, 3) from generate_series(1, 9) x
alter table c add constraint c_b unique (b)
alter table c add constraint c_a unique (a), add constraint c_sum check (a + b < 100)
create unique index c_ab on c (a, b)
create unique index c_only_b on c (b)
create index c_b_idx on c (b desc nulls last)
insert into c values (1, 'b9')
alter table c drop constraint c_sum
alter table c drop column b
insert into c values (10), (11) returning a
