# Comments on a domain's constraints follow their names, and go with them.
create domain dom as int constraint pos check (value > 0) constraint nn not null
comment on constraint pos on domain dom is 'positive'
comment on constraint nn on domain dom is 'not null'
select conname, obj_description(oid, 'pg_constraint') from pg_constraint where contypid = 'dom'::regtype order by 1
comment on constraint nope on domain dom is 'x'
comment on constraint pos on domain nope is 'x'
alter domain dom rename constraint pos to pos2
alter domain dom rename constraint nn to nn2
select conname, obj_description(oid, 'pg_constraint') from pg_constraint where contypid = 'dom'::regtype order by 1
alter domain dom rename to dom2
select conname, obj_description(oid, 'pg_constraint') from pg_constraint where contypid = 'dom2'::regtype order by 1
alter domain dom2 drop constraint pos2
alter domain dom2 add constraint pos2 check (value > 1)
select conname, obj_description(oid, 'pg_constraint') from pg_constraint where contypid = 'dom2'::regtype order by 1
comment on constraint nn2 on domain dom2 is null
comment on constraint pos2 on domain dom2 is 'again'
begin
drop domain dom2
create domain dom2 as int constraint pos2 check (value > 1)
select obj_description(oid, 'pg_constraint') from pg_constraint where contypid = 'dom2'::regtype order by 1
rollback
select conname, obj_description(oid, 'pg_constraint') from pg_constraint where contypid = 'dom2'::regtype order by 1
create domain d3 as int not null
select conname from pg_constraint where contypid = 'd3'::regtype
comment on constraint d3_not_null on domain d3 is 'nn'
alter domain d3 rename to d4
select conname, obj_description(oid, 'pg_constraint') from pg_constraint where contypid = 'd4'::regtype
