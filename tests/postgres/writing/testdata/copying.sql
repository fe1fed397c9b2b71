# tables t, d, k, j
create type level as enum ('low', 'high')
create table t (id int primary key, name text, n numeric(6,2) default 9.99, at timestamp)
create table d (id serial, a int default 7, b text default 'dflt', g int generated always as (a + 1) stored)
create table k (code varchar(3) unique, n int not null check (n > 0), p int references t)
create table j (id int, l level, x jsonb, a int[], u uuid, y bytea, v interval, b boolean)
copy t from stdin <- 1\tone\t1.5\t2024-01-01 00:00:00\n2\ttwo\t\\N\t\\N\n
copy t (id, name) from stdin <- 3\tthree\n4\t\n5\t\\N\n
copy t (name, id) from stdin <- six\t6\n
copy t (id) from stdin <-
copy t from stdin <- 7\tseven\n
copy t from stdin <- 7\tseven\t1\t\\N\textra\n
copy t from stdin <- x\tseven\t1\t\\N\n
copy t from stdin <- 7\tseven\t12345.678\t\\N\n
copy t from stdin <- 7\tseven\t1.239\tnot a time\n
copy t from stdin <- 8\teight\t1\t\\N\n1\tagain\t1\t\\N\n
copy t from stdin <- \\N\tnobody\t1\t\\N\n
copy t from stdin with (format csv) <- 10,"quoted ""name""",1.239,2024-02-29\n11,,,\n12,"",,\n
copy t from stdin with (format csv, header) <- id,name,n,at\n13,thirteen,13,\n
copy t from stdin with (format csv, header match) <- id,name,n,wrong\n14,x,1,\n
copy t from stdin with (format csv, header match) <- id,name,n,at\n14,x,1,\n
copy t (id, name) from stdin with (format csv, delimiter ';', null 'nil', quote '''') <- 15;'semi;colon'\n16;nil\n17;'nil'\n
copy t (id, name) from stdin (delimiter '|', null '') <- 20|pipe\n21|\n
copy t (id, name) from stdin csv <- 22,"multi\nline"\n
copy t (id, name) from stdin with (format csv) <- 23,"open\n
copy t (id, nope) from stdin <- 1\t2\n
copy t (id, id) from stdin <- 1\t2\n
copy nope from stdin <- 1\n
copy t from stdin with (format nope) <- 1\n
copy t from stdin with (delimiter 'ab') <- 1\n
copy t from stdin with (nope 1) <- 1\n
copy t (id, name) from stdin where id > 30 <- 30\tno\n31\tyes\n
copy t (id, name) from stdin <- 32\ttab\\there\\nand line\\\\slash\n
copy t (id, name) from stdin <- 33\tA\\x41\\101\n
copy t (id, name) from stdin <- 34\tend\n\\.\n
copy t (id, name) to stdout
copy t (name, id) to stdout with (format csv, header, force_quote (name))
copy (select id, n from t where id < 4 order by id) to stdout
copy (select id, name from t order by id desc limit 3) to stdout with (format csv, delimiter ';', null 'nil')
copy (values (1, null), (2, 'a"b')) to stdout csv quote '"' escape '\'
copy d (b) from stdin <- one\ntwo\n
copy d (a, b) from stdin <- 1\tx\n\\N\ty\n
copy d (id, a) from stdin <- 100\t1\n
copy d (g) from stdin <- 1\n
copy d from stdin <- 50\t1\tz\n
copy d (id, a, b, g) from stdin <- 51\t1\tz\t2\n
copy d to stdout
copy k from stdin <- abc\t1\t1\nabd\t2\t\\N\n
copy k from stdin <- abcd\t1\t1\n
copy k from stdin <- abe\t0\t1\n
copy k from stdin <- abe\t\\N\t1\n
copy k from stdin <- abe\t3\t999\n
copy k from stdin <- abe\t3\t2\nabe\t4\t2\n
copy k (n) from stdin <- 5\n6\n
copy j from stdin <- 1\tlow\t{"a": 1}\t{1,2}\ta0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\t\\\\x0102\t1 day\tt\n
copy j from stdin with (format csv) <- 2,high,"{""b"": [1, 2]}","{3,NULL}",,\\x,1 mon -1 day,off\n
copy j (id, l) from stdin <- 3\tmiddle\n
copy j (id, x) from stdin <- 3\t{bad\n
copy j (id, a) from stdin <- 3\t{1,x}\n
copy j (id, u) from stdin <- 3\txyz\n
copy j (id, y) from stdin <- 3\t\\\\xzz\n
copy j (id, v) from stdin <- 3\tlong\n
copy j (id, b) from stdin <- 3\tperhaps\n
copy j to stdout
copy j to stdout with (format csv, header, null '-')
copy j (id, l) to stdout with (format csv, force_quote *)
copy t (id, name) from stdin with (format csv, force_null (name)) <- 201,""\n202,\n203,"x"\n
copy t (id, name) from stdin with (format csv, force_not_null (name)) <- 204,""\n205,\n
copy t (id, name, at) from stdin with (format csv, force_null *, null 'nil') <- 206,"nil",nil\n207,nil,"nil"\n
copy t (id, name) from stdin with (format csv, force_null (name), force_not_null (name)) <- 208,""\n209,\n
copy t (id, at) from stdin with (format csv, force_not_null (at)) <- 210,\n
copy t (id, name) from stdin csv force not null name <- 211,\n
copy t (id, name) from stdin csv force null name, id <- 212,""\n
copy t (id, name) from stdin with (format csv, force_null (n)) <- 1,2\n
copy t (id, name) from stdin with (format csv, force_not_null (nope)) <- 1,2\n
copy t (id, name) from stdin with (force_null (name)) <- 1\t2\n
copy t (id, name) from stdin with (format csv, force_quote (name)) <- 1,2\n
copy t (id, name) from stdin with (format csv, force_null 3) <- 1,2\n
copy t (id, name) to stdout with (format csv, force_null (name))
copy t (id, name) to stdout with (format csv, force_not_null *)
copy t (id, name) to stdout with (format csv, force_quote (n))
copy (select 1 as a) to stdout with (format csv, force_quote (n))
copy t (id, name) to stdout with (force_quote (name))
copy t (id, name) from stdin with (format csv, null '"', force_quote (name)) <- 1,2\n
copy (select id, name, at from t where id > 200 order by id) to stdout with (null 'NIL')
