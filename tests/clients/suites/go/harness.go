// Runs the cases of one client, one after the other, and prints a line of JSON for each.
//
// INVARIANTS
//
//	S1  nothing but these lines goes to stdout; whatever libraries log goes to stderr.
//	S2  a case that fails or hangs never stops those after it.
//	S3  each case has a schema of its own, which is made afresh before it begins.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"
	"github.com/uptrace/bun/driver/pgdriver"
)

const limit = 30 * time.Second

// Case is one thing that programs do with a client.
type Case struct {
	Name string
	Body func(t *T)
}

// Client is a library and its cases.
type Client struct {
	Name    string
	Version string
	Cases   []Case
}

// T is what a case has: a context with the time limit, and the name of its own empty schema.
type T struct {
	Ctx    context.Context
	Schema string
}

// Failure is a check that did not hold.
type Failure struct{ Reason string }

func (f Failure) Error() string { return f.Reason }

// Ok ends the case if there is an error.
func (t *T) Ok(err error) {
	if err != nil {
		panic(err)
	}
}

// Fail ends the case.
func (t *T) Fail(format string, arguments ...any) {
	panic(Failure{fmt.Sprintf(format, arguments...)})
}

// True ends the case unless the condition holds.
func (t *T) True(holds bool, format string, arguments ...any) {
	if !holds {
		t.Fail(format, arguments...)
	}
}

// Equal ends the case unless both are deeply equal and of one type.
func (t *T) Equal(got, want any) {
	if !reflect.DeepEqual(got, want) {
		t.Fail("got %v (%T), wanted %v (%T)", got, got, want, want)
	}
}

// Code ends the case unless the error has this SQLSTATE.
func (t *T) Code(err error, code string) {
	if err == nil {
		t.Fail("no error, wanted %s", code)
	}
	if found := sqlstate(err); found != code {
		t.Fail("got %s %v, wanted %s", found, err, code)
	}
}

// Is ends the case unless the error is the one that is wanted.
func (t *T) Is(err, want error) {
	if !errors.Is(err, want) {
		t.Fail("got error %v, wanted %v", err, want)
	}
}

// Must is the value, or the end of the case if there is an error.
func Must[V any](value V, err error) V {
	if err != nil {
		panic(err)
	}
	return value
}

func sqlstate(err error) string {
	var ofPgx *pgconn.PgError
	var ofPq *pq.Error
	var ofBun pgdriver.Error
	switch {
	case errors.As(err, &ofPgx):
		return ofPgx.Code
	case errors.As(err, &ofPq):
		return string(ofPq.Code)
	case errors.As(err, &ofBun):
		return ofBun.Field('C')
	}
	return ""
}

// DSN is the server as a URL, with parameters in pairs.
func DSN(parameters ...string) string {
	place := url.URL{
		Scheme: "postgres",
		Host:   net.JoinHostPort(os.Getenv("PGHOST"), os.Getenv("PGPORT")),
		Path:   "/" + os.Getenv("PGDATABASE"),
		User:   url.User(os.Getenv("PGUSER")),
	}
	if secret := os.Getenv("PGPASSWORD"); secret != "" {
		place.User = url.UserPassword(os.Getenv("PGUSER"), secret)
	}
	query := url.Values{"sslmode": {"disable"}}
	for i := 0; i < len(parameters); i += 2 {
		query.Set(parameters[i], parameters[i+1])
	}
	place.RawQuery = query.Encode()
	return place.String()
}

// DSN is the server, with the case's schema as search path.
func (t *T) DSN(parameters ...string) string {
	return DSN(append([]string{"search_path", t.Schema}, parameters...)...)
}

// versionOf is the pinned version of a module.
func versionOf(module string) string {
	information, _ := debug.ReadBuildInfo()
	for _, dependency := range information.Deps {
		if dependency.Path == module {
			return strings.TrimPrefix(dependency.Version, "v")
		}
	}
	return "unknown"
}

var unnamed = regexp.MustCompile(`[^a-z0-9]+`)

func schemaOf(client, name string) string {
	return fmt.Sprintf("%.60s", unnamed.ReplaceAllString("g_"+client+"_"+name, "_"))
}

type line struct {
	Client  string `json:"client"`
	Version string `json:"version"`
	Case    string `json:"case"`
	Ok      bool   `json:"ok"`
	Reason  string `json:"reason"`
}

// Run runs the cases of a client whose names match (S2, S3).
func (client Client) Run(only *regexp.Regexp, printed *json.Encoder) {
	for _, one := range client.Cases {
		if !only.MatchString(client.Name + "." + one.Name) {
			continue
		}
		err := runCase(schemaOf(client.Name, one.Name), one)
		said := line{client.Name, client.Version, one.Name, err == nil, ""}
		if err != nil {
			said.Reason = reasonOf(err)
		}
		_ = printed.Encode(said)
	}
}

func runCase(schema string, one Case) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := fresh(ctx, schema, true); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		defer func() {
			switch found := recover().(type) {
			case nil:
				ended <- nil
			case error:
				ended <- found
			default:
				ended <- fmt.Errorf("%v", found)
			}
		}()
		one.Body(&T{ctx, schema})
	}()
	var err error
	select {
	case err = <-ended:
	case <-time.After(limit + time.Second):
		return errors.New("time-out of 30 s")
	}
	last, done := context.WithTimeout(context.Background(), limit)
	defer done()
	if failed := fresh(last, schema, false); failed != nil {
		fmt.Fprintf(os.Stderr, "%s: schema is not dropped: %v\n", schema, failed)
	}
	return err
}

func fresh(ctx context.Context, schema string, again bool) error {
	connection, err := pgx.Connect(ctx, DSN())
	if err != nil {
		return err
	}
	defer connection.Close(ctx)
	name := pgx.Identifier{schema}.Sanitize()
	_, err = connection.Exec(ctx, "drop schema if exists "+name+" cascade")
	if err == nil && again {
		_, err = connection.Exec(ctx, "create schema "+name)
	}
	return err
}

func reasonOf(err error) string {
	if _, is := err.(Failure); is {
		return err.Error()
	}
	code := sqlstate(err)
	text := strings.ReplaceAll(err.Error(), "\n", " ")
	if code != "" && !strings.Contains(text, code) {
		text = code + " " + text
	}
	return text
}
