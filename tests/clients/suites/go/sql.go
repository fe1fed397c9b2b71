// database/sql over pgx's driver (stdlib).
package main

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
)

func sqlClient() Client {
	return Client{"database-sql", strings.TrimPrefix(runtime.Version(), "go"), sqlCases}
}

// onSQL opens a database of a driver, with a table of albums.
func onSQL(driver string, body func(t *T, db *sql.DB)) func(t *T) {
	return func(t *T) {
		db := Must(sql.Open(driver, t.DSN()))
		defer db.Close()
		Must(db.ExecContext(t.Ctx, `create table album (id bigint generated always as identity primary key,
			title varchar(128) not null, artist text, price numeric(5, 2), sold int not null default 0)`))
		Must(db.ExecContext(t.Ctx, `insert into album (title, artist, price) values
			('Blue Train', 'John Coltrane', 56.99), ('Jeru', null, 17.99)`))
		body(t, db)
	}
}

func sqlScalar[V any](t *T, on interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, query string, arguments ...any) V {
	var found V
	t.Ok(on.QueryRowContext(t.Ctx, query, arguments...).Scan(&found))
	return found
}

var sqlCases = []Case{
	{"ping_and_stats", onSQL("pgx", func(t *T, db *sql.DB) {
		db.SetMaxOpenConns(4)
		t.Ok(db.PingContext(t.Ctx))
		t.Equal(db.Stats().MaxOpenConnections, 4)
	})},
	{"query_rows", onSQL("pgx", func(t *T, db *sql.DB) {
		rows := Must(db.QueryContext(t.Ctx, "select id, title, price from album where sold = $1 order by id", 0))
		defer rows.Close()
		var titles []string
		for rows.Next() {
			var id int64
			var title string
			var price float64
			t.Ok(rows.Scan(&id, &title, &price))
			titles = append(titles, title)
		}
		t.Ok(rows.Err())
		t.Equal(titles, []string{"Blue Train", "Jeru"})
	})},
	{"no_rows", onSQL("pgx", func(t *T, db *sql.DB) {
		var id int64
		t.Is(db.QueryRowContext(t.Ctx, "select id from album where id = $1", 99).Scan(&id), sql.ErrNoRows)
	})},
	{"nulls", onSQL("pgx", func(t *T, db *sql.DB) {
		t.Equal(sqlScalar[sql.NullString](t, db, "select artist from album where id = 2"), sql.NullString{})
		t.Equal(sqlScalar[sql.Null[int64]](t, db, "select $1::int8", sql.Null[int64]{V: 3, Valid: true}),
			sql.Null[int64]{V: 3, Valid: true})
		t.Equal(sqlScalar[*string](t, db, "select $1::text", nil), (*string)(nil))
	})},
	{"rows_affected_and_returning", onSQL("pgx", func(t *T, db *sql.DB) {
		done := Must(db.ExecContext(t.Ctx, "update album set sold = sold + 1"))
		t.Equal(Must(done.RowsAffected()), int64(2))
		_, err := done.LastInsertId()
		t.True(err != nil, "LastInsertId is supported")
		t.Equal(sqlScalar[int64](t, db,
			"insert into album (title) values ($1) returning id", "Giant Steps"), int64(3))
	})},
	{"scan_into_any", onSQL("pgx", func(t *T, db *sql.DB) {
		values := make([]any, 7)
		places := make([]any, 7)
		for i := range values {
			places[i] = &values[i]
		}
		t.Ok(db.QueryRowContext(t.Ctx, `select 1::int8, 'x'::text, true, 1.5::float8, 2.50::numeric,
			timestamp '2024-01-02 03:04:05', '\x01'::bytea`).Scan(places...))
		t.Equal(values, []any{int64(1), "x", true, 1.5, "2.50",
			time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC), []byte{1}})
	})},
	{"column_types", onSQL("pgx", func(t *T, db *sql.DB) {
		rows := Must(db.QueryContext(t.Ctx, "select id, title, artist, price from album"))
		defer rows.Close()
		var found []string
		types := Must(rows.ColumnTypes())
		for _, one := range types {
			found = append(found, one.Name()+" "+one.DatabaseTypeName())
		}
		t.Equal(found, []string{"id INT8", "title VARCHAR", "artist TEXT", "price NUMERIC"})
		length, _ := types[1].Length()
		t.Equal(length, int64(128))
		precision, scale, _ := types[3].DecimalSize()
		t.Equal([]int64{precision, scale}, []int64{5, 2})
		t.Equal(types[0].ScanType(), reflect.TypeOf(int64(0)))
	})},
	{"prepared", onSQL("pgx", func(t *T, db *sql.DB) {
		statement := Must(db.PrepareContext(t.Ctx, "select title from album where id = $1"))
		defer statement.Close()
		for i, wanted := range []string{"Blue Train", "Jeru"} {
			var title string
			t.Ok(statement.QueryRowContext(t.Ctx, i+1).Scan(&title))
			t.Equal(title, wanted)
		}
		tx := Must(db.BeginTx(t.Ctx, nil))
		var title string
		t.Ok(tx.StmtContext(t.Ctx, statement).QueryRowContext(t.Ctx, 2).Scan(&title))
		t.Equal(title, "Jeru")
		t.Ok(tx.Rollback())
	})},
	{"transactions", onSQL("pgx", func(t *T, db *sql.DB) {
		for _, commits := range []bool{false, true} {
			tx := Must(db.BeginTx(t.Ctx, nil))
			Must(tx.ExecContext(t.Ctx, "update album set sold = sold + 10 where id = 1"))
			if commits {
				t.Ok(tx.Commit())
			} else {
				t.Ok(tx.Rollback())
			}
		}
		t.Equal(sqlScalar[int](t, db, "select sold from album where id = 1"), 10)
	})},
	{"transaction_levels", onSQL("pgx", func(t *T, db *sql.DB) {
		for level, wanted := range map[sql.IsolationLevel]string{
			sql.LevelReadCommitted: "read committed", sql.LevelRepeatableRead: "repeatable read",
			sql.LevelSnapshot: "repeatable read", sql.LevelSerializable: "serializable",
		} {
			tx := Must(db.BeginTx(t.Ctx, &sql.TxOptions{Isolation: level, ReadOnly: true}))
			t.Equal(sqlScalar[string](t, tx, "show transaction_isolation"), wanted)
			_, err := tx.ExecContext(t.Ctx, "delete from album")
			t.Code(err, "25006")
			t.Ok(tx.Rollback())
		}
	})},
	{"transaction_ends_with_context", onSQL("pgx", func(t *T, db *sql.DB) {
		short, cancel := context.WithCancel(t.Ctx)
		tx := Must(db.BeginTx(short, nil))
		Must(tx.ExecContext(t.Ctx, "delete from album"))
		cancel()
		eventually(t, func() bool { return errors.Is(tx.Commit(), sql.ErrTxDone) || tx.Commit() != nil })
		t.Equal(sqlScalar[int](t, db, "select count(*) from album"), 2)
	})},
	{"one_connection", onSQL("pgx", func(t *T, db *sql.DB) {
		c := Must(db.Conn(t.Ctx))
		defer c.Close()
		Must(c.ExecContext(t.Ctx, "create temporary table mine (a int)"))
		Must(c.ExecContext(t.Ctx, "insert into mine values (1), (2)"))
		t.Equal(sqlScalar[int](t, c, "select count(*) from mine"), 2)
		_, err := db.ExecContext(t.Ctx, "select * from mine")
		t.Code(err, "42P01")
	})},
	{"raw_connection_copies", onSQL("pgx", func(t *T, db *sql.DB) {
		c := Must(db.Conn(t.Ctx))
		defer c.Close()
		t.Ok(c.Raw(func(driver any) error {
			_, err := driver.(*stdlib.Conn).Conn().CopyFrom(t.Ctx, pgx.Identifier{"album"},
				[]string{"title", "sold"}, pgx.CopyFromRows([][]any{{"a", 5}, {"b", 6}}))
			return err
		}))
		t.Equal(sqlScalar[int](t, db, "select sum(sold) from album"), 11)
	})},
	{"arrays_and_json", onSQL("pgx", func(t *T, db *sql.DB) {
		m := pgtype.NewMap()
		var ids []int64
		t.Ok(db.QueryRowContext(t.Ctx, "select $1::int8[]", []int64{3, 4}).Scan(m.SQLScanner(&ids)))
		t.Equal(ids, []int64{3, 4})
		t.Equal(string(sqlScalar[[]byte](t, db, "select $1::jsonb", []byte(`{"a":[1]}`))), `{"a": [1]}`)
	})},
	{"time_limit", onSQL("pgx", func(t *T, db *sql.DB) {
		short, cancel := context.WithTimeout(t.Ctx, 200*time.Millisecond)
		defer cancel()
		_, err := db.ExecContext(short, "select pg_sleep(20)")
		t.True(err != nil && short.Err() != nil, "got %v", err)
		t.Equal(sqlScalar[int](t, db, "select 1"), 1)
	})},
	{"concurrent_counters", onSQL("pgx", func(t *T, db *sql.DB) {
		db.SetMaxOpenConns(4)
		db.SetMaxIdleConns(2)
		var all sync.WaitGroup
		failed := make(chan error, 20)
		for range 20 {
			all.Go(func() {
				_, err := db.ExecContext(t.Ctx, "update album set sold = sold + 1 where id = 1")
				failed <- err
			})
		}
		all.Wait()
		for range 20 {
			t.Ok(<-failed)
		}
		t.Equal(sqlScalar[int](t, db, "select sold from album where id = 1"), 20)
	})},
	{"pgx_pool_behind_it", func(t *T) {
		config := Must(pgx.ParseConfig(t.DSN()))
		config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
		db := stdlib.OpenDB(*config)
		defer db.Close()
		t.Equal(sqlScalar[string](t, db, "select $1::text || $2::int4", "a'", 5), "a'5")
		rows := Must(db.QueryContext(t.Ctx, "select 1"))
		t.Equal(rows.Next(), true)
		t.Ok(rows.Close())
	}},
}
