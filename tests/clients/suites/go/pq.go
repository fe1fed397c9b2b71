// lib/pq, by way of database/sql.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/lib/pq"
)

func pqClient() Client { return Client{"pq", versionOf("github.com/lib/pq"), pqCases} }

func pqError(t *T, err error) *pq.Error {
	var found *pq.Error
	t.True(errors.As(err, &found), "got %v", err)
	return found
}

// viaPq is a value that goes to the server as a parameter of a type, and comes back.
func viaPq[V any](t *T, db *sql.DB, kind string, values ...V) {
	for _, value := range values {
		t.Equal(sqlScalar[V](t, db, "select $1::"+kind, value), value)
	}
}

var pqCases = []Case{
	{"connect_keywords", func(t *T) {
		db := Must(sql.Open("postgres", fmt.Sprintf(
			"host=%s port=%s user=%s dbname=%s sslmode=disable application_name='my suite'",
			os.Getenv("PGHOST"), os.Getenv("PGPORT"), os.Getenv("PGUSER"), os.Getenv("PGDATABASE"))))
		defer db.Close()
		t.Equal(sqlScalar[string](t, db, "show application_name"), "my suite")
	}},
	{"connect_options", func(t *T) {
		db := Must(sql.Open("postgres", t.DSN("options", "-c statement_timeout=7000")))
		defer db.Close()
		t.Equal(sqlScalar[string](t, db, "show statement_timeout"), "7s")
		t.Equal(sqlScalar[string](t, db, "select current_schema()"), t.Schema)
	}},
	{"connect_by_connector", func(t *T) {
		db := sql.OpenDB(Must(pq.NewConnector(t.DSN())))
		defer db.Close()
		t.Ok(db.PingContext(t.Ctx))
	}},
	{"connect_wrong_database", func(t *T) {
		db := Must(sql.Open("postgres", fmt.Sprintf("host=%s port=%s user=%s dbname=absent_database sslmode=disable",
			os.Getenv("PGHOST"), os.Getenv("PGPORT"), os.Getenv("PGUSER"))))
		defer db.Close()
		err := db.PingContext(t.Ctx)
		t.Code(err, "3D000")
		t.Equal(string(pqError(t, err).Severity), "FATAL")
	}},
	{"query_rows", onSQL("postgres", func(t *T, db *sql.DB) {
		rows := Must(db.QueryContext(t.Ctx, "select id, artist from album order by id"))
		defer rows.Close()
		var found []sql.NullString
		for rows.Next() {
			var id int
			var artist sql.NullString
			t.Ok(rows.Scan(&id, &artist))
			found = append(found, artist)
		}
		t.Ok(rows.Err())
		t.Equal(found, []sql.NullString{{String: "John Coltrane", Valid: true}, {}})
	})},
	{"types", onSQL("postgres", func(t *T, db *sql.DB) {
		viaPq[int64](t, db, "bigint", 1<<62, -1)
		viaPq(t, db, "float8", 1.5, -1e300)
		viaPq(t, db, "text", "", `it's "q" \ ☃`)
		viaPq(t, db, "bool", true, false)
		viaPq(t, db, "bytea", []byte{0, 255, 92, 39})
		viaPq(t, db, "numeric", "123456789012345678.901")
		viaPq(t, db, "uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
		viaPq(t, db, "jsonb", `{"a": [1, null]}`)
		viaPq(t, db, "interval", "1 day 02:03:04")
	})},
	{"types_in_binary", func(t *T) {
		db := Must(sql.Open("postgres", t.DSN("binary_parameters", "yes")))
		defer db.Close()
		viaPq[int64](t, db, "bigint", 1<<62, -1)
		viaPq(t, db, "bytea", []byte{0, 255, 92, 39})
		viaPq(t, db, "text", "☃")
		viaPq(t, db, "bool", true)
	}},
	{"times", onSQL("postgres", func(t *T, db *sql.DB) {
		moment := time.Date(2024, 2, 29, 12, 30, 15, 123456000, time.UTC)
		back := sqlScalar[time.Time](t, db, "select $1::timestamptz", moment)
		t.True(back.Equal(moment), "got %v", back)
		t.True(sqlScalar[time.Time](t, db, "select $1::timestamp", moment).Equal(moment), "timestamp")
		day := sqlScalar[time.Time](t, db, "select date '2024-02-29'")
		t.Equal(day.Format(time.DateOnly), "2024-02-29")
		t.Equal(sqlScalar[pq.NullTime](t, db, "select null::timestamptz").Valid, false)
		old := sqlScalar[time.Time](t, db, "select timestamptz '1883-01-01 00:00:00+00'")
		t.True(old.Equal(time.Date(1883, 1, 1, 0, 0, 0, 0, time.UTC)), "got %v", old)
	})},
	{"arrays", onSQL("postgres", func(t *T, db *sql.DB) {
		var numbers []int64
		var texts []string
		var nulls []sql.NullString
		t.Ok(db.QueryRowContext(t.Ctx, "select $1::bigint[], $2::text[], '{a,null}'::text[]",
			pq.Array([]int64{1, -2}), pq.Array([]string{"a,b", `"q\`, ""})).
			Scan(pq.Array(&numbers), pq.Array(&texts), pq.Array(&nulls)))
		t.Equal(numbers, []int64{1, -2})
		t.Equal(texts, []string{"a,b", `"q\`, ""})
		t.Equal(nulls, []sql.NullString{{String: "a", Valid: true}, {}})
		t.Equal(sqlScalar[int](t, db, "select count(*) from album where id = any($1)",
			pq.Array([]int64{2, 9})), 1)
	})},
	{"prepared", onSQL("postgres", func(t *T, db *sql.DB) {
		statement := Must(db.PrepareContext(t.Ctx, "select title from album where id = $1"))
		defer statement.Close()
		var title string
		for range 3 {
			t.Ok(statement.QueryRowContext(t.Ctx, 2).Scan(&title))
			t.Equal(title, "Jeru")
		}
	})},
	{"returning_and_upsert", onSQL("postgres", func(t *T, db *sql.DB) {
		t.Equal(sqlScalar[int](t, db, "insert into album (title) values ($1) returning id", "x"), 3)
		Must(db.ExecContext(t.Ctx, "create unique index on album (title)"))
		done := Must(db.ExecContext(t.Ctx, `insert into album (title, sold) values ('x', 9), ('y', 1)
			on conflict (title) do update set sold = album.sold + excluded.sold`))
		t.Equal(Must(done.RowsAffected()), int64(2))
		t.Equal(sqlScalar[int](t, db, "select sold from album where title = 'x'"), 9)
	})},
	{"many_results", onSQL("postgres", func(t *T, db *sql.DB) {
		rows := Must(db.QueryContext(t.Ctx, "select 1; select 'a' union all select 'b'"))
		defer rows.Close()
		var found []string
		for more := true; more; more = rows.NextResultSet() {
			for rows.Next() {
				var value string
				t.Ok(rows.Scan(&value))
				found = append(found, value)
			}
		}
		t.Equal(found, []string{"1", "a", "b"})
	})},
	{"column_types", onSQL("postgres", func(t *T, db *sql.DB) {
		rows := Must(db.QueryContext(t.Ctx, "select id, title, price from album"))
		defer rows.Close()
		types := Must(rows.ColumnTypes())
		t.Equal(types[1].DatabaseTypeName(), "VARCHAR")
		length, _ := types[1].Length()
		t.Equal(length, int64(128))
		precision, scale, _ := types[2].DecimalSize()
		t.Equal([]int64{precision, scale}, []int64{5, 2})
	})},
	{"copy_in", onSQL("postgres", func(t *T, db *sql.DB) {
		tx := Must(db.BeginTx(t.Ctx, nil))
		statement := Must(tx.PrepareContext(t.Ctx, pq.CopyIn("album", "title", "price", "sold")))
		for i := range 2000 {
			Must(statement.ExecContext(t.Ctx, fmt.Sprintf("t\t%d", i), nil, i))
		}
		Must(statement.ExecContext(t.Ctx))
		t.Ok(statement.Close())
		t.Ok(tx.Commit())
		t.Equal(sqlScalar[int](t, db, "select sum(sold) from album where price is null"), 1999000)
		t.Equal(sqlScalar[string](t, db, "select title from album where sold = 7"), "t\t7")
	})},
	{"copy_in_schema_fails", onSQL("postgres", func(t *T, db *sql.DB) {
		tx := Must(db.BeginTx(t.Ctx, nil))
		statement := Must(tx.PrepareContext(t.Ctx, pq.CopyInSchema(t.Schema, "album", "title")))
		_, err := statement.ExecContext(t.Ctx, nil)
		if err == nil {
			_, err = statement.ExecContext(t.Ctx)
		}
		t.Code(err, "23502")
		_ = statement.Close()
		_ = tx.Rollback()
		t.Equal(sqlScalar[int](t, db, "select count(*) from album"), 2)
	})},
	{"errors_have_fields", onSQL("postgres", func(t *T, db *sql.DB) {
		Must(db.ExecContext(t.Ctx, "alter table album add constraint titles unique (title)"))
		_, err := db.ExecContext(t.Ctx, "insert into album (title) values ('Jeru')")
		found := pqError(t, err)
		t.Equal(string(found.Code), "23505")
		t.Equal(found.Code.Name(), "unique_violation")
		t.Equal(found.Constraint, "titles")
		t.Equal(found.Table, "album")
		t.Equal(found.Schema, t.Schema)
		_, err = db.ExecContext(t.Ctx, "select absent from album")
		t.Code(err, "42703")
		t.Equal(pqError(t, err).Position, "8")
		t.Equal(string(pqError(t, err).Code.Class()), "42")
	})},
	{"transaction_levels", onSQL("postgres", func(t *T, db *sql.DB) {
		for level, wanted := range map[sql.IsolationLevel]string{
			sql.LevelReadCommitted:  "read committed",
			sql.LevelRepeatableRead: "repeatable read", sql.LevelSerializable: "serializable",
		} {
			tx := Must(db.BeginTx(t.Ctx, &sql.TxOptions{Isolation: level}))
			t.Equal(sqlScalar[string](t, tx, "show transaction_isolation"), wanted)
			t.Ok(tx.Commit())
		}
		tx := Must(db.BeginTx(t.Ctx, &sql.TxOptions{ReadOnly: true}))
		_, err := tx.ExecContext(t.Ctx, "delete from album")
		t.Code(err, "25006")
		t.Ok(tx.Rollback())
	})},
	{"savepoints", onSQL("postgres", func(t *T, db *sql.DB) {
		tx := Must(db.BeginTx(t.Ctx, nil))
		Must(tx.ExecContext(t.Ctx, "savepoint one"))
		_, err := tx.ExecContext(t.Ctx, "insert into album (title) values (null)")
		t.Code(err, "23502")
		Must(tx.ExecContext(t.Ctx, "rollback to savepoint one"))
		Must(tx.ExecContext(t.Ctx, "update album set sold = 4"))
		t.Ok(tx.Commit())
		t.Equal(sqlScalar[int](t, db, "select sum(sold) from album"), 8)
	})},
	{"failed_transaction_commits_not", onSQL("postgres", func(t *T, db *sql.DB) {
		tx := Must(db.BeginTx(t.Ctx, nil))
		Must(tx.ExecContext(t.Ctx, "delete from album"))
		_, err := tx.ExecContext(t.Ctx, "select 1 / 0")
		t.Code(err, "22012")
		t.True(tx.Commit() != nil, "it was committed")
		t.Equal(sqlScalar[int](t, db, "select count(*) from album"), 2)
	})},
	{"listener", func(t *T) {
		events := make(chan pq.ListenerEventType, 10)
		listener := pq.NewListener(t.DSN(), 10*time.Millisecond, time.Second,
			func(event pq.ListenerEventType, _ error) { events <- event })
		defer listener.Close()
		t.Ok(listener.Listen("pq_news"))
		t.Equal(<-events, pq.ListenerEventConnected)
		t.Ok(listener.Ping())
		db := Must(sql.Open("postgres", t.DSN()))
		defer db.Close()
		Must(db.ExecContext(t.Ctx, "select pg_notify('pq_news', $1)", "hello ☃"))
		select {
		case heard := <-listener.Notify:
			t.Equal(heard.Channel+" "+heard.Extra, "pq_news hello ☃")
		case <-t.Ctx.Done():
			t.Fail("nothing was heard")
		}
		t.Ok(listener.Unlisten("pq_news"))
		t.Is(listener.Unlisten("pq_news"), pq.ErrChannelNotOpen)
	}},
	{"listener_connects_again", func(t *T) {
		listener := pq.NewListener(t.DSN("application_name", "pq_lost"), 10*time.Millisecond,
			time.Second, nil)
		defer listener.Close()
		t.Ok(listener.Listen("pq_lost"))
		db := Must(sql.Open("postgres", t.DSN()))
		defer db.Close()
		Must(db.ExecContext(t.Ctx, `select pg_terminate_backend(pid) from pg_stat_activity
			where application_name = 'pq_lost'`))
		select {
		case heard := <-listener.Notify:
			t.True(heard == nil, "got %v", heard)
		case <-t.Ctx.Done():
			t.Fail("the loss was not told")
		}
		Must(db.ExecContext(t.Ctx, "notify pq_lost, 'again'"))
		select {
		case heard := <-listener.Notify:
			t.Equal(heard.Extra, "again")
		case <-t.Ctx.Done():
			t.Fail("nothing was heard")
		}
	}},
	{"notices", func(t *T) {
		var heard []string
		connector := pq.ConnectorWithNoticeHandler(Must(pq.NewConnector(t.DSN())),
			func(notice *pq.Error) { heard = append(heard, notice.Severity+" "+notice.Message) })
		db := sql.OpenDB(connector)
		defer db.Close()
		Must(db.ExecContext(t.Ctx, "create table if not exists n (a int)"))
		Must(db.ExecContext(t.Ctx, "create table if not exists n (a int)"))
		t.Equal(heard, []string{`NOTICE relation "n" already exists, skipping`})
	}},
	{"cancel_by_context", onSQL("postgres", func(t *T, db *sql.DB) {
		short, cancel := context.WithTimeout(t.Ctx, 200*time.Millisecond)
		defer cancel()
		_, err := db.ExecContext(short, "select pg_sleep(20)")
		t.True(err != nil && short.Err() != nil, "got %v", err)
		t.Equal(sqlScalar[int](t, db, "select 2"), 2)
	})},
	{"identifiers_and_literals", onSQL("postgres", func(t *T, db *sql.DB) {
		const name = `we"ird Näme`
		Must(db.ExecContext(t.Ctx, "create table "+pq.QuoteIdentifier(name)+" (a text)"))
		Must(db.ExecContext(t.Ctx, "insert into "+pq.QuoteIdentifier(name)+
			" values ("+pq.QuoteLiteral(`it's \n`)+")"))
		t.Equal(sqlScalar[string](t, db, "select a from "+pq.QuoteIdentifier(name)), `it's \n`)
	})},
}
