// GORM: models are created, found, changed and deleted.
package main

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/lib/pq"
	"gorm.io/datatypes"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

var gormCases = []Case{
	{"create_and_find", onGorm(func(t *T, db *gorm.DB) {
		user := User{Name: "zoe", Email: "z@x"}
		result := db.Create(&user)
		t.Ok(result.Error)
		t.Equal(result.RowsAffected, int64(1))
		t.Equal(user.ID, uint(4))
		t.Equal(user.Age, 18)
		t.Equal(user.Active, true)
		var found User
		t.Ok(db.First(&found, user.ID).Error)
		t.Equal(found.Name, "zoe")
		t.True(found.CreatedAt.Sub(user.CreatedAt).Abs() < time.Microsecond, "got %v", found.CreatedAt)
		t.Ok(db.Last(&found).Error)
		t.Is(db.Take(&User{}, "name = ?", "none").Error, gorm.ErrRecordNotFound)
	})},
	{"conditions", onGorm(func(t *T, db *gorm.DB) {
		t.Equal(userNames(t, db.Where("age > ? and name like ?", 10, "%b%")), []string{"bob"})
		t.Equal(userNames(t, db.Where(&User{Name: "ann"})), []string{"ann"})
		t.Equal(userNames(t, db.Where(map[string]any{"age": []int{20, 40}})), []string{"bob", "eve"})
		t.Equal(userNames(t, db.Not("name in ?", []string{"ann", "bob"})), []string{"eve"})
		t.Equal(userNames(t, db.Where("age < 25").Or("age > 35")), []string{"bob", "eve"})
		t.Equal(userNames(t, db.Where("(name, age) in ?", [][]any{{"ann", 30}, {"bob", 1}})), []string{"ann"})
		t.Equal(userNames(t, db.Where("name = @n or email = @n", sql.Named("n", "e@x"))), []string{"eve"})
	})},
	{"batches", onGorm(func(t *T, db *gorm.DB) {
		var users []User
		for i := range 250 {
			users = append(users, User{Name: "many", Email: fmt.Sprint(i)})
		}
		t.Ok(db.CreateInBatches(users, 100).Error)
		t.Equal(users[249].ID, uint(253))
		seen := 0
		var batch []User
		t.Ok(db.Where("name = 'many'").FindInBatches(&batch, 60, func(tx *gorm.DB, n int) error {
			seen += len(batch)
			return nil
		}).Error)
		t.Equal(seen, 250)
	})},
	{"updates", onGorm(func(t *T, db *gorm.DB) {
		t.Ok(db.Model(&User{}).Where("name = ?", "ann").Update("age", 31).Error)
		t.Ok(db.Model(&User{}).Where("name = ?", "bob").Updates(map[string]any{"age": 0, "active": false}).Error)
		result := db.Model(&User{}).Where("age < 100").Update("age", gorm.Expr("age * ? + ?", 2, 1))
		t.Ok(result.Error)
		t.Equal(result.RowsAffected, int64(3))
		var user User
		t.Ok(db.First(&user, "name = 'ann'").Error)
		t.Equal(user.Age, 63)
		user.Name, user.Age = "anna", 1
		t.Ok(db.Save(&user).Error)
		var returned []User
		t.Ok(db.Model(&returned).Clauses(clause.Returning{}).Where("name = ?", "anna").Update("age", 2).Error)
		t.Equal(returned[0].Name+returned[0].Email, "annaa@x")
		t.Is(db.Model(&User{}).Update("age", 1).Error, gorm.ErrMissingWhereClause)
	})},
	{"soft_delete", onGorm(func(t *T, db *gorm.DB) {
		t.Ok(db.Where("name = ?", "bob").Delete(&User{}).Error)
		t.Equal(userNames(t, db), []string{"ann", "eve"})
		t.Equal(userNames(t, db.Unscoped()), []string{"ann", "bob", "eve"})
		t.Ok(db.Unscoped().Where("name = ?", "bob").Delete(&User{}).Error)
		t.Equal(userNames(t, db.Unscoped()), []string{"ann", "eve"})
		var pets int64
		t.Ok(db.Model(&Pet{}).Count(&pets).Error)
		t.Equal(pets, int64(2))
	})},
	{"preload", onGorm(func(t *T, db *gorm.DB) {
		var users []User
		t.Ok(db.Preload(clause.Associations).Preload("Pets", func(db *gorm.DB) *gorm.DB {
			return db.Order("pets.name desc")
		}).Order("name").Find(&users).Error)
		t.Equal(users[0].Company.Name, "Acme")
		t.Equal(users[0].Card.Number, "4711")
		t.Equal([]string{users[0].Pets[0].Name, users[0].Pets[1].Name}, []string{"tom", "rex"})
		t.Equal(len(users[0].Languages), 2)
		t.Equal(users[1].Toys[0].OwnerType, "users")
		t.Equal(users[2].Company, (*Company)(nil))
	})},
	{"joins", onGorm(func(t *T, db *gorm.DB) {
		var users []User
		t.Ok(db.Joins("Company").Joins("Card").Where(`"Company"."name" = ?`, "Acme").
			Order("users.name").Find(&users).Error)
		t.Equal(len(users), 2)
		t.Equal(users[0].Card.Number, "4711")
		type row struct {
			Name string
			Pets int
		}
		var rows []row
		t.Ok(db.Model(&User{}).Select("users.name, count(pets.id) as pets").
			Joins("left join pets on pets.user_id = users.id").Group("users.name").
			Having("count(pets.id) > ?", 0).Order("users.name").Scan(&rows).Error)
		t.Equal(rows, []row{{"ann", 2}, {"bob", 1}})
		t.Equal(userNames(t, db.InnerJoins("Company")), []string{"ann", "bob"})
	})},
	{"associations", onGorm(func(t *T, db *gorm.DB) {
		var ann User
		t.Ok(db.First(&ann, "name = 'ann'").Error)
		languages := func() *gorm.Association { return db.Model(&ann).Association("Languages") }
		t.Ok(languages().Append(&Language{"fr", "French"}))
		t.Equal(languages().Count(), int64(3))
		t.Ok(languages().Delete(&Language{Code: "de"}))
		t.Ok(languages().Replace(&Language{"it", "Italian"}, &Language{"en", "English"}))
		var found []Language
		t.Ok(db.Model(&ann).Order("code").Association("Languages").Find(&found))
		t.Equal(found, []Language{{"en", "English"}, {"it", "Italian"}})
		t.Ok(languages().Clear())
		t.Equal(languages().Count(), int64(0))
		t.Ok(db.Model(&ann).Association("Company").Clear())
		t.Equal(userNames(t, db.Where("company_id is null")), []string{"ann", "eve"})
	})},
	{"delete_with_select", onGorm(func(t *T, db *gorm.DB) {
		var ann User
		t.Ok(db.First(&ann, "name = 'ann'").Error)
		t.Ok(db.Select("Pets", "Languages", "Card").Unscoped().Delete(&ann).Error)
		var links int64
		t.Ok(db.Table("user_languages").Count(&links).Error)
		t.Equal(links, int64(0))
	})},
	{"upserts", onGorm(func(t *T, db *gorm.DB) {
		again := []User{{Name: "bobby", Email: "b@x", Age: 21}, {Name: "new", Email: "n@x", Age: 5}}
		t.Ok(db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "email"}},
			DoUpdates: clause.AssignmentColumns([]string{"name", "age"})}).Create(&again).Error)
		t.Equal(userNames(t, db), []string{"ann", "bobby", "eve", "new"})
		t.Ok(db.Clauses(clause.OnConflict{DoNothing: true}).
			Create(&User{Name: "lost", Email: "n@x"}).Error)
		t.Ok(db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "code"}}, UpdateAll: true}).
			Create(&Language{"de", "Deutsch"}).Error)
		var german Language
		t.Ok(db.First(&german, "code = 'de'").Error)
		t.Equal(german.Name, "Deutsch")
		t.Equal(len(userNames(t, db)), 4)
	})},
	{"first_or_create", onGorm(func(t *T, db *gorm.DB) {
		var user User
		t.Ok(db.Where(User{Email: "q@x"}).Attrs(User{Name: "quin", Age: 7}).FirstOrCreate(&user).Error)
		t.Equal(user.ID, uint(4))
		var again User
		t.Ok(db.Where(User{Email: "q@x"}).Assign(User{Age: 8}).FirstOrCreate(&again).Error)
		t.Equal(again.ID, uint(4))
		t.Equal(userNames(t, db.Where("age = 8")), []string{"quin"})
		var init User
		t.Ok(db.FirstOrInit(&init, User{Name: "unsaved"}).Error)
		t.Equal(init.ID, uint(0))
	})},
	{"aggregates_and_paging", onGorm(func(t *T, db *gorm.DB) {
		var count, sum int64
		t.Ok(db.Model(&User{}).Distinct("company_id").Count(&count).Error)
		t.Equal(count, int64(1))
		t.Ok(db.Model(&User{}).Select("sum(age)").Row().Scan(&sum))
		t.Equal(sum, int64(90))
		page := func(n int) func(*gorm.DB) *gorm.DB {
			return func(db *gorm.DB) *gorm.DB { return db.Order("age desc").Offset(n - 1).Limit(1) }
		}
		var user User
		t.Ok(db.Scopes(page(2)).Find(&user).Error)
		t.Equal(user.Name, "ann")
	})},
	{"subqueries", onGorm(func(t *T, db *gorm.DB) {
		average := db.Model(&User{}).Select("avg(age)")
		t.Equal(userNames(t, db.Where("age > (?)", average)), []string{"eve"})
		var names []string
		t.Ok(db.Table("(?) as u", db.Model(&User{}).Select("name", "age")).Where("u.age < ?", 35).
			Order("name").Pluck("name", &names).Error)
		t.Equal(names, []string{"ann", "bob"})
	})},
	{"raw_and_rows", onGorm(func(t *T, db *gorm.DB) {
		var found []map[string]any
		t.Ok(db.Raw("select name, age from users where age > ? order by age", 25).Scan(&found).Error)
		t.Equal(found, []map[string]any{{"name": "ann", "age": int64(30)}, {"name": "eve", "age": int64(40)}})
		t.Equal(db.Exec("update users set age = age + 1").RowsAffected, int64(3))
		rows := Must(db.Model(&User{}).Where("age > 25").Rows())
		defer rows.Close()
		seen := 0
		for rows.Next() {
			var user User
			t.Ok(db.ScanRows(rows, &user))
			seen += user.Age
		}
		t.Equal(seen, 72)
	})},
	{"transactions", onGorm(func(t *T, db *gorm.DB) {
		no := errors.New("no")
		t.Ok(db.Transaction(func(tx *gorm.DB) error {
			t.Ok(tx.Create(&User{Name: "one", Email: "1"}).Error)
			t.Is(tx.Transaction(func(inner *gorm.DB) error {
				t.Ok(inner.Create(&User{Name: "two", Email: "2"}).Error)
				return no
			}), no)
			return tx.Transaction(func(inner *gorm.DB) error {
				return inner.Create(&User{Name: "three", Email: "3"}).Error
			})
		}))
		t.Equal(userNames(t, db), []string{"ann", "bob", "eve", "one", "three"})
		tx := db.Begin(&sql.TxOptions{Isolation: sql.LevelSerializable})
		t.Ok(tx.Create(&User{Name: "four", Email: "4"}).Error)
		t.Ok(tx.SavePoint("sp").Error)
		t.Ok(tx.Create(&User{Name: "five", Email: "5"}).Error)
		t.Ok(tx.RollbackTo("sp").Error)
		t.Ok(tx.Commit().Error)
		t.Equal(len(userNames(t, db)), 6)
	})},
	{"locking", onGorm(func(t *T, db *gorm.DB) {
		t.Ok(db.Transaction(func(tx *gorm.DB) error {
			var user User
			t.Ok(tx.Clauses(forUpdate).First(&user, "name = 'ann'").Error)
			var others []User
			skip := clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}
			t.Ok(db.Transaction(func(other *gorm.DB) error {
				return other.Clauses(skip).Order("id").Find(&others).Error
			}))
			t.Equal(len(others), 2)
			return tx.Clauses(clause.Locking{Strength: "SHARE", Table: clause.Table{Name: "users"}}).
				Find(&user).Error
		}))
	})},
	{"json_columns", onGorm(func(t *T, db *gorm.DB) {
		t.Equal(userNames(t, db.Where(datatypes.JSONQuery("profile").HasKey("n", "m"))), []string{"ann"})
		t.Equal(userNames(t, db.Where(datatypes.JSONQuery("profile").Equals("user", "role"))), []string{"bob"})
		t.Equal(userNames(t, db.Where(datatypes.JSONQuery("profile").Equals(5, "n", "m"))), []string{"ann"})
		t.Equal(userNames(t, db.Where("profile @> ?", `{"role": "admin"}`)), []string{"ann"})
		t.Ok(db.Model(&User{}).Where("name = 'bob'").
			UpdateColumn("profile", datatypes.JSONSet("profile").Set("{role}", "root")).Error)
		t.Equal(userNames(t, db.Where("profile->>'role' = ?", "root")), []string{"bob"})
	})},
	{"columns_of_all_kinds", bare(func(t *T, db *gorm.DB, _ *journal) {
		t.Ok(db.AutoMigrate(&Sheet{}))
		sheet := Sheet{Small: -3, Big: 1 << 63, Ratio: 1e-9, Price: 12.34, Raw: []byte{0, 255},
			Day:   datatypes.Date(time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)),
			Tags:  datatypes.NewJSONSlice([]string{"a", "ü"}),
			Place: datatypes.NewJSONType(address{"Main", []string{"x"}}),
			Extra: map[string]any{"k": []any{1.0, nil}}}
		sheet.Inner.X = 7
		t.Ok(db.Create(&sheet).Error)
		t.Equal(len(sheet.ID), 36)
		var found Sheet
		t.Ok(db.First(&found, "id = ?", sheet.ID).Error)
		t.Equal(found.Big, uint64(1<<63))
		t.Equal(found.Price, 12.34)
		t.Equal(found.Raw, []byte{0, 255})
		t.Equal(*found.Note, "none")
		t.Equal(time.Time(found.Day).Format(time.DateOnly), "2024-02-29")
		t.Equal([]string(found.Tags), []string{"a", "ü"})
		t.Equal(found.Place.Data(), address{"Main", []string{"x"}})
		t.Equal(found.Extra, map[string]any{"k": []any{1.0, nil}})
		t.Equal(found.Inner.X, 7)
		t.Equal(found.Updated, sheet.Updated)
	})},
	{"composite_keys", bare(func(t *T, db *gorm.DB, _ *journal) {
		t.Ok(db.AutoMigrate(&Score{}))
		t.Ok(db.Create([]Score{{1, "a", 5}, {1, "b", 6}, {2, "a", 7}}).Error)
		t.Ok(db.Save(&Score{1, "b", 60}).Error)
		t.Is(db.Create(&Score{1, "a", 9}).Error, gorm.ErrDuplicatedKey)
		var found []Score
		t.Ok(db.Order("game, player").Find(&found).Error)
		t.Equal(found, []Score{{1, "a", 5}, {1, "b", 60}, {2, "a", 7}})
	})},
	{"translated_errors", onGorm(func(t *T, db *gorm.DB) {
		t.Is(db.Create(&User{Name: "x", Email: "a@x"}).Error, gorm.ErrDuplicatedKey)
		t.Is(db.Create(&Pet{Name: "x", UserID: 99}).Error, gorm.ErrForeignKeyViolated)
		t.Is(db.Create(&User{Name: "x", Email: "x", Age: -1}).Error, gorm.ErrCheckConstraintViolated)
		t.Is(db.Delete(&Company{}, "name = 'Acme'").Error, gorm.ErrForeignKeyViolated)
		t.Code(db.Exec("select absent from users").Error, "42703")
	})},
	{"prepared_and_dry_run", onGorm(func(t *T, db *gorm.DB) {
		prepared := db.Session(&gorm.Session{PrepareStmt: true})
		for _, name := range []string{"ann", "bob", "none"} {
			var count int64
			t.Ok(prepared.Model(&User{}).Where("name = ?", name).Count(&count).Error)
			t.Equal(count == 0, name == "none")
		}
		said := db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Where("name = ?", "o'b").Limit(1).Find(&Company{}) })
		t.Equal(said, `SELECT * FROM "companies" WHERE name = 'o''b' LIMIT 1`)
		t.Ok(db.Exec(said).Error)
	})},
	{"simple_protocol", func(t *T) {
		db := Must(gorm.Open(postgres.New(postgres.Config{DSN: t.DSN(), PreferSimpleProtocol: true}),
			&gorm.Config{SkipDefaultTransaction: true, NamingStrategy: schema.NamingStrategy{SingularTable: true}}))
		pool := Must(db.DB())
		defer pool.Close()
		t.Ok(db.AutoMigrate(&Company{}, &Language{}, &User{}, &Card{}, &Pet{}, &Toy{}))
		birthday := time.Date(2000, 1, 2, 0, 0, 0, 0, time.UTC)
		user := User{Name: "it's", Email: "x", Birthday: &birthday, Profile: datatypes.JSON(`{"a": "\\"}`)}
		t.Ok(db.Create(&user).Error)
		var found User
		t.Ok(db.Where("birthday = ? and age in ?", birthday, []int{18, 19}).First(&found).Error)
		t.Equal(found.Name+string(found.Profile), `it's{"a": "\\"}`)
	}},
	{"arrays_enums_and_generated", bare(func(t *T, db *gorm.DB, j *journal) {
		t.Ok(db.Exec("create type mood as enum ('calm', 'wild')").Error)
		t.Ok(db.AutoMigrate(&Post{}))
		posts := []Post{{Tags: pq.StringArray{"a", "b,c"}, Title: "four", Doc: datatypes.JSON("{}")}, {Mood: "wild", Counts: pq.Int64Array{1, 2}}}
		t.Ok(db.Create(&posts).Error)
		var found []Post
		t.Ok(db.Where("tags @> ? or mood = ?", pq.StringArray{"b,c"}, "wild").Order("id").Find(&found).Error)
		t.Equal(len(found), 2)
		t.Equal(found[0].Tags, pq.StringArray{"a", "b,c"})
		t.Equal(found[0].Mood+string(found[0].Doc), "calm{}")
		t.Equal(found[0].Length, 4)
		t.Equal(found[1].Counts, pq.Int64Array{1, 2})
		t.Equal(db.Where("? = any(tags)", "a").Find(&found).RowsAffected, int64(1))
	})},
	{"optimistic_locking", bare(func(t *T, db *gorm.DB, _ *journal) {
		t.Ok(db.AutoMigrate(&Version{}))
		t.Ok(db.Create(&Version{Text: "a", Version: 1}).Error)
		var first, second Version
		t.Ok(db.First(&first).Error)
		t.Ok(db.First(&second).Error)
		t.Equal(db.Model(&first).Updates(Version{Text: "b"}).RowsAffected, int64(1))
		t.Equal(db.Model(&second).Updates(Version{Text: "c"}).RowsAffected, int64(0))
		t.Ok(db.First(&second).Error)
		t.Equal(second, Version{1, "b", 2})
	})},
	{"trees_and_friends", bare(func(t *T, db *gorm.DB, _ *journal) {
		t.Ok(db.AutoMigrate(&Node{}))
		root := Node{Name: "root", Children: []Node{{Name: "a", Children: []Node{{Name: "aa"}}}, {Name: "b"}}}
		t.Ok(db.Create(&root).Error)
		t.Ok(db.Model(&root).Association("Friends").Append(&Node{Name: "friend"}))
		var found Node
		t.Ok(db.Preload("Children.Children").Preload("Friends").First(&found, "name = 'root'").Error)
		t.Equal(len(found.Children), 2)
		t.Equal(found.Children[0].Children[0].Name, "aa")
		t.Equal(found.Friends[0].Name, "friend")
		var depth int
		t.Ok(db.Raw(`with recursive down as (select id, 1 as level from nodes where parent_id is null and name = ?
			union all select n.id, level + 1 from nodes n join down on n.parent_id = down.id)
			select max(level) from down`, "root").Scan(&depth).Error)
		t.Equal(depth, 3)
	})},
}
