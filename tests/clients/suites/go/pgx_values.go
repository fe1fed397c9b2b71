// pgx: connections, and values of all types in its binary formats.
package main

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

func pgxClient() Client {
	return Client{"pgx", versionOf("github.com/jackc/pgx/v5"),
		append(append(append([]Case{}, pgxValues...), pgxWork...), pgxSessions...)}
}

// onPgx connects, with the case's schema as search path.
func onPgx(body func(t *T, c *pgx.Conn)) func(t *T) {
	return func(t *T) {
		c := Must(pgx.Connect(t.Ctx, t.DSN()))
		defer c.Close(context.Background())
		body(t, c)
	}
}

// sent is a value that goes to the server as a parameter of a type, and comes back.
func sent[V any](t *T, c *pgx.Conn, kind string, values ...V) {
	for _, value := range values {
		var back V
		t.Ok(c.QueryRow(t.Ctx, "select $1::"+kind, value).Scan(&back))
		t.Equal(back, value)
	}
}

func pgxScalar[V any](t *T, c *pgx.Conn, query string, arguments ...any) V {
	var found V
	t.Ok(c.QueryRow(t.Ctx, query, arguments...).Scan(&found))
	return found
}

func pointer[V any](value V) *V { return &value }

type address struct {
	Street string   `json:"street"`
	Lines  []string `json:"lines"`
}

