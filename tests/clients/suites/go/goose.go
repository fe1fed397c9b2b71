// goose: its Provider and its older functions, on database/sql.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing/fstest"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

func gooseClient() Client {
	return Client{"goose", versionOf("github.com/pressly/goose/v3"), gooseCases}
}

func files(pairs ...string) fs.FS {
	found := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		found[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return found
}

var gooseFiles = []string{
	"00001_users.sql", `-- +goose Up
create table users (id serial primary key, name text not null);
create index users_name on users (name);
-- +goose Down
drop table users;
`,
	"00002_mail.sql", `-- +goose Up
alter table users add column mail varchar(80);
update users set mail = name || '@example.org';
-- +goose Down
alter table users drop column mail;
`,
	"00003_posts.sql", `-- +goose Up
create table posts (id bigserial primary key, author int not null references users on delete cascade,
  written timestamptz not null default now());
-- +goose Down
drop table posts;
`,
}

// onGoose opens a database by pgx and makes a provider of files.
func onGoose(pairs []string, body func(t *T, db *sql.DB, p *goose.Provider), options ...goose.ProviderOption) func(t *T) {
	return func(t *T) {
		db := Must(sql.Open("pgx", t.DSN()))
		defer db.Close()
		body(t, db, Must(goose.NewProvider(goose.DialectPostgres, db, files(pairs...), options...)))
	}
}

func tableCount(t *T, db *sql.DB) int {
	return sqlScalar[int](t, db, "select count(*) from information_schema.tables where table_schema = $1", t.Schema)
}

var gooseCases = []Case{
	{"up_and_again", onGoose(gooseFiles, func(t *T, db *sql.DB, p *goose.Provider) {
		t.Equal(len(Must(p.Up(t.Ctx))), 3)
		t.Equal(Must(p.HasPending(t.Ctx)), false)
		t.Equal(len(Must(p.Up(t.Ctx))), 0)
		t.Equal(Must(p.GetDBVersion(t.Ctx)), int64(3))
		t.Equal(tableCount(t, db), 3)
	})},
	{"status", onGoose(gooseFiles, func(t *T, db *sql.DB, p *goose.Provider) {
		Must(p.UpTo(t.Ctx, 2))
		var states []goose.State
		for _, one := range Must(p.Status(t.Ctx)) {
			states = append(states, one.State)
			t.Equal(one.AppliedAt.IsZero(), one.State == goose.StatePending)
		}
		t.Equal(states, []goose.State{goose.StateApplied, goose.StateApplied, goose.StatePending})
	})},
	{"up_by_one_and_down", onGoose(gooseFiles, func(t *T, db *sql.DB, p *goose.Provider) {
		for i := range 3 {
			t.Equal(Must(p.UpByOne(t.Ctx)).Source.Version, int64(i+1))
		}
		_, err := p.UpByOne(t.Ctx)
		t.Is(err, goose.ErrNoNextVersion)
		t.Equal(Must(p.Down(t.Ctx)).Source.Version, int64(3))
		Must(p.Down(t.Ctx))
		t.Equal(sqlScalar[int](t, db, `select count(*) from information_schema.columns
			where table_schema = $1 and table_name = 'users'`, t.Schema), 2)
	})},
	{"down_to_nothing", onGoose(gooseFiles, func(t *T, db *sql.DB, p *goose.Provider) {
		Must(p.Up(t.Ctx))
		t.Equal(len(Must(p.DownTo(t.Ctx, 0))), 3)
		t.Equal(tableCount(t, db), 1)
		t.Equal(len(Must(p.Up(t.Ctx))), 3)
	})},
	{"failed_migration_rolls_back", onGoose(append(gooseFiles[:4:4],
		"00003_bad.sql", "-- +goose Up\ncreate table half (a int);\nselect absent from half;\n"),
		func(t *T, db *sql.DB, p *goose.Provider) {
			_, err := p.Up(t.Ctx)
			var partial *goose.PartialError
			t.True(errors.As(err, &partial), "got %v", err)
			t.Code(partial.Err, "42703")
			t.Equal(len(partial.Applied), 2)
			t.Equal(Must(p.GetDBVersion(t.Ctx)), int64(2))
			t.Equal(sqlScalar[bool](t, db, "select to_regclass('half') is null"), true)
		})},
	{"no_transaction", onGoose([]string{"00001_index.sql", `-- +goose NO TRANSACTION
-- +goose Up
create table a (n int);
create index concurrently a_n on a (n);
-- +goose Down
drop table a;
`}, func(t *T, db *sql.DB, p *goose.Provider) {
		Must(p.Up(t.Ctx))
		t.Equal(sqlScalar[string](t, db, "select indexname from pg_indexes where schemaname = $1"+
			" and tablename = 'a'", t.Schema), "a_n")
		Must(p.Down(t.Ctx))
	})},
	{"go_migrations", onGoose(gooseFiles[:2], func(t *T, db *sql.DB, p *goose.Provider) {
		Must(p.Up(t.Ctx))
		t.Equal(sqlScalar[string](t, db, "select name from users"), "root")
		t.Equal(len(Must(p.DownTo(t.Ctx, 1))), 1)
		t.Equal(sqlScalar[int](t, db, "select count(*) from users"), 0)
	}, goose.WithGoMigrations(goose.NewGoMigration(2,
		&goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "insert into users (name) values ($1)", "root")
			return err
		}},
		&goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "delete from users")
			return err
		}})))},
	{"out_of_order", func(t *T) {
		db := Must(sql.Open("pgx", t.DSN()))
		defer db.Close()
		first := Must(goose.NewProvider(goose.DialectPostgres, db,
			files(append(gooseFiles[:2:2], gooseFiles[4:]...)...)))
		Must(first.Up(t.Ctx))
		strict := Must(goose.NewProvider(goose.DialectPostgres, db, files(gooseFiles...)))
		_, err := strict.Up(t.Ctx)
		t.True(err != nil, "a missing migration was not told")
		loose := Must(goose.NewProvider(goose.DialectPostgres, db, files(gooseFiles...),
			goose.WithAllowOutofOrder(true)))
		t.Equal(Must(loose.Up(t.Ctx))[0].Source.Version, int64(2))
	}},
	{"session_locker", func(t *T) {
		locker := Must(lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 10)))
		done := make(chan error, 3)
		for range 3 {
			go func() {
				db, err := sql.Open("pgx", t.DSN())
				if err == nil {
					defer db.Close()
					var p *goose.Provider
					p, err = goose.NewProvider(goose.DialectPostgres, db, files(gooseFiles...),
						goose.WithSessionLocker(locker))
					if err == nil {
						_, err = p.Up(t.Ctx)
					}
				}
				done <- err
			}()
		}
		for range 3 {
			t.Ok(<-done)
		}
		db := Must(sql.Open("pgx", t.DSN()))
		defer db.Close()
		t.Equal(sqlScalar[int](t, db, "select count(*) from goose_db_version"), 4)
	}},
	{"table_locker", func(t *T) {
		db := Must(sql.Open("pgx", t.DSN()))
		defer db.Close()
		locker := Must(lock.NewPostgresTableLocker(
			lock.WithTableLockTimeout(200*time.Millisecond, 50)))
		p := Must(goose.NewProvider(goose.DialectPostgres, db, files(gooseFiles...), goose.WithLocker(locker)))
		t.Equal(len(Must(p.Up(t.Ctx))), 3)
		t.Equal(sqlScalar[bool](t, db, "select bool_or(locked) from goose_lock"), false)
	}},
	{"another_table", onGoose(gooseFiles, func(t *T, db *sql.DB, p *goose.Provider) {
		Must(p.Up(t.Ctx))
		t.Equal(sqlScalar[int](t, db, "select max(version_id) from history"), 3)
	}, goose.WithTableName("history"))},
	{"seeds_without_versions", onGoose([]string{"00001_seed.sql",
		"-- +goose Up\ncreate table if not exists s (a int);\ninsert into s values (1);\n"},
		func(t *T, db *sql.DB, p *goose.Provider) {
			Must(p.Up(t.Ctx))
			Must(p.Up(t.Ctx))
			t.Equal(sqlScalar[int](t, db, "select count(*) from s"), 2)
			t.Equal(tableCount(t, db), 1)
		}, goose.WithDisableVersioning(true))},
	{"older_functions", func(t *T) {
		db := Must(sql.Open("postgres", t.DSN()))
		defer db.Close()
		goose.SetLogger(goose.NopLogger())
		goose.SetBaseFS(files(gooseFiles...))
		t.Ok(goose.SetDialect("postgres"))
		t.Ok(goose.UpContext(t.Ctx, db, "."))
		t.Equal(Must(goose.GetDBVersionContext(t.Ctx, db)), int64(3))
		t.Ok(goose.RedoContext(t.Ctx, db, "."))
		t.Ok(goose.DownToContext(t.Ctx, db, ".", 1))
		t.Ok(goose.UpByOneContext(t.Ctx, db, "."))
		t.Ok(goose.ResetContext(t.Ctx, db, "."))
		t.Equal(tableCount(t, db), 1)
	}},
	{"long_statements", onGoose([]string{"00001_many.sql", func() string {
		text := "-- +goose Up\n"
		for i := range 60 {
			text += fmt.Sprintf("create table m%d (id serial primary key, note text default 'a;b');\n", i)
		}
		return text
	}()}, func(t *T, db *sql.DB, p *goose.Provider) {
		Must(p.Up(t.Ctx))
		t.Equal(tableCount(t, db), 61)
	})},
	{"environment_is_put_in", func(t *T) {
		t.Ok(os.Setenv("GOOSE_SUITE_TABLE", "from_environment"))
		onGoose([]string{"00001_e.sql", "-- +goose ENVSUB ON\n-- +goose Up\ncreate table ${GOOSE_SUITE_TABLE} (a int);\n"},
			func(t *T, db *sql.DB, p *goose.Provider) {
				Must(p.Up(t.Ctx))
				t.Equal(sqlScalar[int](t, db, "select count(*) from from_environment"), 0)
			})(t)
	}},
	{"one_version_is_applied", onGoose(gooseFiles, func(t *T, db *sql.DB, p *goose.Provider) {
		Must(p.ApplyVersion(t.Ctx, 1, true))
		_, err := p.ApplyVersion(t.Ctx, 1, true)
		t.Is(err, goose.ErrAlreadyApplied)
		Must(p.ApplyVersion(t.Ctx, 1, false))
		_, err = p.ApplyVersion(t.Ctx, 1, false)
		t.Is(err, goose.ErrNotApplied)
	})},
	{"over_pq", func(t *T) {
		db := Must(sql.Open("postgres", t.DSN()))
		defer db.Close()
		p := Must(goose.NewProvider(goose.DialectPostgres, db, files(gooseFiles...)))
		t.Equal(len(Must(p.Up(t.Ctx))), 3)
		t.Equal(len(Must(p.DownTo(t.Ctx, 0))), 3)
	}},
	{"statement_block_needs_functions", onGoose([]string{"00001_f.sql", `-- +goose Up
-- +goose StatementBegin
create function twice(n int) returns int as $$
begin
  return n * 2;
end;
$$ language plpgsql;
-- +goose StatementEnd
-- +goose Down
drop function twice;
`}, func(t *T, db *sql.DB, p *goose.Provider) {
		Must(p.Up(t.Ctx))
		t.Equal(sqlScalar[int](t, db, "select twice(21)"), 42)
		Must(p.Down(t.Ctx))
	})},
}
