// bun: its driver's extras, tables and migrations.
package main

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"strings"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/driver/pgdriver"
	"github.com/uptrace/bun/migrate"
)

var bunFiles = []string{
	"20240101000000_users.up.sql", "create table users (id bigserial primary key, name text);\n--bun:split\ninsert into users (name) values ('root');",
	"20240101000000_users.down.sql", "drop table users;",
	"20240102000000_mail.tx.up.sql", "alter table users add column mail text not null default '';",
	"20240102000000_mail.tx.down.sql", "alter table users drop column mail;",
}

type planBefore struct {
	bun.BaseModel `bun:"table:plans"`
	ID            int64  `bun:",pk,autoincrement"`
	Name          string `bun:"type:varchar(50),notnull"`
	Size          int32
}

type planAfter struct {
	bun.BaseModel `bun:"table:plans"`
	ID            int64  `bun:",pk,autoincrement"`
	Name          string `bun:"type:varchar(50),notnull,unique"`
	Size          int64
	Note          int64 `bun:",default:7"`
}

type planStep struct {
	bun.BaseModel `bun:"table:steps"`
	ID            int64 `bun:",pk,autoincrement"`
	PlanID        int64
	Plan          *planAfter `bun:"rel:belongs-to,join:plan_id=id"`
}

// bunPlan makes the tables like the models; names of migrations are seconds, so it takes one.
func bunPlan(t *T, db *bun.DB, models ...any) *migrate.MigrationGroup {
	time.Sleep(time.Second)
	place := Must(os.MkdirTemp("", "suite"))
	defer os.RemoveAll(place)
	automatic := Must(migrate.NewAutoMigrator(db, migrate.WithModel(models...),
		migrate.WithTableNameAuto("auto_migrations"),
		migrate.WithLocksTableNameAuto("auto_locks"), migrate.WithMigrationsDirectoryAuto(place)))
	return Must(automatic.Migrate(t.Ctx))
}

// bunPublic works in the schema that AutoMigrate knows, which no other case has tables in (S3).
func bunPublic(body func(t *T, db *bun.DB)) func(t *T) {
	return bunBare(func(t *T, db *bun.DB) {
		empty := func() {
			Must(db.Exec("set search_path = public"))
			Must(db.Exec("drop table if exists steps, plans, auto_migrations, auto_locks"))
		}
		db.SetMaxOpenConns(1)
		empty()
		defer empty()
		body(t, db)
	})
}

