// Slonik (with its driver, node-postgres).

import { createPool, createTypeParserPreset, ForeignKeyIntegrityConstraintViolationError, NotFoundError, NotNullIntegrityConstraintViolationError, sql, UniqueIntegrityConstraintViolationError } from "slonik";
import { z } from "zod";
import { assert, run, url, version } from "../harness.mjs";

/** A case that gets a pool; its tables are named in its schema. */
const simple = (body, options = {}) => async (schema) => {
  const pool = await createPool(url, { maximumPoolSize: 3, typeParsers: createTypeParserPreset(), ...options });
  const table = (name) => sql.identifier([schema, name]);
  try {
    await body(pool, table, schema);
  } finally {
    await pool.end();
  }
};

const filled = (body) => simple(async (pool, table) => {
  await pool.query(sql.unsafe`create table ${table("t")} (id serial primary key, name text not null unique, n int, j jsonb)`);
  await pool.query(sql.unsafe`insert into ${table("t")} (name, n) values ('a', 1), ('b', 2), ('c', null)`);
  await body(pool, table("t"), table);
});

const cases = {
  one_any_many: filled(async (pool, t) => {
    assert.deepEqual(await pool.one(sql.unsafe`select name from ${t} where id = ${1}`), { name: "a" });
    assert.equal(await pool.oneFirst(sql.unsafe`select count(*) from ${t}`), 3n);
    assert.deepEqual(await pool.manyFirst(sql.unsafe`select name from ${t} order by id`), ["a", "b", "c"]);
    assert.equal(await pool.maybeOne(sql.unsafe`select 1 from ${t} where id = ${9}`), null);
    assert.equal(await pool.exists(sql.unsafe`select 1 from ${t} where name = ${"b"}`), true);
    await assert.rejects(pool.one(sql.unsafe`select 1 from ${t} where false`), NotFoundError);
  }),
  typed_query: filled(async (pool, t) => {
    const row = sql.type(z.object({ id: z.number(), name: z.string() }));
    assert.deepEqual(await pool.any(row`select id, name from ${t} where n = any(${sql.array([1, 2], "int4")}) order by id`), [{ id: 1, name: "a" }, { id: 2, name: "b" }]);
  }),
  types: simple(async (pool) => {
    const row = await pool.one(sql.unsafe`select 12::int8 as l, 1.5::numeric as n, ${sql.jsonb({ a: [1] })} as j, ${sql.binary(Buffer.from([1, 255]))}::bytea as b,
      ${sql.date(new Date("2024-02-29T00:00:00Z"))} as d, ${sql.timestamp(new Date("2024-02-29T01:02:03Z"))} as t, ${sql.interval({ days: 3, hours: 1 })} as i, ${sql.uuid("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")} as u`);
    assert.deepEqual([row.l, row.n, row.j, [...row.b], row.d, row.t, row.i, row.u], [12n, 1.5, { a: [1] }, [1, 255], "2024-02-29", Date.UTC(2024, 1, 29, 1, 2, 3), 3 * 86400 + 3600, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]);
  }),
  unnest: filled(async (pool, t) => {
    await pool.query(sql.unsafe`insert into ${t} (name, n) select * from ${sql.unnest([["x", 10], ["y", 20]], ["text", "int4"])}`);
    assert.equal(await pool.oneFirst(sql.unsafe`select sum(n) from ${t}`), 33n);
  }),
  fragments_and_joins: filled(async (pool, t) => {
    const conditions = sql.join([sql.fragment`n > ${0}`, sql.fragment`name <> ${"a"}`], sql.fragment` and `);
    assert.deepEqual(await pool.anyFirst(sql.unsafe`select name from ${t} where ${conditions}`), ["b"]);
  }),
  transaction: filled(async (pool, t) => {
    await assert.rejects(pool.transaction(async (c) => { await c.query(sql.unsafe`delete from ${t}`); throw new Error("no"); }), /no/);
    await pool.transaction(async (c) => {
      await c.query(sql.unsafe`update ${t} set n = 5 where id = 1`);
      await c.transaction(async (inner) => { await inner.query(sql.unsafe`delete from ${t}`); throw new Error("x"); }).catch(() => {});
    });
    assert.deepEqual(await pool.anyFirst(sql.unsafe`select n from ${t} order by id`), [5, 2, null]);
  }),
  connection: filled(async (pool, t) => {
    const pids = await pool.connect(async (c) => [await c.oneFirst(sql.unsafe`select pg_backend_pid()`), await c.oneFirst(sql.unsafe`select pg_backend_pid() from ${t} limit 1`)]);
    assert.equal(pids[0], pids[1]);
  }),
  stream: filled(async (pool, t) => {
    const seen = [];
    await pool.stream(sql.unsafe`select name from ${t} order by id`, (stream) => { stream.on("data", ({ data }) => seen.push(data.name)); });
    assert.deepEqual(seen, ["a", "b", "c"]);
  }),
  errors: filled(async (pool, t, table) => {
    const error = await pool.query(sql.unsafe`insert into ${t} (name) values ('a')`).catch((e) => e);
    assert.ok(error instanceof UniqueIntegrityConstraintViolationError, error);
    assert.deepEqual([error.constraint, error.table], ["t_name_key", "t"]);
    await assert.rejects(pool.query(sql.unsafe`insert into ${t} (name) values (null)`), NotNullIntegrityConstraintViolationError);
    await pool.query(sql.unsafe`create table ${table("c")} (t_id int references ${t})`);
    await assert.rejects(pool.query(sql.unsafe`insert into ${table("c")} values (99)`), ForeignKeyIntegrityConstraintViolationError);
  }),
  statement_timeout: simple(
    async (pool) => { await assert.rejects(pool.query(sql.unsafe`select pg_sleep(5)`), (e) => /statement_timeout/.test(e.message)); },
    { statementTimeout: 300 },
  ),
  many_connections: filled(async (pool, t) => {
    const all = await Promise.all(Array.from({ length: 20 }, (_, i) => pool.oneFirst(sql.unsafe`select ${i}::int + count(*)::int from ${t}`)));
    assert.deepEqual(all, Array.from({ length: 20 }, (_, i) => i + 3));
  }),
};

await run("slonik", version("slonik"), cases);
