# Defaults that are constants, as pg_get_expr() and information_schema show them.
create table t (a int default 5, b int default -1, c bigint default 7, d bigint default -7, e bigint default 12345678901, f bigint default -12345678901, g smallint default -3, h numeric default -1.5, i numeric(10, 2) default 1.50, j double precision default -2, k double precision default -2.5, l real default 2, m char(3) default 'ab', n varchar(5) default 'ab', o text default '', p bool default false, q numeric default 0, r double precision default 'NaN', s int default 0, u bigint default 2147483648, v bigint default 2147483647, w numeric default 12345678901234567890)
select column_name, column_default from information_schema.columns where table_name = 't' order by ordinal_position
select pg_get_expr(adbin, adrelid) from pg_attrdef order by adnum
insert into t default values
select * from t
