# tables p, c, g
create table p (id int primary key, s text)
create table c (id int primary key, pid int references p (id) on delete cascade)
create table g (id int, cid int references c)
insert into p values (1, 'a'), (2, 'b')
insert into c values (10, 1), (20, 2)
insert into g values (100, 10)
truncate p
truncate c
truncate p, c
truncate g, p, c
insert into p values (1, 'a'), (2, 'b')
insert into c values (10, 1), (20, 2), (30, null)
insert into g values (100, 10)
truncate c cascade
truncate p cascade
insert into c values (1, 77) on conflict do nothing
insert into p values (1, 'a'), (2, 'b')
merge into c using (values (5, 99)) v(a, b) on id = a when not matched then insert values (a, b)
merge into c using (values (5, 1), (6, 2)) v(a, b) on id = a when not matched then insert values (a, b) returning *
with x as (insert into p values (3, 'c') returning id) insert into c select id + 100, id from x returning *
with x as (delete from p where id = 3 returning id) select * from x
insert into c values (5, 2) on conflict (id) do update set pid = 44
insert into c values (5, 2) on conflict (id) do update set pid = excluded.pid returning old.pid, new.pid
merge into p using (values (2)) v(k) on id = k when matched then delete
update p set id = 50 where id = 1 returning id
