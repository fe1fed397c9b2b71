# The name of a constraint is unique in its table; that of a key among the relations of its schema.
# Names that are made up avoid those of all constraints of the schema.
create table t1 (a int constraint c check (a>0), b int constraint c check (b>0))
create table t2 (a int, constraint c check (a>0), constraint c check (a>1))
create table t3 (a int constraint c unique, b int constraint c check (b>0))
create table t3b (a int constraint c3b check (a>0), b int constraint c3b unique)
create table t4 (a int constraint c unique, b int constraint c unique)
create table t5 (a int constraint c primary key, b int constraint c unique)
create table t5b (a int constraint c5b primary key constraint c5b unique)
create table t6 (a int constraint c not null, b int constraint c not null)
create table t8 (a int constraint c not null, b int constraint c unique)
create table t8b (a int constraint c not null constraint c unique)
create table t9 (a int constraint c not null, constraint c primary key (a))
create table p (id int primary key)
create table t10 (a int constraint c references p, b int constraint c references p)
create table t11 (a int constraint c references p, b int constraint c check (b>0))
create table t12 (a int constraint c references p, b int constraint c unique)
create table t13 (a int constraint c references p constraint c not null)
create table s (a int constraint s_a_check check (a > 0), b int)
alter table s add constraint s_a_check check (b > 0)
alter table s add constraint s_a_check unique (b)
alter table s add constraint s_a_check primary key (b)
alter table s add constraint s_a_check not null b
alter table s add constraint s_a_check foreign key (b) references p
alter table s add constraint u1 unique (b)
alter table s add constraint u1 check (b > 0)
alter table s add constraint u1 unique (a)
alter table s add constraint u1 not null a
alter table s add constraint u1 foreign key (b) references p
alter table s add constraint n1 not null a
alter table s add constraint n1 check (a > 1)
alter table s add constraint n1 unique (a)
alter table s add constraint n1 not null b
alter table s add constraint n1 not null a
alter table s add constraint n2 not null a
alter table s add constraint f1 foreign key (b) references p
alter table s add constraint f1 check (a > 1)
alter table s add constraint f1 foreign key (b) references p
alter table s add constraint f1 unique (b)
alter table s add constraint x1 check (a > 1), add constraint x1 check (a > 2)
alter table s add constraint x1 check (a > 1), add constraint x1 unique (a)
alter table s add constraint x1 unique (a), add constraint x1 check (a > 1)
alter table s add constraint x1 unique (a), add constraint x1 unique (b)
alter table s add constraint x1 not null b, add constraint x1 check (a > 1)
alter table s add constraint x1 check (a > 1), add constraint x1 not null b
alter table s add constraint x1 check (a > 1), add constraint x1 foreign key (a) references p
alter table s add constraint x1 foreign key (a) references p, add constraint x1 foreign key (b) references p
alter table s add column d int constraint u1 check (d > 0)
alter table s add column d int constraint u1 not null
alter table s add column d int constraint u1 unique
alter table s add column d int constraint n1 unique
alter table s add column d int constraint n1 not null
alter table s add column d int constraint x2 check (d > 0) constraint x2 not null
alter table s add column d int constraint x2 check (d > 0), add column e int constraint x2 check (e > 0)
alter table s add column d int constraint x2 not null, add column e int constraint x2 not null
alter table s drop constraint s_a_check, add constraint s_a_check check (a > 5)
alter table s drop constraint u1, add constraint u1 check (a > 5)
alter table s drop constraint u1, add constraint u1 unique (a)
select conname, contype from pg_constraint where conrelid = 's'::regclass order by 1
create table d1 (a int check (a>0), b int constraint d1_a_check check (b>0))
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'd1'::regclass order by 1, 3
create table d2 (a int constraint d2_b_check check (a>0), b int check (b>0) check (b > 1))
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'd2'::regclass order by 1, 3
create table d3 (a int not null, b int constraint d3_a_not_null check (b > 0))
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'd3'::regclass order by 1, 3
create table d4 (a int unique, b int constraint d4_a_key check (b > 0))
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'd4'::regclass order by 1, 3
create table d5 (a int primary key, b int constraint d5_pkey check (b > 0))
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'd5'::regclass order by 1, 3
create table d6 (a int references p, b int constraint d6_a_fkey check (b > 0))
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'd6'::regclass order by 1, 3
create table d8 (a int not null, b int constraint d8_a_not_null unique)
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'd8'::regclass order by 1, 3
create table d9 (a int, b int constraint d9_a_not_null not null)
alter table d9 alter a set not null
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'd9'::regclass order by 1, 3
create table d10 (a int, b int constraint d10_a_key not null)
alter table d10 add unique (a)
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'd10'::regclass order by 1, 3
create table d11 (a int, b int constraint d11_pkey not null)
alter table d11 add primary key (a)
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'd11'::regclass order by 1, 3
create table d12 (a int, b int constraint d12_pkey unique)
alter table d12 add primary key (a)
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'd12'::regclass order by 1, 3
create table d13 (a int, b int constraint d13_a_check unique)
alter table d13 add check (a > 0)
alter table d13 add foreign key (a) references p
alter table d13 add constraint d13_b_fkey check (a > 3)
alter table d13 add foreign key (b) references p
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'd13'::regclass order by 1, 3
create table other (x int constraint d14_a_not_null not null, y int constraint d14_b_check check (y > 0), z int constraint d14_c_fkey check (z > 0))
create table d14 (a int not null, b int check (b > 0), c int references p)
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'd14'::regclass order by 1, 3
create table d15 (a int constraint other check (a > 0), b int constraint d15 unique)
create table d15 (a int constraint other unique)
create table d15 (a int constraint d15 check (a > 0))
create table d16 (a int constraint d16_b_key check (a > 0), b int unique, c int constraint d16_pkey check (c > 0), primary key (c))
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'd16'::regclass order by 1, 3
alter table d16 rename constraint d16_b_key to d16_pkey
alter table d16 add column d int constraint d16_b_key not null
create table d17 (like d16 including all, e int constraint d16_b_key check (e > 0))
create table d18 (like d16 including all, e int constraint d16_b_key not null)
create table d20 (like d16 including all, e int constraint d16_b_key unique)
create index i1 on d16 (a)
alter table d16 add constraint i1 check (a > 7)
alter table d16 add constraint i1 unique (a)
create table d21 (a int constraint i1 unique)
create table d23 (a int constraint x not null constraint x not null)
create table d25 (a int constraint x check (a > 0) constraint x check (a > 0))
create table d26 (a int constraint x unique constraint x unique)
create table d27 (a int constraint x unique constraint y unique)
create table d28 (a int constraint x unique, constraint x unique (a))
create table d29 (a int constraint x primary key, constraint y unique (a), constraint y check (a > 0))
create table q1 (a int unique, b int constraint q1_a_key unique)
create table q2 (a int constraint q2_b_key unique, b int unique)
create table q4 (a int constraint q4_b_fkey references p, b int references p)
create table q5 (a int references p, b int constraint q5_a_fkey references p)
create table q6 (a int references p, b int constraint q6_a_fkey not null)
create table q7 (a int, b int)
alter table q7 add constraint q7_a_key check (a > 0), add unique (a)
alter table q7 add constraint q7_a_check unique (b), add check (a > 1)
alter table q7 alter a set not null, add constraint q7_a_not_null check (a > 2)
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'q7'::regclass order by 1, 3
alter table q7 add column c int not null constraint q7_c_not_null check (c > 0)
alter table q7 add column d int unique constraint q7_d_key check (d > 0)
alter table q7 add column e int unique, add constraint q7_e_key check (e > 0)
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'q7'::regclass order by 1, 3
create table q8 (a int, b int constraint q8_a_not_null check (b > 0), primary key (a))
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'q8'::regclass order by 1, 3
create table q9 (b int constraint q9_a_not_null not null, a int not null)
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'q9'::regclass order by 1, 3
# meridian
# PostgreSQL finds these with an internal error, or with 23505 of pg_constraint.
create table t7 (a int constraint c not null, b int constraint c check (b>0))
create table t7b (a int constraint c check (a > 0), b int constraint c not null)
create table t9b (a int, b int, constraint c not null a, constraint c check (b>0))
create table d7 (a int not null, b int constraint d7_a_not_null not null)
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'd7'::regclass order by 1, 3
create table d19 (like d16 including all, e int constraint d16_c_not_null check (e > 0))
create table d22 (a serial, b int generated always as identity, c int constraint d22_a_not_null check (c > 0), d int constraint d22_b_not_null not null)
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'd22'::regclass order by 1, 3
create table d24 (a int constraint x not null constraint y not null)
create table q3 (a int constraint q3_b_check not null, b int check (b > 0))
