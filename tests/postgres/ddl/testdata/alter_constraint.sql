# Only what is said of a foreign key changes.
create table p (id int primary key)
create table c (id int, constraint fk foreign key (id) references p deferrable initially deferred)
alter table c alter constraint fk
select condeferrable, condeferred from pg_constraint where conname = 'fk'
alter table c alter constraint fk not deferrable
select condeferrable, condeferred from pg_constraint where conname = 'fk'
alter table c alter constraint fk deferrable
select condeferrable, condeferred from pg_constraint where conname = 'fk'
alter table c alter constraint fk initially deferred
select condeferrable, condeferred from pg_constraint where conname = 'fk'
alter table c alter constraint fk initially immediate
select condeferrable, condeferred from pg_constraint where conname = 'fk'
