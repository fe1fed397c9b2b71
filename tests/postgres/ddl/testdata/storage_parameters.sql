create table sp (a int primary key with (fillfactor = 80), b text) with (fillfactor = 70, autovacuum_enabled = off, toast.autovacuum_enabled = false) tablespace pg_default
select reloptions, relpersistence from pg_class where relname = 'sp'
select reloptions from pg_class where relname = 'sp_pkey'
select indexdef from pg_indexes where indexname = 'sp_pkey'
alter table sp set (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.1)
select reloptions from pg_class where relname = 'sp'
alter table sp reset (fillfactor, toast.autovacuum_enabled)
select reloptions from pg_class where relname = 'sp'
alter table sp set (fillfactor = 5)
alter table sp set (fillfactor = x)
alter table sp set (fillfactor)
alter table sp set (autovacuum_enabled = 7)
alter table sp set (autovacuum_vacuum_scale_factor = 200)
alter table sp set (autovacuum_vacuum_cost_delay = x)
alter table sp set (vacuum_index_cleanup = x)
alter table sp set (vacuum_index_cleanup = auto, vacuum_truncate)
select reloptions from pg_class where relname = 'sp'
alter table sp set (nope = 1)
alter table sp set (toast.nope = 1)
alter table sp set (nope.fillfactor = 1)
alter table sp set (fillfactor = 20, fillfactor = 30)
alter table sp set tablespace pg_default
alter table sp set tablespace nope
create table spx (a int) tablespace nope
create table spx (a int) tablespace pg_global
create unlogged table ul (a int)
select relpersistence from pg_class where relname = 'ul'
alter table ul set logged
select relpersistence from pg_class where relname = 'ul'
alter table ul set unlogged
select relpersistence from pg_class where relname = 'ul'
alter table sp disable trigger all, enable trigger all
alter table sp disable trigger user
alter table sp enable trigger user
alter table sp disable trigger nope
alter table sp enable always trigger nope
create index sp_b on sp (b) with (fillfactor = 75, deduplicate_items = off) tablespace pg_default
select indexdef from pg_indexes where indexname = 'sp_b'
select reloptions from pg_class where relname = 'sp_b'
alter index sp_b set (fillfactor = 90)
select reloptions from pg_class where relname = 'sp_b'
alter index sp_b reset (fillfactor)
select reloptions from pg_class where relname = 'sp_b'
alter index sp_b set tablespace pg_default
alter index sp_b set (buffering = auto)
alter index sp_b set (fillfactor = 200)
create index on sp (b) with (nope = 1)
create index on sp (b) tablespace nope
create unique index sp_u on sp (b desc) with (fillfactor = 50)
select indexdef from pg_indexes where indexname = 'sp_u'
cluster sp using sp_pkey
cluster sp using nope
cluster nope
alter table sp cluster on sp_pkey
alter table sp cluster on nope
alter table sp set without cluster
reindex table sp
reindex index sp_b
reindex index sp_pkey
reindex index sp
reindex index nope
reindex table nope
reindex schema nope
reindex schema public
insert into sp values (1, 'x')
insert into sp values (1, 'y')
