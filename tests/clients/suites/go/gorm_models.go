// GORM: models, and how a case connects.
package main

import (
	"context"
	"github.com/lib/pq"
	"strings"
	"sync"
	"time"

	"gorm.io/datatypes"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

func gormClient() Client {
	return Client{"gorm", versionOf("gorm.io/gorm"), append(append([]Case{}, gormCases...), gormSchemas...)}
}

// User has relations of all kinds.
type User struct {
	gorm.Model
	Name      string `gorm:"size:100;not null;index:idx_name_age,priority:1"`
	Email     string `gorm:"uniqueIndex"`
	Age       int    `gorm:"default:18;index:idx_name_age,priority:2;check:age_check,age >= 0"`
	Birthday  *time.Time
	Active    bool `gorm:"default:true"`
	Profile   datatypes.JSON
	CompanyID *uint
	Company   *Company
	Card      *Card
	Pets      []Pet      `gorm:"constraint:OnDelete:CASCADE"`
	Languages []Language `gorm:"many2many:user_languages"`
	Toys      []Toy      `gorm:"polymorphic:Owner"`
}

// Company has many users.
type Company struct {
	ID   uint
	Name string
}

// Card belongs to one user.
type Card struct {
	ID     uint
	Number string `gorm:"type:varchar(30);comment:as printed"`
	UserID uint
}

// Pet is one of many of a user.
type Pet struct {
	ID     uint
	Name   string
	UserID uint
}

// Language is spoken by many.
type Language struct {
	Code string `gorm:"primaryKey;size:8"`
	Name string
}

// Toy belongs to users or to others.
type Toy struct {
	ID        uint
	Name      string
	OwnerID   uint
	OwnerType string
}

// Sheet has a column of each kind.
type Sheet struct {
	ID      string `gorm:"type:uuid;primaryKey;default:gen_random_uuid()"`
	Small   int8
	Big     uint64 `gorm:"type:numeric(20,0)"`
	Ratio   float64
	Price   float64 `gorm:"precision:10;scale:2;type:decimal(10,2)"`
	Raw     []byte
	Note    *string                     `gorm:"default:none"`
	Day     datatypes.Date              `gorm:"not null"`
	Tags    datatypes.JSONSlice[string] `gorm:"type:jsonb"`
	Place   datatypes.JSONType[address]
	Extra   map[string]any     `gorm:"serializer:json"`
	Created time.Time          `gorm:"autoCreateTime"`
	Updated int64              `gorm:"autoUpdateTime:milli"`
	Inner   struct{ X, Y int } `gorm:"embedded;embeddedPrefix:inner_"`
}

// Score has a key of two columns.
type Score struct {
	Game   int    `gorm:"primaryKey;autoIncrement:false"`
	Player string `gorm:"primaryKey"`
	Points int
}

var models = []any{&Company{}, &Language{}, &User{}, &Card{}, &Pet{}, &Toy{}}

// journal keeps the statements that GORM runs.
type journal struct {
	guard      sync.Mutex
	statements []string
}

func (j *journal) LogMode(logger.LogLevel) logger.Interface { return j }
func (j *journal) Info(context.Context, string, ...any)     {}
func (j *journal) Warn(context.Context, string, ...any)     {}
func (j *journal) Error(context.Context, string, ...any)    {}
func (j *journal) Trace(_ context.Context, _ time.Time, said func() (string, int64), _ error) {
	statement, _ := said()
	j.guard.Lock()
	defer j.guard.Unlock()
	j.statements = append(j.statements, statement)
}

// changes are the statements that change a schema.
func (j *journal) changes() []string {
	found := []string{}
	for _, statement := range j.statements {
		switch strings.ToUpper(strings.Fields(statement)[0]) {
		case "CREATE", "ALTER", "DROP", "COMMENT":
			found = append(found, statement)
		}
	}
	j.statements = nil
	return found
}

// bare connects, without tables.
func bare(body func(t *T, db *gorm.DB, j *journal)) func(t *T) {
	return func(t *T) {
		j := &journal{}
		db := Must(gorm.Open(postgres.Open(t.DSN()), &gorm.Config{Logger: j, TranslateError: true}))
		pool := Must(db.DB())
		defer pool.Close()
		body(t, db.WithContext(t.Ctx), j)
	}
}

// onGorm connects and migrates all models, with three users.
func onGorm(body func(t *T, db *gorm.DB)) func(t *T) {
	return bare(func(t *T, db *gorm.DB, _ *journal) {
		t.Ok(db.AutoMigrate(models...))
		acme := &Company{Name: "Acme"}
		t.Ok(db.Create([]*User{
			{Name: "ann", Email: "a@x", Age: 30, Company: acme, Card: &Card{Number: "4711"},
				Profile:   datatypes.JSON(`{"role": "admin", "tags": ["x", "y"], "n": {"m": 5}}`),
				Pets:      []Pet{{Name: "rex"}, {Name: "tom"}},
				Languages: []Language{{"de", "German"}, {"en", "English"}}},
			{Name: "bob", Email: "b@x", Age: 20, Company: acme, Profile: datatypes.JSON(`{"role": "user"}`),
				Pets: []Pet{{Name: "kit"}}, Toys: []Toy{{Name: "ball"}}},
			{Name: "eve", Email: "e@x", Age: 40, Profile: datatypes.JSON(`{}`)},
		}).Error)
		body(t, db)
	})
}

func userNames(t *T, db *gorm.DB) []string {
	found := []string{}
	t.Ok(db.Model(&User{}).Order("users.name").Pluck("users.name", &found).Error)
	return found
}

var forUpdate = clause.Locking{Strength: clause.LockingStrengthUpdate}

// Post has what PostgreSQL alone has.
type Post struct {
	ID     int64          `gorm:"primaryKey;autoIncrementIncrement:1"`
	Mood   string         `gorm:"type:mood;default:calm"`
	Tags   pq.StringArray `gorm:"type:text[];index:,type:gin"`
	Counts pq.Int64Array  `gorm:"type:bigint[]"`
	Doc    datatypes.JSON `gorm:"type:jsonb;index:,type:gin"`
	Title  string         `gorm:"index:idx_title,unique,where:title <> '',sort:desc"`
	Length int            `gorm:"->;type:int GENERATED ALWAYS AS (length(title)) STORED"`
}

// Version counts the changes of a row, so that two writers do not overwrite each other.
type Version struct {
	ID      uint
	Text    string
	Version int64
}

// BeforeUpdate asks for the version that was read, and counts it up.
func (v *Version) BeforeUpdate(tx *gorm.DB) error {
	tx.Statement.Where("version = ?", v.Version)
	tx.Statement.SetColumn("version", v.Version+1)
	return nil
}

// Node is the parent of nodes, and a friend of others.
type Node struct {
	ID       uint
	Name     string
	ParentID *uint
	Children []Node  `gorm:"foreignKey:ParentID"`
	Friends  []*Node `gorm:"many2many:friendships"`
}
