# tables t, k, v, made
# COPY that skips what it cannot read
create table t (a int, b text, c date)
copy t from stdin (on_error ignore) <- 1\tx\t2020-01-01\ny\tz\t2020-01-01\n2\tw\tnope\n3\tv\t\\N\n
select * from t order by a
copy t from stdin (on_error 'ignore', log_verbosity verbose) <- 4\tx\t2020-01-01\ny\tz\t2020-01-01\n5\tw\tnope\n6\tv\t\\N\n
copy t from stdin (on_error ignore, log_verbosity silent) <- 7\tx\t2020-01-01\ny\tz\t2020-01-01\n
copy t from stdin (on_error ignore, log_verbosity default) <- y\tz\t2020-01-01\n
copy t from stdin (on_error ignore, format csv, header) <- a,b,c\n8,x,2020-01-01\ny,z,"2020-01-01"\n9999999999,z,2020-01-01\n
select * from t where a > 3 order by a
copy t from stdin (on_error ignore, reject_limit 1) <- 10\tx\t2020-01-01\ny\tz\t2020-01-01\n
copy t from stdin (on_error ignore, reject_limit 1) <- 11\tx\t2020-01-01\ny\tz\t2020-01-01\ny2\tz\t2020-01-01\n12\tx\t\\N\n
copy t from stdin (on_error ignore, reject_limit 1, log_verbosity verbose) <- 11\tx\t2020-01-01\ny\tz\t2020-01-01\ny2\tz\t2020-01-01\n12\tx\t\\N\n
copy t from stdin (on_error ignore) <- 13\tx\n
copy t from stdin (on_error ignore) <- 13\tx\t2020-01-01\t9\n
copy t from stdin (on_error stop) <- y\tx\t2020-01-01\n
copy t (a, b) from stdin (on_error ignore) <- 14\tx\nq\ty\n
copy t from stdin (on_error ignore) where a > 20 <- 14\tx\t\\N\nq\ty\t\\N\n21\ty\t\\N\n
select * from t where a > 8 order by a
create table k (id int primary key, n int not null check (n > 0))
copy k from stdin (on_error ignore) <- 1\t1\nx\t2\n2\ty\n3\t3\n
select * from k order by id
copy k from stdin (on_error ignore) <- x\t1\n1\t2\n
copy k from stdin (on_error ignore) <- x\t1\n4\t\\N\n
copy k from stdin (on_error ignore) <- x\t1\n4\t-1\n
copy k from stdin (on_error ignore, log_verbosity verbose) <- x12345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890\t1\n
create table v (a varchar(3), n numeric(4,1), e float4)
copy v from stdin (on_error ignore) <- abc\t1.25\t1\nabcd\t1\t1\nab\t123456\t1\na\t1\t1e300\nb\t2\tinf\n
select * from v order by a
# options
copy t from stdin (on_error nope) <- 90\tx\t\\N\n
copy t from stdin (on_error) <- 90\tx\t\\N\n
copy t from stdin (on_error ignore, on_error stop) <- 90\tx\t\\N\n
copy t to stdout (on_error ignore)
copy t to stdout (reject_limit 5)
copy t from stdin (reject_limit 5) <- 90\tx\t\\N\n
copy t from stdin (on_error stop, reject_limit 5) <- 90\tx\t\\N\n
copy t from stdin (on_error ignore, reject_limit 0) <- 90\tx\t\\N\n
copy t from stdin (on_error ignore, reject_limit -5) <- 90\tx\t\\N\n
copy t from stdin (on_error ignore, reject_limit 'x') <- 90\tx\t\\N\n
copy t from stdin (on_error ignore, reject_limit '3') <- 1\t1\n
copy t from stdin (on_error ignore, reject_limit) <- 90\tx\t\\N\n
copy t from stdin (log_verbosity nope) <- 90\tx\t\\N\n
copy t from stdin (log_verbosity verbose) <- x\t1\t\\N\n
copy t from stdin (log_verbosity) <- 90\tx\t\\N\n
# generated columns have no value yet
create table made (a int, b int generated always as (a * 2) stored, c int generated always as (a + 1) stored)
copy made (a) from stdin where b > 2 <- 1\n2\n
copy made (a) from stdin where a > 0 and c + b > 2 <- 1\n2\n
copy made from stdin where a > 1 <- 1\n2\n
# binary
copy made to stdout (format binary, header)
copy made to stdout (format binary, delimiter ',')
copy made to stdout (format binary, null 'x')
copy made to stdout (format binary, quote 'x')
copy made to stdout (format binary, force_quote *)
copy made from stdin (format binary, on_error ignore) <-
copy made from stdin (format binary, on_error ignore, header) <-
copy made from stdin (format binary, reject_limit 5) <-
copy made from stdin (format binary) <- x
copy made from stdin (format binary) <- PGCOPY
