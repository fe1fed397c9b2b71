// postgres.js.

import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import postgres from "postgres";
import { assert, fails, run, server, url, version } from "../harness.mjs";

const OPTIONS = { max: 2, onnotice: () => {} };

/** A case that gets a `sql` whose search_path is its schema. */
const simple = (body, options = {}) => async (schema) => {
  const connection = { search_path: schema, ...options.connection };
  const sql = postgres(url, { ...OPTIONS, ...options, connection });
  try {
    await body(sql, schema);
  } finally {
    await sql.end({ timeout: 1 });
  }
};

const rowsOf = (result) => result.map((row) => ({ ...row }));

const cases = {
  connect_by_string: simple(async (sql) => {
    assert.deepEqual(rowsOf(await sql`select current_user as u`), [{ u: server.user }]);
  }),
  connect_by_options: async () => {
    const sql = postgres({ ...server, username: server.user, ...OPTIONS, connection: { application_name: "suite" } });
    assert.equal((await sql`show application_name`)[0].application_name, "suite");
    await sql.end();
  },
  types_round_trip: simple(async (sql) => {
    const at = new Date("2024-02-29T12:30:15.123Z");
    const [row] = await sql`select ${1}::int as i, ${"9007199254740993"}::bigint as l, ${"1.5"}::numeric as n,
      ${1.5}::float8 as f, ${true}::boolean as b, ${"ä🐘"}::text as t, ${at}::timestamptz as at, ${null}::text as z`;
    assert.deepEqual({ ...row }, { i: 1, l: "9007199254740993", n: "1.5", f: 1.5, b: true, t: "ä🐘", at, z: null });
  }),
  numeric_keeps_its_scale: simple(async (sql) => {
    const [row] = await sql`select ${"1.50"}::numeric as n, ${"1.5"}::numeric(10, 3) as m`;
    assert.deepEqual({ ...row }, { n: "1.50", m: "1.500" });
  }),
  bytes: simple(async (sql) => {
    const [row] = await sql`select ${Buffer.from([0, 255, 1])}::bytea as b`;
    assert.deepEqual([...row.b], [0, 255, 1]);
  }),
  json: simple(async (sql) => {
    await sql`create table t (j jsonb, k json)`;
    await sql`insert into t values (${sql.json({ a: [1, 2] })}, ${{ b: null }})`;
    assert.deepEqual(rowsOf(await sql`select * from t where j @> ${sql.json({ a: [1] })}`), [{ j: { a: [1, 2] }, k: { b: null } }]);
  }),
  arrays: simple(async (sql) => {
    const [row] = await sql`select ${[1, 2, 3]}::int[] as i, ${["a,", 'b"']}::text[] as t`;
    assert.deepEqual({ ...row }, { i: [1, 2, 3], t: ["a,", 'b"'] });
  }),
  array_types_are_fetched: simple(async (sql) => {
    await sql`create type mood as enum ('sad', 'happy')`;
    await sql`create table t (m mood[])`;
    await sql`insert into t values (${["sad", "happy"]}::text[]::mood[])`;
    const again = postgres(url, { ...OPTIONS });
    const [row] = await again.unsafe(`select m from ${(await sql`select current_schema() as s`)[0].s}.t`);
    await again.end();
    assert.deepEqual([...row.m], ["sad", "happy"]);
  }),
  big_integers: simple(
    async (sql) => assert.equal((await sql`select ${9007199254740993n} as v`)[0].v, 9007199254740993n),
    { types: { bigint: postgres.BigInt } },
  ),
  helpers_insert: simple(async (sql) => {
    await sql`create table users (id serial primary key, name text, age int)`;
    const users = [{ name: "ada", age: 36 }, { name: "bob", age: null }];
    const made = await sql`insert into users ${sql(users, "name", "age")} returning *`;
    assert.deepEqual(rowsOf(made), [{ id: 1, ...users[0] }, { id: 2, ...users[1] }]);
    assert.equal(made.count, 2);
    assert.equal(made.command, "INSERT");
  }),
  helpers_update: simple(async (sql) => {
    await sql`create table users (id int primary key, name text, age int)`;
    await sql`insert into users values (1, 'x', 1)`;
    await sql`update users set ${sql({ name: "y", age: 2 })} where id = ${1}`;
    assert.deepEqual(rowsOf(await sql`select ${sql(["name", "age"])} from ${sql("users")}`), [{ name: "y", age: 2 }]);
  }),
  helpers_in: simple(async (sql) => {
    const found = await sql`select v from (values (1), (2), (3)) as t(v) where v in ${sql([1, 3])} order by v`;
    assert.deepEqual(rowsOf(found), [{ v: 1 }, { v: 3 }]);
  }),
  update_from_values: simple(async (sql) => {
    await sql`create table users (id int primary key, name text, age int)`;
    await sql`insert into users values (1, 'a', 1), (2, 'b', 2)`;
    const users = [[1, "John", 34], [2, "Jane", 27]];
    await sql`update users set name = d.name, age = (d.age)::int from (values ${sql(users)}) as d (id, name, age) where users.id = (d.id)::int`;
    assert.deepEqual(rowsOf(await sql`select * from users order by id`), [{ id: 1, name: "John", age: 34 }, { id: 2, name: "Jane", age: 27 }]);
  }),
  fragments: simple(async (sql) => {
    const filter = (n) => sql`and v > ${n}`;
    const found = await sql`select v from generate_series(1, 5) as v where true ${filter(3)} order by v`;
    assert.deepEqual(rowsOf(found), [{ v: 4 }, { v: 5 }]);
  }),
  names_of_columns: simple(
    async (sql) => assert.deepEqual(rowsOf(await sql`select 1 as some_name`), [{ someName: 1 }]),
    { transform: postgres.camel },
  ),
  cursor: simple(async (sql) => {
    const sizes = [];
    for await (const rows of sql`select * from generate_series(1, 25)`.cursor(10)) sizes.push(rows.length);
    assert.deepEqual(sizes, [10, 10, 5]);
  }),
  for_each: simple(async (sql) => {
    let sum = 0;
    await sql`select v from generate_series(1, 100) as v`.forEach((row) => { sum += row.v; });
    assert.equal(sum, 5050);
  }),
  values_and_raw: simple(async (sql) => {
    assert.deepEqual([...(await sql`select 1 as a, 'x' as b`.values())], [[1, "x"]]);
    assert.equal((await sql`select 12`.raw())[0][0].toString(), "12");
  }),
  describe: simple(async (sql) => {
    await sql`create table t (a int, b varchar(10))`;
    const { types, columns } = await sql`select a, b from t where a > ${1} and b = ${"x"}`.describe();
    assert.deepEqual([types, columns.map((c) => [c.name, c.type])], [[23, 25], [["a", 23], ["b", 1043]]]);
  }),
  several_statements: simple(async (sql) => {
    const results = await sql`select 1 as a; select 2 as b`.simple();
    assert.deepEqual(results.map((rows) => ({ ...rows[0] })), [{ a: 1 }, { b: 2 }]);
  }),
  unsafe_with_parameters: simple(async (sql) => {
    assert.equal((await sql.unsafe("select $1::int + $2::int as s", [1, 2]))[0].s, 3);
  }),
  transaction: simple(async (sql) => {
    await sql`create table t (a int)`;
    await sql.begin(async (tx) => { await tx`insert into t values (1)`; });
    await assert.rejects(sql.begin(async (tx) => { await tx`insert into t values (2)`; throw new Error("no"); }), /no/);
    assert.deepEqual(rowsOf(await sql`select * from t`), [{ a: 1 }]);
  }),
  transaction_read_only: simple(async (sql) => {
    await sql`create table t (a int)`;
    await fails(sql.begin("read only", async (tx) => { await tx`insert into t values (1)`; }), "25006");
  }),
  savepoint: simple(async (sql) => {
    await sql`create table t (a int)`;
    await sql.begin(async (tx) => {
      await tx`insert into t values (1)`;
      await tx.savepoint(async (inner) => { await inner`insert into t values (2)`; throw new Error("x"); }).catch(() => {});
      await tx`insert into t values (3)`;
    });
    assert.deepEqual(rowsOf(await sql`select * from t order by a`), [{ a: 1 }, { a: 3 }]);
  }),
  pipelined_in_transaction: simple(async (sql) => {
    await sql`create table t (a int)`;
    await sql.begin((tx) => [tx`insert into t values (1)`, tx`insert into t values (2)`, tx`select count(*) from t`]);
    assert.equal((await sql`select count(*)::int as n from t`)[0].n, 2);
  }),
  pipelined_many: simple(async (sql) => {
    const all = await Promise.all(Array.from({ length: 200 }, (_, i) => sql`select ${i}::int as v`));
    assert.deepEqual(all.map((rows) => rows[0].v), Array.from({ length: 200 }, (_, i) => i));
  }),
  errors: simple(async (sql) => {
    await sql`create table t (a int primary key)`;
    await sql`insert into t values (1)`;
    const error = await fails(sql`insert into t values (1)`, "23505");
    assert.deepEqual([error.constraint_name, error.table_name, error.detail], ["t_pkey", "t", "Key (a)=(1) already exists."]);
    await fails(sql`select * from absent`, "42P01");
  }),
  notifications: simple(async (sql) => {
    let told;
    const got = new Promise((resolve) => { told = resolve; });
    const { unlisten } = await sql.listen("postgresjs", told);
    await sql.notify("postgresjs", "payload");
    assert.equal(await got, "payload");
    await unlisten();
  }),
  cancel: simple(async (sql) => {
    const query = sql`select pg_sleep(20)`;
    setTimeout(() => query.cancel(), 300);
    await fails(query, "57014");
  }),
  copy_from: simple(async (sql) => {
    await sql`create table t (a int, b text)`;
    const writable = await sql`copy t from stdin`.writable();
    await pipeline(Readable.from(["1\tx\n", "2\ty\n"]), writable);
    assert.deepEqual(rowsOf(await sql`select * from t order by a`), [{ a: 1, b: "x" }, { a: 2, b: "y" }]);
  }),
  copy_to: simple(async (sql) => {
    await sql`create table t as select v as a from generate_series(1, 3) as v`;
    let text = "";
    for await (const chunk of await sql`copy (select a from t order by a) to stdout`.readable()) text += chunk;
    assert.equal(text, "1\n2\n3\n");
  }),
  reserved_connection: simple(async (sql) => {
    const one = await sql.reserve();
    const [{ a }] = await one`select pg_backend_pid() as a`;
    assert.equal((await one`select pg_backend_pid() as a`)[0].a, a);
    one.release();
  }),
  no_prepared_statements: simple(
    async (sql) => assert.equal((await sql`select ${"x"} || 'y' as v`)[0].v, "xy"), { prepare: false },
  ),
};

await run("postgres.js", version("postgres"), cases);
