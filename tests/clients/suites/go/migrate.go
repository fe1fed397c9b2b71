// golang-migrate, with its drivers for lib/pq and for pgx.
package main

import (
	"database/sql"
	"errors"
	"strings"

	"github.com/golang-migrate/migrate/v4"
	pgxmigrate "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/database/postgres"
	"github.com/golang-migrate/migrate/v4/source/iofs"
)

func migrateClient() Client {
	return Client{"golang-migrate", versionOf("github.com/golang-migrate/migrate/v4"), migrateCases}
}

var migrateFiles = []string{
	"000001_users.up.sql", "create table users (id serial primary key, name varchar(50) unique not null);",
	"000001_users.down.sql", "drop table if exists users;",
	"000002_mood.up.sql", `begin;
create type mood as enum ('happy', 'sad', 'neutral');
alter table users add column mood mood not null default 'neutral';
commit;`,
	"000002_mood.down.sql", "begin; alter table users drop column mood; drop type mood; commit;",
	"000003_posts.up.sql", `create table if not exists posts (id bigint primary key,
  author int references users, body jsonb not null default '{}');
create index posts_author on posts (author);
comment on table posts is 'what users write';`,
	"000003_posts.down.sql", "drop table posts;",
}

// onMigrate makes a migrator with the case's schema as search path.
func onMigrate(scheme string, pairs []string, body func(t *T, db *sql.DB, m *migrate.Migrate), parameters ...string) func(t *T) {
	return func(t *T) {
		source := Must(iofs.New(files(pairs...), "."))
		_, rest, _ := strings.Cut(t.DSN(parameters...), ":")
		m := Must(migrate.NewWithSourceInstance("iofs", source, scheme+":"+rest))
		defer m.Close()
		db := Must(sql.Open("pgx", t.DSN()))
		defer db.Close()
		body(t, db, m)
	}
}

func migrateVersion(t *T, m *migrate.Migrate, wanted uint, isDirty bool) {
	version, dirty, err := m.Version()
	t.Ok(err)
	t.Equal(version, wanted)
	t.Equal(dirty, isDirty)
}

func upAndDown(t *T, db *sql.DB, m *migrate.Migrate) {
	_, _, err := m.Version()
	t.Is(err, migrate.ErrNilVersion)
	t.Ok(m.Up())
	migrateVersion(t, m, 3, false)
	t.Is(m.Up(), migrate.ErrNoChange)
	t.Equal(tableCount(t, db), 3)
	t.Ok(m.Down())
	t.Equal(tableCount(t, db), 1)
	t.Is(m.Down(), migrate.ErrNoChange)
}

func stepsAndGoto(t *T, db *sql.DB, m *migrate.Migrate) {
	t.Ok(m.Steps(2))
	migrateVersion(t, m, 2, false)
	Must(db.ExecContext(t.Ctx, "insert into users (name, mood) values ('ann', 'sad')"))
	t.Ok(m.Migrate(3))
	t.Ok(m.Steps(-1))
	t.Equal(sqlScalar[string](t, db, "select mood from users"), "sad")
	t.Ok(m.Migrate(1))
	t.Equal(sqlScalar[int](t, db, `select count(*) from information_schema.columns
		where table_schema = $1 and table_name = 'users'`, t.Schema), 2)
}

var migrateBad = append(migrateFiles[:8:8], "000003_bad.up.sql", "create table half (a int);\nselect absent from half;")

func failsAndIsForced(t *T, db *sql.DB, m *migrate.Migrate) {
	err := m.Up()
	t.True(err != nil && strings.Contains(err.Error(), `"absent" does not exist`), "got %v", err)
	migrateVersion(t, m, 3, true)
	var dirty migrate.ErrDirty
	t.True(errors.As(m.Up(), &dirty), "it is not dirty")
	t.Equal(sqlScalar[bool](t, db, "select to_regclass('half') is null"), true)
	t.Ok(m.Force(2))
	migrateVersion(t, m, 2, false)
	t.Ok(m.Down())
}

