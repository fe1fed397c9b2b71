// bun: queries.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/driver/pgdriver"
)

var bunCases = []Case{
	{"insert_and_select", onBun(func(t *T, db *bun.DB) {
		author := &bunAuthor{Name: "zoe"}
		Must(db.NewInsert().Model(author).Exec(t.Ctx))
		t.Equal(author.ID, int64(3))
		t.Equal(author.CreatedAt.IsZero(), false)
		found := new(bunAuthor)
		t.Ok(db.NewSelect().Model(found).Where("name = ?", "ann").Scan(t.Ctx))
		t.Equal(found.Emails, []string{"a@x", `b"@,y`})
		t.Equal(found.Meta, map[string]any{"k": "v"})
		t.Equal(found.Rating, 4.5)
		t.Is(db.NewSelect().Model(found).Where("id = 99").Scan(t.Ctx), sql.ErrNoRows)
	})},
	{"bulk_insert", onBun(func(t *T, db *bun.DB) {
		var books []bunBook
		for i := range 500 {
			books = append(books, bunBook{Title: fmt.Sprintf("it's %d", i), Pages: i, AuthorID: 2})
		}
		done := Must(db.NewInsert().Model(&books).Exec(t.Ctx))
		t.Equal(Must(done.RowsAffected()), int64(500))
		t.Equal(books[499].ID, int64(503))
		t.Equal(Must(db.NewSelect().Model((*bunBook)(nil)).Where("title like 'it''s %'").Count(t.Ctx)), int64(500))
	})},
	{"insert_returning_and_maps", onBun(func(t *T, db *bun.DB) {
		var id int64
		Must(db.NewInsert().Model(&bunBook{Title: "x", AuthorID: 1}).Returning("id").Exec(t.Ctx, &id))
		t.Equal(id, int64(4))
		values := map[string]any{"title": "y", "pages": 7, "author_id": 1}
		Must(db.NewInsert().Model(&values).TableExpr("books").Exec(t.Ctx))
		var found []map[string]any
		t.Ok(db.NewSelect().Table("books").Column("title", "pages").Where("id >= 4").Order("id").Scan(t.Ctx, &found))
		t.Equal(found[1], map[string]any{"title": "y", "pages": int64(7)})
	})},
	{"upsert", onBun(func(t *T, db *bun.DB) {
		again := &bunAuthor{Name: "ann", Rating: 1}
		Must(db.NewInsert().Model(again).On("conflict (name) do update").
			Set("rating = excluded.rating").Returning("id").Exec(t.Ctx))
		t.Equal(again.ID, int64(1))
		done := Must(db.NewInsert().Model(&bunAuthor{Name: "bob"}).Ignore().Exec(t.Ctx))
		t.Equal(Must(done.RowsAffected()), int64(0))
	})},
	{"where_groups", onBun(func(t *T, db *bun.DB) {
		query := db.NewSelect().Where("pages > ?", 150).
			WhereGroup(" and ", func(q *bun.SelectQuery) *bun.SelectQuery {
				return q.Where("author_id = ?", 2).WhereOr("title = ?", "two")
			})
		t.Equal(bunTitles(t, query), []string{"two", "three"})
		t.Equal(bunTitles(t, db.NewSelect().Where("b.id in (?)", bun.List([]int{1, 3}))), []string{"one", "three"})
		t.Equal(bunTitles(t, db.NewSelect().Where("? = ?", bun.Ident("title"), "one")), []string{"one"})
	})},
	{"count_and_paging", onBun(func(t *T, db *bun.DB) {
		var books []bunBook
		t.Equal(Must(db.NewSelect().Model(&books).Order("id").Limit(2).Offset(1).ScanAndCount(t.Ctx)), int64(3))
		t.Equal(len(books), 2)
		t.Equal(Must(db.NewSelect().Model((*bunBook)(nil)).Where("pages > 1000").Exists(t.Ctx)), false)
	})},
	{"relations", onBun(func(t *T, db *bun.DB) {
		Must(db.NewInsert().Model(&bunProfile{Lang: "de", AuthorID: 1}).Exec(t.Ctx))
		var authors []bunAuthor
		t.Ok(db.NewSelect().Model(&authors).Relation("Profile").
			Relation("Books", func(q *bun.SelectQuery) *bun.SelectQuery { return q.Order("b.pages desc") }).
			Order("a.id").Scan(t.Ctx))
		t.Equal(authors[0].Profile.Lang, "de")
		t.Equal(authors[0].Books[0].Title, "two")
		t.True(authors[1].Profile == nil, "a profile")
		var books []bunBook
		t.Ok(db.NewSelect().Model(&books).Relation("Author").Where("author.name = ?", "bob").Scan(t.Ctx))
		t.Equal(books[0].Author.Name, "bob")
	})},
	{"many_to_many", onBun(func(t *T, db *bun.DB) {
		Must(db.NewInsert().Model(&[]bunTag{{Name: "red"}, {Name: "blue"}}).Exec(t.Ctx))
		Must(db.NewInsert().Model(&[]bunBookTag{{BookID: 1, TagID: 1}, {BookID: 1, TagID: 2},
			{BookID: 2, TagID: 2}}).Exec(t.Ctx))
		var books []bunBook
		t.Ok(db.NewSelect().Model(&books).Relation("Tags", func(q *bun.SelectQuery) *bun.SelectQuery {
			return q.Order("name")
		}).Order("b.id").Scan(t.Ctx))
		t.Equal([]int{len(books[0].Tags), len(books[1].Tags), len(books[2].Tags)}, []int{2, 1, 0})
		t.Equal(books[0].Tags[0].Name, "blue")
	})},
	{"update", onBun(func(t *T, db *bun.DB) {
		book := &bunBook{ID: 1, Title: "uno", Pages: 11}
		Must(db.NewUpdate().Model(book).Column("title", "pages").WherePK().Exec(t.Ctx))
		Must(db.NewUpdate().Model((*bunBook)(nil)).Set("pages = pages + ?", 1).Where("id < 3").Exec(t.Ctx))
		t.Ok(db.NewSelect().Model(book).WherePK().Scan(t.Ctx))
		t.Equal(book.Pages, 12)
		Must(db.NewUpdate().Model(&bunBook{ID: 2, Title: "dos"}).OmitZero().WherePK().Exec(t.Ctx))
		t.Equal(bunTitles(t, db.NewSelect().Where("pages = 201")), []string{"dos"})
	})},
	{"bulk_update", onBun(func(t *T, db *bun.DB) {
		books := []*bunBook{{ID: 1, Title: "1", Pages: 1}, {ID: 2, Title: "2", Pages: 2}}
		Must(db.NewUpdate().Model(&books).Column("title", "pages").Bulk().Exec(t.Ctx))
		t.Equal(bunTitles(t, db.NewSelect()), []string{"1", "2", "three"})
		values := db.NewValues(&books)
		Must(db.NewUpdate().With("_data", values).Model((*bunBook)(nil)).TableExpr("_data").
			Set("title = _data.title || '!'").Where("b.id = _data.id").Exec(t.Ctx))
		t.Equal(bunTitles(t, db.NewSelect()), []string{"1!", "2!", "three"})
	})},
	{"soft_delete", onBun(func(t *T, db *bun.DB) {
		Must(db.NewDelete().Model(&bunAuthor{ID: 2}).WherePK().Exec(t.Ctx))
		authors := func() *bun.SelectQuery { return db.NewSelect().Model((*bunAuthor)(nil)) }
		t.Equal(Must(authors().Count(t.Ctx)), int64(1))
		t.Equal(Must(authors().WhereDeleted().Count(t.Ctx)), int64(1))
		t.Equal(Must(authors().WhereAllWithDeleted().Count(t.Ctx)), int64(2))
		_, err := db.NewDelete().Model(&bunAuthor{ID: 2}).WherePK().ForceDelete().Exec(t.Ctx)
		t.Code(err, "23503")
	})},
	{"delete_returning", onBun(func(t *T, db *bun.DB) {
		var titles []string
		Must(db.NewDelete().Model((*bunBook)(nil)).Where("author_id = 1").Returning("title").Exec(t.Ctx, &titles))
		t.Equal(len(titles), 2)
		t.Equal(bunTitles(t, db.NewSelect()), []string{"three"})
	})},
	{"with_and_union", onBun(func(t *T, db *bun.DB) {
		long := db.NewSelect().Model((*bunBook)(nil)).Where("pages >= 200")
		var sum int
		t.Ok(db.NewSelect().With("long", long).Table("long").ColumnExpr("sum(pages)").Scan(t.Ctx, &sum))
		t.Equal(sum, 500)
		first := db.NewSelect().Table("books").Column("title").Where("id = 1")
		var titles []string
		t.Ok(first.UnionAll(db.NewSelect().Table("tags").Column("name")).Scan(t.Ctx, &titles))
		t.Equal(titles, []string{"one"})
		top := db.NewSelect().Table("books").ColumnExpr("author_id, max(pages) as most").Group("author_id")
		t.Equal(bunTitles(t, db.NewSelect().Join("join (?) as m", top).
			JoinOn("m.author_id = b.author_id and m.most = b.pages")), []string{"two", "three"})
	})},
	{"windows_and_groups", onBun(func(t *T, db *bun.DB) {
		type row struct {
			Title string
			Rank  int
			Share float64
		}
		var rows []row
		t.Ok(db.NewSelect().Model((*bunBook)(nil)).Column("title").
			ColumnExpr("row_number() over (partition by author_id order by pages desc) as rank").
			ColumnExpr("round(pages::numeric / sum(pages) over (), 2)::float8 as share").
			Order("pages").Scan(t.Ctx, &rows))
		t.Equal(rows, []row{{"one", 2, 0.17}, {"two", 1, 0.33}, {"three", 1, 0.5}})
		var names []string
		t.Ok(db.NewSelect().Model((*bunBook)(nil)).ColumnExpr("string_agg(title, ',' order by title)").
			Group("author_id").Having("count(*) > 1").Scan(t.Ctx, &names))
		t.Equal(names, []string{"one,two"})
	})},
	{"distinct_on_and_for_update", onBun(func(t *T, db *bun.DB) {
		var titles []string
		t.Ok(db.NewSelect().Model((*bunBook)(nil)).Column("title").DistinctOn("author_id").
			Order("author_id", "pages desc").Scan(t.Ctx, &titles))
		t.Equal(titles, []string{"two", "three"})
		t.Ok(db.RunInTx(t.Ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			return tx.NewSelect().Model((*bunBook)(nil)).Column("title").Where("id = 1").
				For("update of b skip locked").Scan(ctx, &titles)
		}))
		t.Equal(titles, []string{"one"})
	})},
	{"arrays", onBun(func(t *T, db *bun.DB) {
		var ids []int64
		t.Ok(db.NewSelect().ColumnExpr("array_agg(id order by id)").Table("books").Scan(t.Ctx, pgdialect.Array(&ids)))
		t.Equal(ids, []int64{1, 2, 3})
		t.Equal(bunTitles(t, db.NewSelect().Where("b.id = any(?)", pgdialect.Array([]int64{2}))), []string{"two"})
		count := db.NewSelect().Model((*bunAuthor)(nil)).Where("emails @> ?", pgdialect.Array([]string{"a@x"}))
		t.Equal(Must(count.Count(t.Ctx)), int64(1))
	})},
	{"merge", onBun(func(t *T, db *bun.DB) {
		news := []bunBook{{ID: 1, Title: "neu", Pages: 1, AuthorID: 1}, {ID: 9, Title: "nine", Pages: 9, AuthorID: 2}}
		Must(db.NewMerge().Model(new(bunBook)).With("_data", db.NewValues(&news)).Using("_data").On("b.id = _data.id").
			WhenUpdate("matched", func(q *bun.UpdateQuery) *bun.UpdateQuery { return q.Set("title = _data.title") }).
			WhenInsert("not matched", func(q *bun.InsertQuery) *bun.InsertQuery {
				return q.Value("title", "_data.title").Value("author_id", "_data.author_id")
			}).Exec(t.Ctx))
		t.Equal(bunTitles(t, db.NewSelect()), []string{"neu", "two", "three", "nine"})
	})},
	{"transactions", onBun(func(t *T, db *bun.DB) {
		no := errors.New("no")
		t.Ok(db.RunInTx(t.Ctx, &sql.TxOptions{Isolation: sql.LevelSerializable}, func(ctx context.Context, tx bun.Tx) error {
			Must(tx.NewDelete().Model((*bunBook)(nil)).Where("id = 1").Exec(ctx))
			t.Is(tx.RunInTx(ctx, nil, func(ctx context.Context, inner bun.Tx) error {
				Must(inner.NewDelete().Model((*bunBook)(nil)).Where("id = 2").Exec(ctx))
				return no
			}), no)
			return nil
		}))
		t.Equal(bunTitles(t, db.NewSelect()), []string{"two", "three"})
	})},
	{"errors", onBun(func(t *T, db *bun.DB) {
		_, err := db.NewInsert().Model(&bunAuthor{Name: "ann"}).Exec(t.Ctx)
		var found pgdriver.Error
		t.True(errors.As(err, &found), "got %v", err)
		t.Equal(found.IntegrityViolation(), true)
		t.Equal(found.Field('C')+found.Field('n')+found.Field('t'), "23505authors_name_keyauthors")
		_, err = db.NewRaw("selec 1").Exec(t.Ctx)
		t.Code(err, "42601")
	})},
}
