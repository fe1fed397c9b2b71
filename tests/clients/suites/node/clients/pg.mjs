// node-postgres with pg-cursor, pg-query-stream and pg-copy-streams.

import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import pg from "pg";
import { from as copyFrom, to as copyTo } from "pg-copy-streams";
import Cursor from "pg-cursor";
import QueryStream from "pg-query-stream";
import { assert, fails, run, server, url, version } from "../harness.mjs";

/** A connected client whose search_path is the case's schema. */
async function connected(schema, body, options = {}) {
  const client = new pg.Client({ ...server, options: `-c search_path=${schema}`, ...options });
  await client.connect();
  try {
    return await body(client);
  } finally {
    await client.end();
  }
}

const simple = (body, options) => (schema) => connected(schema, body, options);

/** One value, sent as a parameter of a type and read back. */
const roundTrip = (type, values, options) =>
  simple(async (client) => {
    for (const [sent, wanted] of values) {
      const { rows } = await client.query({ text: `select $1::${type} as v`, values: [sent], ...options });
      assert.deepEqual(rows[0].v, wanted);
    }
  });

const many = (count) => Array.from({ length: count }, (_, i) => i + 1);

const cases = {
  connect_by_string: async () => {
    const client = new pg.Client(url);
    await client.connect();
    const { rows } = await client.query("select current_user as u, 1 + 1 as two");
    assert.deepEqual(rows, [{ u: server.user, two: 2 }]);
    await client.end();
  },
  connect_by_string_with_options: async () => {
    const client = new pg.Client(`${url}?application_name=suite&statement_timeout=5000&sslmode=disable`);
    await client.connect();
    const { rows } = await client.query(
      "select current_setting('application_name') as a, current_setting('statement_timeout') as t",
    );
    assert.deepEqual(rows, [{ a: "suite", t: "5s" }]);
    await client.end();
  },
  connect_wrong_database: async () => {
    const client = new pg.Client({ ...server, database: "absent_database" });
    await fails(client.connect(), "3D000");
  },
  connect_settings: simple(
    async (client) => {
      const { rows } = await client.query(
        "select current_setting('lock_timeout') l, current_setting('idle_in_transaction_session_timeout') i",
      );
      assert.deepEqual(rows, [{ l: "3s", i: "1min" }]);
    },
    { lock_timeout: 3000, idle_in_transaction_session_timeout: 60000 },
  ),
  integers: roundTrip("int", [[1, 1], [-2147483648, -2147483648], [null, null]]),
  bigints_are_text: roundTrip("bigint", [["9007199254740993", "9007199254740993"]]),
  numerics_are_text: roundTrip("numeric", [["12345678901234567890.123", "12345678901234567890.123"]]),
  floats: roundTrip("float8", [[1.5, 1.5], [1e300, 1e300], ["NaN", NaN], ["-Infinity", -Infinity]]),
  booleans: roundTrip("boolean", [[true, true], [false, false]]),
  texts: roundTrip("text", [["häß ☃ 🐘", "häß ☃ 🐘"], ["", ""], ["it's \\ \"q\"", "it's \\ \"q\""]]),
  bytes: roundTrip("bytea", [[Buffer.from([0, 1, 255, 92]), Buffer.from([0, 1, 255, 92])]]),
  timestamptz: roundTrip("timestamptz", [
    [new Date(Date.UTC(2024, 1, 29, 12, 30, 15, 123)), new Date(Date.UTC(2024, 1, 29, 12, 30, 15, 123))],
  ]),
  timestamps_and_dates: simple(async (client) => {
    const { rows } = await client.query(
      "select timestamp '2024-02-29 12:30:15.5' as t, date '2024-02-29' as d, time '10:11:12' as h",
    );
    assert.deepEqual(rows[0].t, new Date(2024, 1, 29, 12, 30, 15, 500));
    assert.deepEqual(rows[0].d, new Date(2024, 1, 29));
    assert.equal(rows[0].h, "10:11:12");
  }),
  intervals: simple(async (client) => {
    const { rows } = await client.query("select interval '1 year 2 mons 3 days 04:05:06.7' as i");
    assert.deepEqual({ ...rows[0].i }, { years: 1, months: 2, days: 3, hours: 4, minutes: 5, seconds: 6, milliseconds: 700 });
  }),
  json: roundTrip("jsonb", [[{ a: [1, "x", null] }, { a: [1, "x", null] }], ['"s"', "s"]]),
  uuids: roundTrip("uuid", [["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]]),
  arrays_of_int: roundTrip("int[]", [[[1, null, 3], [1, null, 3]], [[], []]]),
  arrays_of_arrays_needs_several_dimensions: roundTrip("int[]", [[[[1, 2], [3, 4]], [[1, 2], [3, 4]]]]),
  arrays_of_text: roundTrip("text[]", [[["a,b", 'q"\\', null, ""], ["a,b", 'q"\\', null, ""]]]),
  arrays_of_numeric_and_dates: simple(async (client) => {
    const { rows } = await client.query(
      "select array[1.5, 2.25]::numeric[] as n, array['2024-01-01T00:00:00Z']::timestamptz[] as t, array[1.5]::float8[] as f, array['{\"a\":1}']::jsonb[] as j, array[true] as b",
    );
    assert.deepEqual(rows[0], {
      n: [1.5, 2.25], t: [new Date("2024-01-01T00:00:00Z")], f: [1.5], j: [{ a: 1 }], b: [true],
    });
  }),
  binary_results: simple(async (client) => {
    const { rows } = await client.query({
      text: "select $1::int as i, $2::text as t, $3::bool as b, 7::int8 as l",
      values: [5, "x", true],
      binary: true,
    });
    assert.deepEqual(rows[0], { i: 5, t: "x", b: true, l: "7" });
  }),
  any_of_array: simple(async (client) => {
    const { rows } = await client.query(
      "select v from (values (1), (2), (3)) as t(v) where v = any($1) order by v", [[1, 3]],
    );
    assert.deepEqual(rows.map((row) => row.v), [1, 3]);
  }),
  row_mode_and_fields: simple(async (client) => {
    await client.query("create table t (id serial primary key, name varchar(20), n numeric(10,2))");
    const { rows, fields, rowCount, command } = await client.query({
      text: "select id, name, n from t", rowMode: "array",
    });
    assert.deepEqual([rows, rowCount, command], [[], 0, "SELECT"]);
    assert.deepEqual(fields.map((f) => [f.name, f.dataTypeID, f.dataTypeModifier, f.columnID]), [
      ["id", 23, -1, 1], ["name", 1043, 24, 2], ["n", 1700, 655366, 3],
    ]);
    const { rows: found } = await client.query("select 't'::regclass::oid::int as oid");
    assert.equal(fields[0].tableID, found[0].oid);
  }),
  several_statements: simple(async (client) => {
    const results = await client.query(
      "create table t (a int); insert into t values (1), (2); select * from t order by a; drop table t",
    );
    assert.deepEqual(results.map((r) => [r.command, r.rowCount]), [
      ["CREATE", null], ["INSERT", 2], ["SELECT", 2], ["DROP", null],
    ]);
  }),
  prepared_by_name: simple(async (client) => {
    const query = { name: "sum", text: "select $1::int + $2::int as s" };
    for (const n of [1, 2, 3]) {
      const { rows } = await client.query({ ...query, values: [n, 10] });
      assert.equal(rows[0].s, n + 10);
    }
    const { rows } = await client.query("select name, statement from pg_prepared_statements");
    assert.deepEqual(rows, [{ name: "sum", statement: query.text }]);
  }),
  prepared_after_change_of_table: simple(async (client) => {
    await client.query("create table t (a int)");
    await client.query("insert into t values (1)");
    const query = { name: "all", text: "select * from t" };
    assert.deepEqual((await client.query(query)).rows, [{ a: 1 }]);
    await client.query("alter table t add b int default 2");
    await fails(client.query(query), "0A000");
  }),
  insert_returning: simple(async (client) => {
    await client.query("create table t (id int generated always as identity, v text not null, at timestamptz default now())");
    const { rows } = await client.query("insert into t (v) values ($1), ($2) returning id, v, at", ["a", "b"]);
    assert.deepEqual(rows.map((r) => [r.id, r.v, r.at instanceof Date]), [[1, "a", true], [2, "b", true]]);
  }),
  upsert: simple(async (client) => {
    await client.query("create table t (k text primary key, n int)");
    const text = "insert into t values ($1, $2) on conflict (k) do update set n = t.n + excluded.n returning n, (xmax = 0) as inserted";
    assert.deepEqual((await client.query(text, ["a", 1])).rows, [{ n: 1, inserted: true }]);
    assert.deepEqual((await client.query(text, ["a", 5])).rows, [{ n: 6, inserted: false }]);
  }),
  upsert_counts: simple(async (client) => {
    await client.query("create table t (k text primary key, n int)");
    const text = "insert into t values ($1, $2) on conflict (k) do nothing";
    assert.equal((await client.query(text, ["a", 1])).rowCount, 1);
    assert.equal((await client.query(text, ["a", 1])).rowCount, 0);
  }),
  unnest_bulk_insert: simple(async (client) => {
    await client.query("create table t (id int, name text)");
    await client.query("insert into t select * from unnest($1::int[], $2::text[])", [[1, 2, 3], ["a", "b", null]]);
    const { rows } = await client.query("select * from t order by id");
    assert.deepEqual(rows, [{ id: 1, name: "a" }, { id: 2, name: "b" }, { id: 3, name: null }]);
  }),
  json_to_recordset_insert: simple(async (client) => {
    await client.query("create table t (id int, name text, at date)");
    await client.query(
      "insert into t select * from json_to_recordset($1) as x(id int, name text, at date)",
      [JSON.stringify([{ id: 1, name: "a", at: "2024-01-01" }, { id: 2 }])],
    );
    const { rows } = await client.query("select id, name, at::text from t order by id");
    assert.deepEqual(rows, [{ id: 1, name: "a", at: "2024-01-01" }, { id: 2, name: null, at: null }]);
  }),
  transaction_rollback: simple(async (client) => {
    await client.query("create table t (a int)");
    await client.query("begin");
    await client.query("insert into t values (1)");
    await fails(client.query("select 1/0"), "22012");
    await fails(client.query("select 1"), "25P02");
    await client.query("rollback");
    assert.deepEqual((await client.query("select count(*)::int as n from t")).rows, [{ n: 0 }]);
  }),
  savepoints: simple(async (client) => {
    await client.query("create table t (a int primary key)");
    await client.query("begin");
    await client.query("insert into t values (1)");
    await client.query("savepoint s");
    await fails(client.query("insert into t values (1)"), "23505");
    await client.query("rollback to savepoint s");
    await client.query("insert into t values (2)");
    await client.query("commit");
    assert.deepEqual((await client.query("select a from t order by a")).rows, [{ a: 1 }, { a: 2 }]);
  }),
  error_fields: simple(async (client) => {
    await client.query("create table t (a int constraint positive check (a > 0), b text not null, c int unique)");
    const check = await fails(client.query("insert into t values ($1, 'x')", [-1]), "23514");
    assert.deepEqual([check.constraint, check.table, check.severity], ["positive", "t", "ERROR"]);
    const missing = await fails(client.query("insert into t (a) values (1)"), "23502");
    assert.deepEqual([missing.column, missing.table], ["b", "t"]);
    await client.query("insert into t values (1, 'x', 7)");
    const twice = await fails(client.query("insert into t values (1, 'x', 7)"), "23505");
    assert.deepEqual([twice.constraint, twice.detail], ["t_c_key", "Key (c)=(7) already exists."]);
    const position = await fails(client.query("select nope from t"), "42703");
    assert.equal(position.position, "8");
    assert.ok(position instanceof pg.DatabaseError);
  }),
  notices: simple(async (client) => {
    const seen = [];
    client.on("notice", (notice) => seen.push([notice.severity, notice.code, notice.message]));
    await client.query("drop table if exists absent");
    assert.deepEqual(seen, [["NOTICE", "00000", 'table "absent" does not exist, skipping']]);
  }),
  notifications: simple(async (client) => {
    const got = new Promise((resolve) => client.on("notification", resolve));
    await client.query("listen suite_channel");
    await client.query("select pg_notify('suite_channel', $1)", ["hello"]);
    const message = await got;
    assert.deepEqual([message.channel, message.payload, message.processId], ["suite_channel", "hello", client.processID]);
    await client.query("unlisten *");
  }),
  statement_timeout: simple(async (client) => {
    await client.query("set statement_timeout = 100");
    await fails(client.query("select pg_sleep(10)"), "57014");
    await client.query("reset statement_timeout");
  }),
  cancel_backend: simple(async (client) => {
    const { rows } = await client.query("select pg_backend_pid() as pid");
    assert.equal(rows[0].pid, client.processID);
    const sleeping = fails(client.query("select pg_sleep(20)"), "57014");
    const other = new pg.Client(server);
    await other.connect();
    await new Promise((resolve) => setTimeout(resolve, 200));
    await other.query("select pg_cancel_backend($1)", [rows[0].pid]);
    await sleeping;
    await other.end();
  }),
  terminate_backend: async () => {
    const client = new pg.Client(server);
    const errors = [];
    client.on("error", (error) => errors.push(error));
    await client.connect();
    const other = new pg.Client(server);
    await other.connect();
    const ended = new Promise((resolve) => client.on("end", resolve));
    const { rows } = await other.query("select pg_terminate_backend($1) as done", [client.processID]);
    await ended;
    assert.equal(rows[0].done, true);
    assert.equal(errors[0]?.code, "57P01");
    await other.end();
  },
  cursor: simple(async (client) => {
    const cursor = client.query(new Cursor("select g as n from generate_series(1, $1) as g order by g", [250]));
    const seen = [];
    for (;;) {
      const rows = await cursor.read(100);
      if (rows.length === 0) break;
      seen.push(rows.length);
    }
    await cursor.close();
    assert.deepEqual(seen, [100, 100, 50]);
  }),
  cursor_closed_early: simple(async (client) => {
    const cursor = client.query(new Cursor("select * from generate_series(1, 100000)"));
    assert.equal((await cursor.read(10)).length, 10);
    await cursor.close();
    assert.deepEqual((await client.query("select 1 as one")).rows, [{ one: 1 }]);
  }),
  query_stream: simple(async (client) => {
    await client.query("create table t as select g as id, 'row ' || g as name from generate_series(1, 2000) as g");
    let sum = 0;
    for await (const row of client.query(new QueryStream("select id, name from t where id > $1", [10], { batchSize: 64 }))) {
      assert.equal(row.name, `row ${row.id}`);
      sum += row.id;
    }
    assert.equal(sum, 2001000 - 55);
  }),
  query_stream_fails: simple(async (client) => {
    const stream = client.query(new QueryStream("select 10 / (5 - g) from generate_series(1, 10) as g", [], { batchSize: 2 }));
    await fails((async () => { for await (const _ of stream); })(), "22012");
    assert.deepEqual((await client.query("select 1 as one")).rows, [{ one: 1 }]);
  }),
  copy_from_text: simple(async (client) => {
    await client.query("create table t (id int, name text)");
    const rows = many(1000).map((i) => `${i}\t${i % 10 ? `name ${i}` : "\\N"}\n`);
    const stream = client.query(copyFrom("copy t from stdin"));
    await pipeline(Readable.from(rows), stream);
    assert.equal(stream.rowCount, 1000);
    assert.deepEqual((await client.query("select count(*)::int n, count(name)::int m from t")).rows, [{ n: 1000, m: 900 }]);
  }),
  copy_from_csv: simple(async (client) => {
    await client.query("create table t (id int, name text)");
    const stream = client.query(copyFrom("copy t (name, id) from stdin with (format csv, header true, delimiter ';', null 'NULL')"));
    await pipeline(Readable.from(['name;id\n"a;b";1\n', 'NULL;2\n"say ""x""";3\n']), stream);
    const { rows } = await client.query("select * from t order by id");
    assert.deepEqual(rows, [{ id: 1, name: "a;b" }, { id: 2, name: null }, { id: 3, name: 'say "x"' }]);
  }),
  copy_from_fails: simple(async (client) => {
    await client.query("create table t (id int)");
    const error = await fails(pipeline(Readable.from(["1\nx\n"]), client.query(copyFrom("copy t from stdin"))), "22P02");
    assert.match(error.where, /COPY t, line 2, column id: "x"/);
    assert.deepEqual((await client.query("select count(*)::int as n from t")).rows, [{ n: 0 }]);
  }),
  copy_from_abandoned: simple(async (client) => {
    await client.query("create table t (id int)");
    const stream = client.query(copyFrom("copy t from stdin"));
    const ended = new Promise((resolve) => stream.on("error", resolve));
    stream.write("1\n");
    stream.destroy(new Error("stop"));
    await ended;
    assert.deepEqual((await client.query("select count(*)::int as n from t")).rows, [{ n: 0 }]);
  }),
  copy_to_csv: simple(async (client) => {
    await client.query("create table t as select g as id, 'n,' || g as name from generate_series(1, 500) g");
    let text = "";
    for await (const chunk of client.query(copyTo("copy (select * from t order by id) to stdout with csv header"))) text += chunk;
    const lines = text.split("\n");
    assert.deepEqual([lines.length, lines[0], lines[500]], [502, "id,name", '500,"n,500"']);
  }),
  pool: async () => {
    const pool = new pg.Pool({ ...server, max: 3 });
    const results = await Promise.all(many(12).map((i) => pool.query("select $1::int * 2 as d", [i])));
    assert.deepEqual(results.map((r) => r.rows[0].d), many(12).map((i) => 2 * i));
    assert.ok(pool.totalCount <= 3);
    const client = await pool.connect();
    await client.query("begin");
    client.release();
    await pool.end();
  },
  pool_transfer: async (schema) => {
    const pool = new pg.Pool({ ...server, max: 5, options: `-c search_path=${schema}` });
    await pool.query("create table account (id int primary key, balance int not null)");
    await pool.query("insert into account values (1, 100), (2, 100)");
    const transfer = async () => {
      const client = await pool.connect();
      try {
        for (;;) {
          try {
            await client.query("begin");
            await client.query("update account set balance = balance - 1 where id = 1");
            await client.query("update account set balance = balance + 1 where id = 2");
            await client.query("commit");
            return;
          } catch (error) {
            await client.query("rollback");
            if (!["40001", "40P01"].includes(error.code)) throw error;
          }
        }
      } finally {
        client.release();
      }
    };
    await Promise.all(many(10).map(transfer));
    const { rows } = await pool.query("select balance from account order by id");
    assert.deepEqual(rows, [{ balance: 90 }, { balance: 110 }]);
    await pool.end();
  },
  serializable_write_skew: async (schema) => {
    const options = { ...server, options: `-c search_path=${schema}` };
    const [a, b] = [new pg.Client(options), new pg.Client(options)];
    await Promise.all([a.connect(), b.connect()]);
    await a.query("create table duty (who text primary key, here boolean)");
    await a.query("insert into duty values ('a', true), ('b', true)");
    const codes = [];
    for (const client of [a, b]) await client.query("begin isolation level serializable");
    for (const client of [a, b]) await client.query("select count(*) from duty where here");
    await a.query("update duty set here = false where who = 'a'");
    for (const step of [() => b.query("update duty set here = false where who = 'b'"), () => a.query("commit"), () => b.query("commit")]) {
      await step().catch((error) => codes.push(error.code));
    }
    assert.deepEqual(codes, ["40001"]);
    await Promise.all([a.end(), b.end()]);
  },
  skip_locked_queue: async (schema) => {
    const options = { ...server, options: `-c search_path=${schema}` };
    const [a, b] = [new pg.Client(options), new pg.Client(options)];
    await Promise.all([a.connect(), b.connect()]);
    await a.query("create table job (id int primary key, done boolean not null default false)");
    await a.query("insert into job select g from generate_series(1, 3) as g");
    const next = "select id from job where not done order by id limit 1 for update skip locked";
    for (const client of [a, b]) await client.query("begin isolation level read committed");
    assert.deepEqual((await a.query(next)).rows, [{ id: 1 }]);
    assert.deepEqual((await b.query(next)).rows, [{ id: 2 }]);
    await Promise.all([a.query("commit"), b.query("commit")]);
    await Promise.all([a.end(), b.end()]);
  },
  advisory_locks: async () => {
    const [a, b] = [new pg.Client(server), new pg.Client(server)];
    await Promise.all([a.connect(), b.connect()]);
    const attempt = "select pg_try_advisory_lock(4711) as got";
    assert.equal((await a.query(attempt)).rows[0].got, true);
    assert.equal((await b.query(attempt)).rows[0].got, false);
    assert.equal((await a.query("select pg_advisory_unlock(4711) as done")).rows[0].done, true);
    assert.equal((await b.query(attempt)).rows[0].got, true);
    await Promise.all([a.end(), b.end()]);
  },
  escapes: simple(async (client) => {
    const literal = client.escapeLiteral("it's \\ here");
    const name = client.escapeIdentifier('we"ird');
    const { rows } = await client.query(`select ${literal} as ${name}`);
    assert.deepEqual(rows, [{ 'we"ird': "it's \\ here" }]);
  }),
  type_parsers: simple(
    async (client) => {
      const { rows } = await client.query("select 12::int8 as l, 1.5::numeric as n");
      assert.deepEqual(rows, [{ l: 12n, n: "<1.5>" }]);
    },
    { types: { getTypeParser: (oid) => (oid === 20 ? BigInt : oid === 1700 ? (v) => `<${v}>` : (v) => v) } },
  ),
  enums_and_domains: simple(async (client) => {
    await client.query("create type mood as enum ('sad', 'ok', 'happy')");
    await client.query("create domain positive as int check (value > 0)");
    await client.query("create table t (m mood, ms mood[], p positive)");
    await client.query("insert into t values ($1, $2, $3)", ["ok", ["sad", "happy"], 3]);
    const { rows } = await client.query("select m, ms::text[] as ms, p from t where m > 'sad'");
    assert.deepEqual(rows, [{ m: "ok", ms: ["sad", "happy"], p: 3 }]);
    await fails(client.query("insert into t (m) values ($1)", ["angry"]), "22P02");
    await fails(client.query("insert into t (p) values ($1)", [-3]), "23514");
  }),
  composite_result: simple(async (client) => {
    const { rows } = await client.query("select row(1, 'a b', null) as r, (select t from (values (1, 'x')) as t(a, b)) as t");
    assert.deepEqual(rows, [{ r: '(1,"a b",)', t: "(1,x)" }]);
  }),
  unknown_parameter_types: simple(async (client) => {
    await fails(client.query("select $1 + $2", [1, 2]), "42725");
    const { rows } = await client.query("select $1 as t, coalesce($2, 5) as c, $3 || 'x' as d", ["a", 7, "b"]);
    assert.deepEqual(rows, [{ t: "a", c: 7, d: "bx" }]);
  }),
};

await run("node-postgres", version("pg"), cases);
