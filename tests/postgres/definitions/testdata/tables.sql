create schema s
create type mood as enum ('sad', 'ok', 'happy')
create domain positive as int check (value > 0)
create domain short as varchar(10) default 'x'::varchar check (length(value) < 8) check (value <> 'no')
create sequence sq
create table t (id int primary key, a int, b bigint, si smallint, n numeric, m numeric(10, 2), r real, d double precision, f bool, x text, v varchar, w varchar(10), c char(4), day date, ts timestamp, tz timestamptz, ti time, iv interval, u uuid, j json, jb jsonb, by bytea, ia int[], ta text[], va varchar(5)[], mo mood, po positive, sh short, nm name)
create table u (id int, a int, y text, z numeric(6, 2))
create table w (id bigint, k varchar(8), q int)
create table s.o (id int, "B b" text, "select" int)
insert into t (id, a, b, n, m, f, x, v, w, day, ts, mo, po, sh, ia, ta, jb) values (1, 10, 100, 1.5, 2.25, true, 'one', 'v', 'w', '2025-01-02', '2025-01-02 03:04:05', 'ok', 5, 'sh', '{1,2,3}', '{a,b}', '{"a": 1}'), (2, 20, 200, 2.5, 3.25, false, 'two', 'vv', 'ww', '2025-02-03', '2025-02-03 04:05:06', 'sad', 6, 'hs', '{4}', '{c}', '{"b": 2}'), (3, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null)
insert into u values (1, 10, 'y1', 1.25), (2, 30, 'y2', 2.5)
insert into w values (1, 'k1', 5), (9, 'k9', 6)
insert into s.o values (1, 'B', 7)
