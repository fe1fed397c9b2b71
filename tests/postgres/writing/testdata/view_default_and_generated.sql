# tables g
create table g (id int generated always as identity, x int check (x > 0), y int generated always as (x * 2) stored, z varchar(3) default 'z')
create view all_g as select * from g
insert into all_g (x) values (1)
insert into all_g (x, y) values (2, 4)
insert into all_g (x, y, id) values (2, default, default)
insert into all_g (id, x) values (77, 2)
insert into all_g (id, x) overriding system value values (77, 2)
insert into all_g (id, x) overriding user value values (78, 3)
insert into all_g (x) values (-1)
insert into all_g (x) values (5) returning *
insert into all_g (x) select generate_series(6, 8)
update all_g set x = x + 10 where x < 3 returning *
update all_g set y = 1
update all_g set y = default
update all_g set id = 1
update all_g set z = default where x = 5
update all_g set x = 0 where x = 5
create view pos (id, n, twice) as select id, x, x * 2 from g where x > 5
prepare ins (int) as insert into pos (n) values ($1) returning *
execute ins (9)
execute ins (3)
prepare upd (int, int) as update pos set n = $1 where twice = $2 returning old.n, n
execute upd (10, 18)
execute upd (10, 18)
prepare del (int) as delete from pos where n > $1
execute del (100)
execute del (9)