func drops(t *T, db *sql.DB, m *migrate.Migrate) {
	t.Ok(m.Up())
	t.Ok(m.Drop())
	t.Equal(tableCount(t, db), 0)
}

// race migrates at one time from several programs; the advisory lock lets one work.
func race(t *T, db *sql.DB, m *migrate.Migrate) {
	done := make(chan error, 3)
	for range 3 {
		go func() {
			source, err := iofs.New(files(migrateFiles...), ".")
			if err == nil {
				var other *migrate.Migrate
				other, err = migrate.NewWithSourceInstance("iofs", source, t.DSN())
				if err == nil {
					err = other.Up()
					other.Close()
				}
			}
			done <- err
		}()
	}
	changes := 0
	for range 3 {
		if err := <-done; err == nil {
			changes++
		} else {
			t.Is(err, migrate.ErrNoChange)
		}
	}
	t.Equal(changes, 1)
	t.Equal(tableCount(t, db), 3)
}

var migrateCases = []Case{
	{"up_and_down", onMigrate("postgres", migrateFiles, upAndDown)},
	{"up_and_down_pgx", onMigrate("pgx5", migrateFiles, upAndDown)},
	{"steps_and_goto", onMigrate("postgres", migrateFiles, stepsAndGoto)},
	{"steps_and_goto_pgx", onMigrate("pgx5", migrateFiles, stepsAndGoto)},
	{"failure_is_dirty_and_forced", onMigrate("postgres", migrateBad, failsAndIsForced)},
	{"failure_is_dirty_and_forced_pgx", onMigrate("pgx5", migrateBad, failsAndIsForced)},
	{"drop", onMigrate("postgres", migrateFiles, drops)},
	{"drop_pgx", onMigrate("pgx5", migrateFiles, drops)},
	{"concurrent_migrators", onMigrate("postgres", migrateFiles, race)},
	{"another_table", onMigrate("postgres", migrateFiles, func(t *T, db *sql.DB, m *migrate.Migrate) {
		t.Ok(m.Up())
		t.Equal(sqlScalar[int](t, db, "select version from history"), 3)
	}, "x-migrations-table", "history")},
	{"many_statements", onMigrate("pgx5", []string{
		"1_a.up.sql", "create table a (n int);\ncreate index concurrently a_n on a (n);\ninsert into a values (1);",
		"1_a.down.sql", "drop table a;",
	}, func(t *T, db *sql.DB, m *migrate.Migrate) {
		t.Ok(m.Up())
		t.Equal(sqlScalar[int](t, db, "select n from a"), 1)
		t.Ok(m.Down())
	}, "x-multi-statement", "true")},
	{"statement_timeout", onMigrate("postgres", []string{
		"1_slow.up.sql", "select pg_sleep(20);", "1_slow.down.sql", "select 1;",
	}, func(t *T, db *sql.DB, m *migrate.Migrate) {
		err := m.Up()
		t.True(err != nil, "it was not cancelled")
		t.Equal(sqlScalar[bool](t, db, "select dirty from schema_migrations where version = 1"), true)
	}, "x-statement-timeout", "200")},
	{"with_instance", func(t *T) {
		db := Must(sql.Open("postgres", t.DSN()))
		defer db.Close()
		driver := Must(postgres.WithInstance(db, &postgres.Config{SchemaName: t.Schema}))
		m := Must(migrate.NewWithInstance("iofs", Must(iofs.New(files(migrateFiles...), ".")), "postgres", driver))
		t.Ok(m.Up())
		t.Ok(m.Down())
	}},
	{"with_instance_pgx", func(t *T) {
		db := Must(sql.Open("pgx", t.DSN()))
		defer db.Close()
		driver := Must(pgxmigrate.WithInstance(db, &pgxmigrate.Config{MigrationsTable: "kept"}))
		m := Must(migrate.NewWithInstance("iofs", Must(iofs.New(files(migrateFiles...), ".")), "pgx5", driver))
		t.Ok(m.Up())
		t.Equal(sqlScalar[int](t, db, "select version from kept"), 3)
		t.Equal(sqlScalar[string](t, db, "select obj_description('posts'::regclass)"), "what users write")
	}},
}
