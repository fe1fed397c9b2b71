// GORM: AutoMigrate and the Migrator.
package main

import (
	"slices"
	"strings"
	"time"

	"github.com/lib/pq"
	"gorm.io/datatypes"
	"gorm.io/gorm"
)

type itemBefore struct {
	ID    uint
	Name  string `gorm:"size:20"`
	Count int32
}

func (itemBefore) TableName() string { return "items" }

type itemAfter struct {
	ID      uint
	Name    string `gorm:"size:90;not null;default:none;comment:what it is called"`
	Count   int64
	Added   time.Time
	Code    *string        `gorm:"uniqueIndex;size:9"`
	Deleted gorm.DeletedAt `gorm:"index:idx_items_live,where:deleted is null"`
	Lower   string         `gorm:"index:idx_items_lower,expression:lower(lower)"`
}

func (itemAfter) TableName() string { return "items" }

// plainPost is a Post without the generated column, which GORM alters each time that it migrates.
type plainPost struct {
	ID     int64          `gorm:"primaryKey;autoIncrementIncrement:1"`
	Mood   string         `gorm:"type:mood;default:calm"`
	Tags   pq.StringArray `gorm:"type:text[];index:,type:gin"`
	Counts pq.Int64Array  `gorm:"type:bigint[]"`
	Doc    datatypes.JSON `gorm:"type:jsonb;index:,type:gin"`
	Title  string         `gorm:"index:idx_title,unique,where:title <> '',sort:desc"`
}

func (plainPost) TableName() string { return "posts" }

