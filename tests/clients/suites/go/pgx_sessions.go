// pgx: prepared statements, errors, notifications, cancels and pools.
package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

func pgxError(t *T, err error) *pgconn.PgError {
	var found *pgconn.PgError
	t.True(errors.As(err, &found), "got %v", err)
	return found
}

// eventually waits until the condition holds.
func eventually(t *T, holds func() bool) {
	for !holds() {
		select {
		case <-t.Ctx.Done():
			t.Fail("it never came to be")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

var pgxSessions = []Case{
	{"prepared_statements", onPeople(func(t *T, c *pgx.Conn) {
		described := Must(c.Prepare(t.Ctx, "add", "insert into people (name, age) values ($1, $2)"))
		t.Equal(len(described.ParamOIDs), 2)
		for _, name := range []string{"ann", "bob"} {
			Must(c.Exec(t.Ctx, "add", name, 7))
		}
		t.Equal(names(t, c), []string{"ann", "bob"})
		t.Equal(pgxScalar[int64](t, c,
			"select count(*) from pg_prepared_statements where name = 'add'"), int64(1))
		t.Ok(c.Deallocate(t.Ctx, "add"))
		t.Equal(pgxScalar[int64](t, c,
			"select count(*) from pg_prepared_statements where name = 'add'"), int64(0))
		t.Ok(c.DeallocateAll(t.Ctx))
	})},
	{"statement_cache_after_ddl", onPeople(func(t *T, c *pgx.Conn) {
		Must(c.Exec(t.Ctx, "insert into people (name) values ('ann')"))
		const query = "select * from people"
		t.Equal(len(Must(pgx.CollectRows(Must(c.Query(t.Ctx, query)), pgx.RowToMap))[0]), 3)
		Must(c.Exec(t.Ctx, "alter table people add column mail text"))
		// The first use may fail with "cached plan must not change result type"; the next may not.
		rows, err := c.Query(t.Ctx, query)
		if err == nil {
			_, err = pgx.CollectRows(rows, pgx.RowToMap)
		}
		if err != nil {
			t.Code(err, "0A000")
		}
		t.Equal(len(Must(pgx.CollectRows(Must(c.Query(t.Ctx, query)), pgx.RowToMap))[0]), 4)
	})},
	{"many_results_at_once", onPgx(func(t *T, c *pgx.Conn) {
		results := Must(c.PgConn().Exec(t.Ctx,
			"create table a (n int); insert into a values (1), (2); select * from a").ReadAll())
		t.Equal(len(results), 3)
		t.Equal(results[0].CommandTag.String(), "CREATE TABLE")
		t.Equal(results[1].CommandTag.String(), "INSERT 0 2")
		t.Equal(string(results[2].Rows[1][0]), "2")
	})},
	{"errors_have_fields", onPeople(func(t *T, c *pgx.Conn) {
		addPerson(t, c, "ann")
		_, err := c.Exec(t.Ctx, "insert into people (name) values ('ann')")
		found := pgxError(t, err)
		t.Equal(found.Code, "23505")
		t.Equal(found.ConstraintName, "people_name_key")
		t.Equal(found.TableName, "people")
		t.Equal(found.SchemaName, t.Schema)
		t.Equal(found.Detail, "Key (name)=(ann) already exists.")
		t.Equal(found.Severity, "ERROR")
		_, err = c.Exec(t.Ctx, "insert into people (name) values (null)")
		t.Code(err, "23502")
		t.Equal(pgxError(t, err).ColumnName, "name")
		_, err = c.Exec(t.Ctx, "insert into people (name, age) values ('x', -1)")
		t.Code(err, "23514")
		t.Equal(pgxError(t, err).ConstraintName, "people_age_check")
	})},
	{"foreign_key_errors", onPeople(func(t *T, c *pgx.Conn) {
		Must(c.Exec(t.Ctx, "create table pets (id int primary key, owner bigint references people)"))
		_, err := c.Exec(t.Ctx, "insert into pets values (1, 99)")
		t.Code(err, "23503")
		t.Equal(pgxError(t, err).ConstraintName, "pets_owner_fkey")
		t.Equal(pgxError(t, err).Detail, `Key (owner)=(99) is not present in table "people".`)
	})},
	{"errors_have_positions", onPgx(func(t *T, c *pgx.Conn) {
		_, err := c.Exec(t.Ctx, "select 1 frm x where")
		t.Code(err, "42601")
		_, err = c.Exec(t.Ctx, "select absent from (select 1) s")
		t.Code(err, "42703")
		t.Equal(pgxError(t, err).Position, int32(8))
		_, err = c.Exec(t.Ctx, "select * from absent")
		t.Code(err, "42P01")
		t.Equal(pgxError(t, err).Message, `relation "absent" does not exist`)
	})},
	{"notices", func(t *T) {
		config := Must(pgx.ParseConfig(t.DSN()))
		var heard []string
		config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) {
			heard = append(heard, notice.Severity+" "+notice.Message)
		}
		c := Must(pgx.ConnectConfig(t.Ctx, config))
		defer c.Close(t.Ctx)
		Must(c.Exec(t.Ctx, "drop table if exists absent"))
		t.Equal(heard, []string{`NOTICE table "absent" does not exist, skipping`})
	}},
	{"notifications", onPgx(func(t *T, c *pgx.Conn) {
		other := Must(pgx.Connect(t.Ctx, t.DSN()))
		defer other.Close(t.Ctx)
		Must(c.Exec(t.Ctx, "listen pgx_news"))
		t.Ok(pgx.BeginFunc(t.Ctx, other, func(tx pgx.Tx) error {
			Must(tx.Exec(t.Ctx, "notify pgx_news, 'one'"))
			_, err := tx.Exec(t.Ctx, "select pg_notify($1, $2)", "pgx_news", "two ☃")
			return err
		}))
		for _, payload := range []string{"one", "two ☃"} {
			heard := Must(c.WaitForNotification(t.Ctx))
			t.Equal(heard.Channel, "pgx_news")
			t.Equal(heard.Payload, payload)
			t.Equal(heard.PID, other.PgConn().PID())
		}
		Must(c.Exec(t.Ctx, "unlisten *"))
		Must(other.Exec(t.Ctx, "notify pgx_news, 'three'"))
		short, cancel := context.WithTimeout(t.Ctx, 300*time.Millisecond)
		defer cancel()
		_, err := c.WaitForNotification(short)
		t.True(pgconn.Timeout(err), "got %v", err)
	})},
	{"cancel_by_context", onPgx(func(t *T, c *pgx.Conn) {
		short, cancel := context.WithTimeout(t.Ctx, 200*time.Millisecond)
		defer cancel()
		_, err := c.Exec(short, "select pg_sleep(20)")
		t.Is(err, context.DeadlineExceeded)
		t.True(c.IsClosed(), "the connection is open")
	})},
	{"cancel_request", onPgx(func(t *T, c *pgx.Conn) {
		ended := make(chan error, 1)
		go func() {
			_, err := c.Exec(t.Ctx, "select pg_sleep(20)")
			ended <- err
		}()
		other := Must(pgx.Connect(t.Ctx, t.DSN()))
		defer other.Close(t.Ctx)
		eventually(t, func() bool {
			return pgxScalar[int64](t, other, "select count(*) from pg_stat_activity where pid = $1"+
				" and state = 'active' and query like 'select pg_sleep%'", int64(c.PgConn().PID())) == 1
		})
		t.Ok(c.PgConn().CancelRequest(t.Ctx))
		t.Code(<-ended, "57014")
		t.Equal(pgxScalar[int32](t, c, "select 5"), int32(5))
	})},
	{"statement_timeout", onPgx(func(t *T, c *pgx.Conn) {
		Must(c.Exec(t.Ctx, "set statement_timeout = '100ms'"))
		_, err := c.Exec(t.Ctx, "select pg_sleep(20)")
		t.Code(err, "57014")
	})},
	{"terminated_backend", onPgx(func(t *T, c *pgx.Conn) {
		other := Must(pgx.Connect(t.Ctx, t.DSN()))
		defer other.Close(t.Ctx)
		t.Equal(pgxScalar[bool](t, other, "select pg_terminate_backend($1)", int32(c.PgConn().PID())), true)
		eventually(t, func() bool {
			_, err := c.Exec(t.Ctx, "select 1")
			return err != nil
		})
		t.True(c.IsClosed(), "the connection is open")
	})},
	{"row_locks_are_skipped", onPeople(func(t *T, c *pgx.Conn) {
		Must(c.Exec(t.Ctx, "insert into people (name) values ('ann'), ('bob')"))
		other := Must(pgx.Connect(t.Ctx, t.DSN()))
		defer other.Close(t.Ctx)
		const next = "select name from people order by id limit 1 for update skip locked"
		first, second := Must(c.Begin(t.Ctx)), Must(other.Begin(t.Ctx))
		t.Equal(pgxScalar[string](t, first.Conn(), next), "ann")
		t.Equal(pgxScalar[string](t, second.Conn(), next), "bob")
		_, err := second.Exec(t.Ctx, "select * from people where name = 'ann' for update nowait")
		t.Code(err, "55P03")
		t.Ok(first.Rollback(t.Ctx))
		t.Ok(second.Rollback(t.Ctx))
	})},
	{"advisory_locks", onPgx(func(t *T, c *pgx.Conn) {
		other := Must(pgx.Connect(t.Ctx, t.DSN()))
		defer other.Close(t.Ctx)
		Must(c.Exec(t.Ctx, "select pg_advisory_lock($1)", int64(4711)))
		t.Equal(pgxScalar[bool](t, other, "select pg_try_advisory_lock($1)", int64(4711)), false)
		t.Equal(pgxScalar[bool](t, c, "select pg_advisory_unlock($1)", int64(4711)), true)
		t.Equal(pgxScalar[bool](t, other, "select pg_try_advisory_xact_lock($1)", int64(4711)), true)
	})},
	{"pool", func(t *T) {
		config := Must(pgxpool.ParseConfig(t.DSN("pool_max_conns", "3", "pool_min_conns", "1")))
		prepared := 0
		var guard sync.Mutex
		config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
			guard.Lock()
			defer guard.Unlock()
			prepared++
			_, err := c.Exec(ctx, "set application_name = 'pooled'")
			return err
		}
		pool := Must(pgxpool.NewWithConfig(t.Ctx, config))
		defer pool.Close()
		Must(pool.Exec(t.Ctx, people))
		var all sync.WaitGroup
		failed := make(chan error, 20)
		for i := range 20 {
			all.Go(func() {
				_, err := pool.Exec(t.Ctx, "insert into people (name) values ($1::int4::text)", i)
				failed <- err
			})
		}
		all.Wait()
		for range 20 {
			t.Ok(<-failed)
		}
		var count int64
		t.Ok(pool.QueryRow(t.Ctx, "select count(*) from people").Scan(&count))
		t.Equal(count, int64(20))
		var name string
		t.Ok(pool.QueryRow(t.Ctx, "show application_name").Scan(&name))
		t.Equal(name, "pooled")
		t.Equal(pool.Stat().MaxConns(), int32(3))
		t.True(prepared >= 1 && prepared <= 3, "got %d connections", prepared)
	}},
	{"pool_acquires", func(t *T) {
		pool := Must(pgxpool.New(t.Ctx, t.DSN("pool_max_conns", "2")))
		defer pool.Close()
		first := Must(pool.Acquire(t.Ctx))
		t.Ok(first.Ping(t.Ctx))
		t.Equal(pool.Stat().AcquiredConns(), int32(1))
		first.Release()
		t.Ok(pool.AcquireFunc(t.Ctx, func(c *pgxpool.Conn) error {
			_, err := c.Exec(t.Ctx, "create table pooled (a int)")
			return err
		}))
		tx := Must(pool.BeginTx(t.Ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}))
		Must(tx.Exec(t.Ctx, "insert into pooled values (1)"))
		t.Ok(tx.Commit(t.Ctx))
		n := Must(pool.CopyFrom(t.Ctx, pgx.Identifier{"pooled"}, []string{"a"},
			pgx.CopyFromRows([][]any{{2}, {3}})))
		t.Equal(n, int64(2))
		pool.Reset()
		var sum int64
		t.Ok(pool.QueryRow(t.Ctx, "select sum(a) from pooled").Scan(&sum))
		t.Equal(sum, int64(6))
	}},
}