var pgxValues = []Case{
	{"connect_url", func(t *T) {
		c := Must(pgx.Connect(t.Ctx, DSN("application_name", "suite", "statement_timeout", "5000")))
		defer c.Close(t.Ctx)
		t.Equal(pgxScalar[string](t, c, "show application_name"), "suite")
		t.Equal(pgxScalar[string](t, c, "show statement_timeout"), "5s")
		t.Equal(pgxScalar[string](t, c, "select current_user::text"), os.Getenv("PGUSER"))
	}},
	{"connect_keywords", func(t *T) {
		dsn := fmt.Sprintf("host=%s port=%s user=%s dbname=%s sslmode=prefer connect_timeout=10",
			os.Getenv("PGHOST"), os.Getenv("PGPORT"), os.Getenv("PGUSER"), os.Getenv("PGDATABASE"))
		c := Must(pgx.Connect(t.Ctx, dsn))
		defer c.Close(t.Ctx)
		t.Equal(pgxScalar[int32](t, c, "select 1"), int32(1))
	}},
	{"connect_config", func(t *T) {
		config := Must(pgx.ParseConfig(DSN()))
		config.RuntimeParams["search_path"] = t.Schema
		config.RuntimeParams["TimeZone"] = "Europe/Berlin"
		c := Must(pgx.ConnectConfig(t.Ctx, config))
		defer c.Close(t.Ctx)
		t.Equal(pgxScalar[string](t, c, "select current_schema()::text"), t.Schema)
		t.Equal(c.PgConn().ParameterStatus("TimeZone"), "Europe/Berlin")
		t.Equal(c.PgConn().ParameterStatus("client_encoding"), "UTF8")
		t.Equal(c.PgConn().ParameterStatus("standard_conforming_strings"), "on")
	}},
	{"connect_wrong_database", func(t *T) {
		config := Must(pgx.ParseConfig(DSN()))
		config.Database = "absent_database"
		_, err := pgx.ConnectConfig(t.Ctx, config)
		t.Code(err, "3D000")
	}},
	{"connect_read_write", func(t *T) {
		c := Must(pgx.Connect(t.Ctx, DSN("target_session_attrs", "read-write")))
		defer c.Close(t.Ctx)
		t.Ok(c.Ping(t.Ctx))
	}},
	{"integers", onPgx(func(t *T, c *pgx.Conn) {
		sent[int16](t, c, "int2", 0, math.MinInt16, math.MaxInt16)
		sent[int32](t, c, "int4", 0, math.MinInt32, math.MaxInt32)
		sent[int64](t, c, "int8", 0, math.MinInt64, math.MaxInt64)
	})},
	{"floats", onPgx(func(t *T, c *pgx.Conn) {
		sent[float32](t, c, "float4", 0, 1.25, float32(math.Inf(1)))
		sent(t, c, "float8", 0, 1e300, math.Inf(-1), math.SmallestNonzeroFloat64)
		t.True(math.IsNaN(pgxScalar[float64](t, c, "select $1::float8", math.NaN())), "not a NaN")
	})},
	{"texts", onPgx(func(t *T, c *pgx.Conn) {
		for _, kind := range []string{"text", "varchar", "varchar(40)"} {
			sent(t, c, kind, "", "häß ☃ 🐘", `it's \ "q"`, "two\nlines")
		}
		sent(t, c, "char(3)", "abc")
		sent(t, c, "text", strings.Repeat("x", 3_000_000))
	})},
	{"bytes", onPgx(func(t *T, c *pgx.Conn) {
		sent(t, c, "bytea", []byte{}, []byte{0, 1, 255, 92}, make([]byte, 100_000))
	})},
	{"booleans", onPgx(func(t *T, c *pgx.Conn) { sent(t, c, "bool", true, false) })},
	{"uuids", onPgx(func(t *T, c *pgx.Conn) {
		sent(t, c, "uuid", [16]byte{15: 1}, [16]byte{255, 1, 2, 3})
		t.Equal(pgxScalar[string](t, c, "select $1::uuid::text", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"),
			"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
	})},
	{"dates_and_times", onPgx(func(t *T, c *pgx.Conn) {
		moment := time.Date(2024, 2, 29, 12, 30, 15, 123456000, time.UTC)
		sent(t, c, "date", time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC))
		sent(t, c, "timestamp", moment)
		back := pgxScalar[time.Time](t, c, "select $1::timestamptz", moment)
		t.True(back.Equal(moment), "got %v", back)
		sent(t, c, "time", pgtype.Time{Microseconds: 3_723_000_004, Valid: true})
	})},
	{"infinite_dates_needs_infinite_dates", onPgx(func(t *T, c *pgx.Conn) {
		sent(t, c, "timestamptz", pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true})
		sent(t, c, "date", pgtype.Date{InfinityModifier: pgtype.NegativeInfinity, Valid: true})
	})},
	{"intervals", onPgx(func(t *T, c *pgx.Conn) {
		sent(t, c, "interval", pgtype.Interval{Months: 14, Days: -3, Microseconds: 5_000_001, Valid: true})
		sent(t, c, "interval", 90*time.Minute)
	})},
	{"numerics", onPgx(func(t *T, c *pgx.Conn) {
		for _, text := range []string{"0", "-12345678901234567890.123", "0.000001"} {
			var number pgtype.Numeric
			t.Ok(number.Scan(text))
			t.Equal(pgxScalar[string](t, c, "select ($1::numeric)::text", number), text)
		}
		number := pgxScalar[pgtype.Numeric](t, c, "select 1.50::numeric(10, 2)")
		t.Equal(new(big.Rat).SetFrac(number.Int, big.NewInt(100)).FloatString(2), "1.50")
		t.Equal(pgxScalar[float64](t, c, "select 2.5::numeric"), 2.5)
	})},
	{"long_numerics_needs_long_numerics", onPgx(func(t *T, c *pgx.Conn) {
		const text = "100000000000000000000000000000"
		var number pgtype.Numeric
		t.Ok(number.Scan(text))
		t.Equal(pgxScalar[string](t, c, "select ($1::numeric)::text", number), text)
	})},
	{"numeric_nan_needs_numeric_nan", onPgx(func(t *T, c *pgx.Conn) {
		sent(t, c, "numeric", pgtype.Numeric{NaN: true, Valid: true})
	})},
	{"names_and_oids", onPgx(func(t *T, c *pgx.Conn) {
		sent(t, c, "name", "a name")
		sent[uint32](t, c, "oid", 0, 4294967295)
		t.Equal(pgxScalar[string](t, c, "select $1::regclass::text", "pg_class"), "pg_class")
		t.Equal(pgxScalar[uint32](t, c, "select 'int4'::regtype::oid"), uint32(pgtype.Int4OID))
		t.Equal(pgxScalar[rune](t, c, "select relkind from pg_class where relname = 'pg_class'"), 'r')
	})},
	{"json_maps_to_structs", onPgx(func(t *T, c *pgx.Conn) {
		sent(t, c, "json", address{"Main", []string{"a", "b"}}, address{})
		sent(t, c, "jsonb", address{"Side ☃", nil}, address{"", []string{""}})
		sent(t, c, "jsonb", map[string]any{"a": 1.0, "b": []any{nil, true}})
		t.Equal(pgxScalar[string](t, c, "select $1::jsonb->>'street'", address{Street: "x"}), "x")
	})},
	{"nulls", onPgx(func(t *T, c *pgx.Conn) {
		t.Equal(pgxScalar[*string](t, c, "select $1::text", nil), (*string)(nil))
		t.Equal(pgxScalar[*int32](t, c, "select $1::int4", pointer(int32(3))), pointer(int32(3)))
		t.Equal(pgxScalar[pgtype.Text](t, c, "select null::text"), pgtype.Text{})
		t.Equal(pgxScalar[pgtype.Int8](t, c, "select 7::int8"), pgtype.Int8{Int64: 7, Valid: true})
		var plain int32
		err := c.QueryRow(t.Ctx, "select null::int4").Scan(&plain)
		t.True(err != nil && strings.Contains(err.Error(), "cannot scan NULL"), "got %v", err)
	})},
	{"arrays", onPgx(func(t *T, c *pgx.Conn) {
		sent(t, c, "int4[]", []int32{}, []int32{1, -2, 3})
		sent(t, c, "text[]", []string{"", "a,b", `"q"`, "NULL", `\`})
		sent(t, c, "text[]", []*string{nil, pointer("x")})
		sent(t, c, "bool[]", []bool{true, false})
		sent(t, c, "float8[]", []float64{1.5, -2})
		sent(t, c, "uuid[]", [][16]byte{{1}, {2}})
		sent(t, c, "timestamp[]", []time.Time{time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)})
	})},
	{"arrays_of_arrays_needs_several_dimensions", onPgx(func(t *T, c *pgx.Conn) {
		sent(t, c, "int4[]", [][]int32{{1, 2}, {3, 4}})
		t.Equal(pgxScalar[[][]string](t, c, "select '{{a,b},{c,d}}'::text[]"),
			[][]string{{"a", "b"}, {"c", "d"}})
	})},
	{"any_of_array", onPgx(func(t *T, c *pgx.Conn) {
		rows := Must(c.Query(t.Ctx,
			"select n from generate_series(1, 9) n where n = any($1) order by n", []int32{7, 2, 20}))
		t.Equal(Must(pgx.CollectRows(rows, pgx.RowTo[int32])), []int32{2, 7})
	})},
	{"enums_are_loaded", onPgx(func(t *T, c *pgx.Conn) {
		Must(c.Exec(t.Ctx, "create type color as enum ('red', 'green')"))
		for _, name := range []string{"color", "_color"} {
			c.TypeMap().RegisterType(Must(c.LoadType(t.Ctx, t.Schema+"."+name)))
		}
		sent(t, c, "color", "red", "green")
		sent(t, c, "color[]", []string{"green", "red"})
		_, err := c.Exec(t.Ctx, "select $1::color", "blue")
		t.Code(err, "22P02")
	})},
	{"composites_are_loaded_needs_composite_types", onPgx(func(t *T, c *pgx.Conn) {
		type point struct {
			X int32
			Y string
		}
		Must(c.Exec(t.Ctx, "create type spot as (x int4, y text)"))
		types := Must(c.LoadTypes(t.Ctx, []string{"spot", "_spot"}))
		c.TypeMap().RegisterTypes(types)
		sent(t, c, "spot", point{1, "a,b"}, point{-7, ""})
		sent(t, c, "spot[]", []point{{1, "x"}, {2, "y"}})
	})},
	{"domains_are_loaded", onPgx(func(t *T, c *pgx.Conn) {
		Must(c.Exec(t.Ctx, "create domain positive as int4 check (value > 0)"))
		c.TypeMap().RegisterType(Must(c.LoadType(t.Ctx, "positive")))
		sent[int32](t, c, "positive", 5)
		_, err := c.Exec(t.Ctx, "select $1::positive", int32(-1))
		t.Code(err, "23514")
	})},
	{"execution_modes", onPgx(func(t *T, c *pgx.Conn) {
		Must(c.Exec(t.Ctx, "create table m (id int4, name text, at timestamptz, doc jsonb, ids int4[])"))
		moment := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
		for i, mode := range []pgx.QueryExecMode{
			pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe,
			pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
		} {
			tag := Must(c.Exec(t.Ctx, "insert into m values ($1, $2, $3, $4, $5)",
				mode, i, "it's", moment, `{"a": 1}`, []int32{1, 2}))
			t.Equal(tag.String(), "INSERT 0 1")
			var name string
			var at time.Time
			var ids []int32
			t.Ok(c.QueryRow(t.Ctx, "select name, at, ids from m where id = $1", mode, i).
				Scan(&name, &at, &ids))
			t.Equal(name, "it's")
			t.True(at.Equal(moment), "%v: got %v", mode, at)
			t.Equal(ids, []int32{1, 2})
		}
	})},
	{"field_descriptions", onPgx(func(t *T, c *pgx.Conn) {
		Must(c.Exec(t.Ctx, "create table f (a int8, b varchar(9), c numeric(8, 3))"))
		described := Must(c.Prepare(t.Ctx, "", "select a, b, c from f where a = $1 and b = $2"))
		t.Equal(described.ParamOIDs, []uint32{pgtype.Int8OID, pgtype.TextOID})
		fields := described.Fields
		t.Equal(fields[0].DataTypeOID, uint32(pgtype.Int8OID))
		t.Equal(fields[1].TypeModifier, int32(13))
		t.Equal(fields[2].TypeModifier, int32(8<<16|3+4))
		t.True(fields[0].TableOID > 0, "no table")
		t.Equal(fields[2].TableAttributeNumber, uint16(3))
	})},
}