var bunMore = []Case{
	{"listener", bunBare(func(t *T, db *bun.DB) {
		listener := pgdriver.NewListener(db)
		defer listener.Close()
		t.Ok(listener.Listen(t.Ctx, "bun_news", "bun_more"))
		t.Ok(pgdriver.Notify(t.Ctx, db, "bun_more", "it's ☃"))
		channel, payload, err := listener.ReceiveTimeout(t.Ctx, 10*time.Second)
		t.Ok(err)
		t.Equal(channel+" "+payload, "bun_more it's ☃")
		t.Ok(listener.Unlisten(t.Ctx, "bun_more"))
	})},
	{"copy", onBun(func(t *T, db *bun.DB) {
		c := Must(db.Conn(t.Ctx))
		defer c.Close()
		done := Must(pgdriver.CopyFrom(t.Ctx, c, strings.NewReader("9,copied,5,1\n"),
			"copy books (id, title, pages, author_id) from stdin with (format csv)"))
		t.Equal(Must(done.RowsAffected()), int64(1))
		var printed bytes.Buffer
		Must(pgdriver.CopyTo(t.Ctx, c, &printed, "copy (select title, pages from books where id > 2 order by id) to stdout"))
		t.Equal(printed.String(), "three\t300\ncopied\t5\n")
	})},
	{"cancel_by_context", bunBare(func(t *T, db *bun.DB) {
		short, cancel := context.WithTimeout(t.Ctx, 200*time.Millisecond)
		defer cancel()
		_, err := db.NewRaw("select pg_sleep(20)").Exec(short)
		t.True(err != nil, "it was not cancelled")
		t.Ok(db.PingContext(t.Ctx))
	})},
	{"tables_and_columns", onBun(func(t *T, db *bun.DB) {
		Must(db.NewAddColumn().Model((*bunBook)(nil)).ColumnExpr("isbn varchar(20)").IfNotExists().Exec(t.Ctx))
		Must(db.NewDropColumn().Model((*bunBook)(nil)).Column("isbn").Exec(t.Ctx))
		Must(db.NewCreateIndex().Model((*bunBook)(nil)).Index("books_title").Unique().
			Column("title").Where("pages > ?", 0).IfNotExists().Exec(t.Ctx))
		_, err := db.NewInsert().Model(&bunBook{Title: "one", Pages: 5, AuthorID: 1}).Exec(t.Ctx)
		t.Code(err, "23505")
		Must(db.NewDropIndex().Index("books_title").Exec(t.Ctx))
		Must(db.NewTruncateTable().Model((*bunBook)(nil)).Cascade().Exec(t.Ctx))
		t.Equal(bunTitles(t, db.NewSelect()), []string{})
		Must(db.NewDropTable().Model((*bunBookTag)(nil)).IfExists().Exec(t.Ctx))
		t.Ok(db.ResetModel(t.Ctx, (*bunTag)(nil)))
	})},
	{"migrate_and_again", bunBare(func(t *T, db *bun.DB) {
		migrations := migrate.NewMigrations()
		t.Ok(migrations.Discover(files(bunFiles...)))
		migrations.Add(migrate.Migration{Name: "20240103000000"})
		migrator := migrate.NewMigrator(db, migrations)
		t.Ok(migrator.Init(t.Ctx))
		t.Ok(migrator.Init(t.Ctx))
		t.Ok(migrator.Lock(t.Ctx))
		t.True(migrator.Lock(t.Ctx) != nil, "it was locked twice")
		group := Must(migrator.Migrate(t.Ctx))
		t.Equal(len(group.Migrations), 3)
		t.Ok(migrator.Unlock(t.Ctx))
		t.Equal(Must(migrator.Migrate(t.Ctx)).IsZero(), true)
		var mail string
		t.Ok(db.NewRaw("select mail from users where name = 'root'").Scan(t.Ctx, &mail))
		t.Equal(mail, "")
		status := Must(migrator.MigrationsWithStatus(t.Ctx))
		t.Equal(len(status.Applied()), 3)
		t.Equal(status.LastGroupID(), int64(1))
	})},
	{"rollback", bunBare(func(t *T, db *bun.DB) {
		migrations := migrate.NewMigrations()
		t.Ok(migrations.Discover(files(bunFiles...)))
		migrator := migrate.NewMigrator(db, migrations, migrate.WithMarkAppliedOnSuccess(true))
		t.Ok(migrator.Init(t.Ctx))
		Must(migrator.Migrate(t.Ctx))
		t.Equal(len(Must(migrator.Rollback(t.Ctx)).Migrations), 2)
		t.Equal(len(Must(migrator.AppliedMigrations(t.Ctx))), 0)
		_, err := db.Exec("select * from users")
		t.Code(err, "42P01")
		t.Equal(len(Must(migrator.Migrate(t.Ctx)).Migrations), 2)
	})},
	{"auto_migrate_and_again", bunPublic(func(t *T, db *bun.DB) {
		t.True(bunPlan(t, db, (*planBefore)(nil)).ID > 0, "nothing is made")
		t.Equal(len(bunPlan(t, db, (*planBefore)(nil)).Migrations), 0)
		Must(db.NewInsert().Model(&planBefore{Name: "a", Size: 5}).Exec(t.Ctx))
		bunPlan(t, db, (*planAfter)(nil))
		t.Equal(len(bunPlan(t, db, (*planAfter)(nil)).Migrations), 0)
		Must(db.NewInsert().Model(&planAfter{Name: "b", Size: 1 << 40}).Exec(t.Ctx))
		_, err := db.NewInsert().Model(&planAfter{Name: "a"}).Exec(t.Ctx)
		t.Code(err, "23505")
	})},
	{"auto_migrate_relations", bunPublic(func(t *T, db *bun.DB) {
		all := []any{(*planAfter)(nil), (*planStep)(nil)}
		t.True(bunPlan(t, db, all...).ID > 0, "nothing is made")
		t.Equal(len(bunPlan(t, db, all...).Migrations), 0)
		_, err := db.NewInsert().Model(&planStep{PlanID: 9}).Exec(t.Ctx)
		t.Code(err, "23503")
	})},
	{"over_pgx", func(t *T) {
		db := bun.NewDB(Must(sql.Open("pgx", t.DSN())), pgdialect.New())
		defer db.Close()
		db.RegisterModel((*bunBookTag)(nil))
		for _, model := range []any{(*bunAuthor)(nil), (*bunProfile)(nil), (*bunBook)(nil)} {
			t.Ok(db.ResetModel(t.Ctx, model))
		}
		author := &bunAuthor{Name: "it's", Emails: []string{"a,b"}, Meta: map[string]any{"a": 1.5}}
		Must(db.NewInsert().Model(author).Exec(t.Ctx))
		Must(db.NewInsert().Model(&bunBook{Title: "t", AuthorID: author.ID}).Exec(t.Ctx))
		var found bunAuthor
		t.Ok(db.NewSelect().Model(&found).Relation("Books").Where("a.id = ?", author.ID).
			Where("?TableAlias.created_at <= now()").Scan(t.Ctx))
		t.Equal(found.Emails, []string{"a,b"})
		t.Equal(found.Meta, map[string]any{"a": 1.5})
		t.Equal(found.Books[0].Title, "t")
	}},
	{"recursive_and_lateral", onBun(func(t *T, db *bun.DB) {
		var numbers []int
		t.Ok(db.NewRaw(`with recursive n (i) as (select 1 union all select i + 1 from n where i < ?)
			select i from n`, 4).Scan(t.Ctx, &numbers))
		t.Equal(numbers, []int{1, 2, 3, 4})
		longest := db.NewSelect().Model((*bunBook)(nil)).Column("title").Where("b.author_id = a.id").
			Order("pages desc").Limit(1)
		var titles []string
		t.Ok(db.NewSelect().Model((*bunAuthor)(nil)).ColumnExpr("l.title").
			Join("left join lateral (?) as l on true", longest).Order("a.id").Scan(t.Ctx, &titles))
		t.Equal(titles, []string{"two", "three"})
	})},
	{"keyset_paging", onBun(func(t *T, db *bun.DB) {
		t.Equal(bunTitles(t, db.NewSelect().Where("(pages, id) > (?, ?)", 100, 1).Limit(1)), []string{"two"})
		t.Equal(bunTitles(t, db.NewSelect().OrderExpr("pages desc nulls last").Offset(2).Limit(5)), []string{"one"})
	})},
}