var gormSchemas = []Case{
	{"migrate_again_changes_nothing", bare(func(t *T, db *gorm.DB, j *journal) {
		t.Ok(db.AutoMigrate(models...))
		t.True(len(j.changes()) > 6, "no tables are made")
		t.Ok(db.AutoMigrate(models...))
		t.Equal(j.changes(), []string{})
	})},
	{"migrate_all_kinds_again", bare(func(t *T, db *gorm.DB, j *journal) {
		t.Ok(db.AutoMigrate(&Sheet{}, &Score{}))
		j.changes()
		t.Ok(db.AutoMigrate(&Sheet{}, &Score{}))
		t.Equal(j.changes(), []string{})
	})},
	{"migrate_to_another_model", bare(func(t *T, db *gorm.DB, j *journal) {
		t.Ok(db.AutoMigrate(&itemBefore{}))
		t.Ok(db.Create(&itemBefore{Name: "a", Count: 5}).Error)
		t.Ok(db.AutoMigrate(&itemAfter{}))
		j.changes()
		t.Ok(db.AutoMigrate(&itemAfter{}))
		t.Equal(j.changes(), []string{})
		var found itemAfter
		t.Ok(db.First(&found).Error)
		t.Equal(found.Count, int64(5))
		t.Ok(db.Create(&itemAfter{Count: 1 << 40}).Error)
	})},
	{"has_and_current", onGorm(func(t *T, db *gorm.DB) {
		m := db.Migrator()
		t.Equal(m.HasTable(&User{}), true)
		t.Equal(m.HasTable("absent"), false)
		t.Equal(m.HasColumn(&User{}, "Email"), true)
		t.Equal(m.HasColumn(&User{}, "absent"), false)
		t.Equal(m.HasIndex(&User{}, "idx_name_age"), true)
		t.Equal(m.HasIndex(&User{}, "absent"), false)
		t.Equal(m.HasConstraint(&User{}, "Company"), true)
		t.Equal(m.HasConstraint(&User{}, "age_check"), true)
		t.Equal(m.HasConstraint(&User{}, "absent"), false)
		var name string
		t.Ok(db.Raw("select current_database()").Scan(&name).Error)
		t.Equal(m.CurrentDatabase(), name)
	})},
	{"tables", onGorm(func(t *T, db *gorm.DB) {
		found := Must(db.Migrator().GetTables())
		t.Equal(len(found), 7)
		slices.Sort(found)
		t.Equal(found[5:], []string{"user_languages", "users"})
	})},
	{"column_types", onGorm(func(t *T, db *gorm.DB) {
		var found []string
		for _, column := range Must(db.Migrator().ColumnTypes(&Card{})) {
			nullable, _ := column.Nullable()
			key, _ := column.PrimaryKey()
			said := column.Name() + " " + column.DatabaseTypeName()
			if length, ok := column.Length(); ok {
				t.Equal(length, map[bool]int64{true: 30, false: length}[column.Name() == "number"])
			}
			if comment, ok := column.Comment(); ok {
				said += " " + comment
			}
			if value, ok := column.DefaultValue(); ok {
				said += " " + value
			}
			if key {
				said += " key"
			}
			if !nullable {
				said += " not null"
			}
			found = append(found, said)
		}
		t.Equal(strings.Join(found, "|"),
			"id int8 key not null|number varchar as printed|user_id int8")
	})},
	{"indexes", onGorm(func(t *T, db *gorm.DB) {
		found := map[string]string{}
		for _, index := range Must(db.Migrator().GetIndexes(&User{})) {
			unique, _ := index.Unique()
			said := strings.Join(slices.Sorted(slices.Values(index.Columns())), ",")
			if unique {
				said += " unique"
			}
			found[index.Name()] = said
		}
		t.Equal(found, map[string]string{"idx_users_email": "email unique",
			"idx_name_age": "age,name", "idx_users_deleted_at": "deleted_at"})
		m := db.Migrator()
		t.Ok(m.RenameIndex(&User{}, "idx_name_age", "idx_both"))
		t.Equal(m.HasIndex(&User{}, "idx_both"), true)
		t.Ok(m.DropIndex(&User{}, "idx_both"))
		t.Ok(m.CreateIndex(&User{}, "idx_name_age"))
		t.Equal(m.HasIndex(&User{}, "idx_name_age"), true)
	})},
	{"columns_change", onGorm(func(t *T, db *gorm.DB) {
		m := db.Migrator()
		t.Ok(m.RenameColumn(&Pet{}, "name", "called"))
		t.Equal(m.HasColumn(&Pet{}, "called"), true)
		t.Ok(m.RenameColumn(&Pet{}, "called", "name"))
		t.Ok(m.DropColumn(&User{}, "Birthday"))
		t.Equal(m.HasColumn(&User{}, "birthday"), false)
		t.Ok(m.AddColumn(&User{}, "Birthday"))
		t.Ok(m.AlterColumn(&User{}, "Name"))
		t.Equal(m.HasColumn(&User{}, "birthday"), true)
		t.Equal(userNames(t, db.Where("birthday is null")), []string{"ann", "bob", "eve"})
	})},
	{"constraints_change", onGorm(func(t *T, db *gorm.DB) {
		m := db.Migrator()
		t.Ok(m.DropConstraint(&User{}, "age_check"))
		t.Equal(m.HasConstraint(&User{}, "age_check"), false)
		t.Ok(db.Create(&User{Name: "neg", Email: "n", Age: -1}).Error)
		t.True(m.CreateConstraint(&User{}, "age_check") != nil, "a broken check is made")
		t.Ok(db.Unscoped().Delete(&User{}, "age < 0").Error)
		t.Ok(m.CreateConstraint(&User{}, "age_check"))
		t.Ok(m.DropConstraint(&User{}, "Pets"))
		t.Ok(db.Create(&Pet{Name: "stray", UserID: 99}).Error)
	})},
	{"views", onGorm(func(t *T, db *gorm.DB) {
		query := db.Model(&User{}).Select("name, age").Where("age > ?", 25)
		t.Ok(db.Migrator().CreateView("elders", gorm.ViewOption{Query: query}))
		t.Ok(db.Migrator().CreateView("elders", gorm.ViewOption{Query: query, Replace: true}))
		var names []string
		t.Ok(db.Table("elders").Order("name").Pluck("name", &names).Error)
		t.Equal(names, []string{"ann", "eve"})
		t.Ok(db.Migrator().DropView("elders"))
		t.True(db.Table("elders").Pluck("name", &names).Error != nil, "the view is there")
	})},
	{"tables_change", onGorm(func(t *T, db *gorm.DB) {
		m := db.Migrator()
		t.Ok(m.RenameTable(&Pet{}, "animals"))
		t.Equal(m.HasTable("animals"), true)
		var count int64
		t.Ok(db.Table("animals").Count(&count).Error)
		t.Equal(count, int64(3))
		t.Ok(m.DropTable("animals", &Toy{}, "absent"))
		t.Equal(m.HasTable(&Toy{}), false)
	})},
	{"migrate_special_columns_again", bare(func(t *T, db *gorm.DB, j *journal) {
		t.Ok(db.Exec("create type mood as enum ('calm', 'wild')").Error)
		t.Ok(db.AutoMigrate(&Post{}, &Node{}))
		t.Ok(db.Migrator().DropColumn(&Post{}, "Length"))
		j.changes()
		t.Ok(db.AutoMigrate(&plainPost{}, &Node{}))
		t.Equal(j.changes(), []string{})
		t.Equal(db.Migrator().HasIndex(&Post{}, "idx_title"), true)
	})},
	{"another_schema", bare(func(t *T, db *gorm.DB, j *journal) {
		t.Ok(db.Exec("set search_path = public").Error)
		name := t.Schema + ".elsewhere"
		t.Ok(db.Table(name).AutoMigrate(&Company{}))
		t.Ok(db.Table(name).Create(&Company{Name: "a"}).Error)
		t.Equal(db.Migrator().HasTable(name), true)
		t.Equal(db.Migrator().HasTable("elsewhere"), false)
		t.Ok(db.Table(name).Migrator().AddColumn(&User{}, "Active"))
		var found Company
		t.Ok(db.Table(name + " as e").Where("e.active").First(&found).Error)
		t.Equal(found.Name, "a")
	})},
}
