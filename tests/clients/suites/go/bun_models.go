// bun: models, and how a case connects.
package main

import (
	"database/sql"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/driver/pgdriver"
)

func bunClient() Client {
	return Client{"bun", versionOf("github.com/uptrace/bun"), append(append([]Case{}, bunCases...), bunMore...)}
}

type bunAuthor struct {
	bun.BaseModel `bun:"table:authors,alias:a"`
	ID            int64          `bun:",pk,autoincrement"`
	Name          string         `bun:",notnull,unique"`
	Emails        []string       `bun:",array"`
	Meta          map[string]any `bun:"type:jsonb"`
	Rating        float64        `bun:",nullzero"`
	CreatedAt     time.Time      `bun:",nullzero,notnull,default:current_timestamp"`
	DeletedAt     time.Time      `bun:",soft_delete,nullzero"`
	Profile       *bunProfile    `bun:"rel:has-one,join:id=author_id"`
	Books         []*bunBook     `bun:"rel:has-many,join:id=author_id"`
}

type bunProfile struct {
	bun.BaseModel `bun:"table:profiles"`
	ID            int64 `bun:",pk,autoincrement"`
	Lang          string
	AuthorID      int64
}

type bunBook struct {
	bun.BaseModel `bun:"table:books,alias:b"`
	ID            int64 `bun:",pk,autoincrement"`
	Title         string
	Pages         int
	AuthorID      int64
	Author        *bunAuthor `bun:"rel:belongs-to,join:author_id=id"`
	Tags          []bunTag   `bun:"m2m:book_tags,join:Book=Tag"`
}

type bunTag struct {
	bun.BaseModel `bun:"table:tags"`
	ID            int64 `bun:",pk,autoincrement"`
	Name          string
}

type bunBookTag struct {
	bun.BaseModel `bun:"table:book_tags"`
	BookID        int64    `bun:",pk"`
	Book          *bunBook `bun:"rel:belongs-to,join:book_id=id"`
	TagID         int64    `bun:",pk"`
	Tag           *bunTag  `bun:"rel:belongs-to,join:tag_id=id"`
}

// bunBare connects, without tables.
func bunBare(body func(t *T, db *bun.DB)) func(t *T) {
	return func(t *T) {
		connector := pgdriver.NewConnector(pgdriver.WithDSN(DSN()),
			pgdriver.WithConnParams(map[string]any{"search_path": t.Schema}))
		db := bun.NewDB(sql.OpenDB(connector), pgdialect.New())
		defer db.Close()
		db.RegisterModel((*bunBookTag)(nil))
		body(t, db)
	}
}

// onBun connects and makes tables, with two authors and three books.
func onBun(body func(t *T, db *bun.DB)) func(t *T) {
	return bunBare(func(t *T, db *bun.DB) {
		for _, model := range []any{
			(*bunAuthor)(nil), (*bunProfile)(nil), (*bunTag)(nil), (*bunBook)(nil), (*bunBookTag)(nil),
		} {
			Must(db.NewCreateTable().Model(model).IfNotExists().WithForeignKeys().Exec(t.Ctx))
		}
		authors := []bunAuthor{
			{Name: "ann", Emails: []string{"a@x", `b"@,y`}, Meta: map[string]any{"k": "v"}, Rating: 4.5},
			{Name: "bob"},
		}
		Must(db.NewInsert().Model(&authors).Exec(t.Ctx))
		books := []bunBook{{Title: "one", Pages: 100, AuthorID: 1}, {Title: "two", Pages: 200, AuthorID: 1},
			{Title: "three", Pages: 300, AuthorID: 2}}
		Must(db.NewInsert().Model(&books).Exec(t.Ctx))
		body(t, db)
	})
}

func bunTitles(t *T, query *bun.SelectQuery) []string {
	found := []string{}
	t.Ok(query.Model((*bunBook)(nil)).Column("title").Order("b.id").Scan(t.Ctx, &found))
	return found
}
