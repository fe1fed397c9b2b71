// knex: schema builder, migrations, queries, transactions.

import knexLibrary from "knex";
import { assert, fails, run, server, sql, version } from "../harness.mjs";

const open = (schema) => knexLibrary({ client: "pg", connection: { ...server }, searchPath: [schema], pool: { min: 0, max: 4 } });

/** A case that gets a knex whose search_path is its schema. */
const simple = (body) => async (schema) => {
  const knex = open(schema);
  try {
    await body(knex, schema);
  } finally {
    await knex.destroy();
  }
};

/** Migrations that are objects, as knex takes them from a migration source. */
class Source {
  constructor(migrations) { this.migrations = migrations; }
  getMigrations() { return Promise.resolve(Object.keys(this.migrations)); }
  getMigrationName(name) { return name; }
  getMigration(name) { return Promise.resolve(this.migrations[name]); }
}

const migrations = {
  "001_users": {
    up: (knex) => knex.schema.createTable("users", (t) => {
      t.increments("id");
      t.string("email", 100).notNullable().unique();
      t.enu("role", ["admin", "user"]).defaultTo("user");
      t.jsonb("profile").defaultTo("{}");
      t.timestamps(true, true);
    }),
    down: (knex) => knex.schema.dropTable("users"),
  },
  "002_posts": {
    up: async (knex) => {
      await knex.schema.createTable("posts", (t) => {
        t.bigIncrements("id");
        t.integer("user_id").unsigned().references("id").inTable("users").onDelete("CASCADE").index();
        t.text("body");
        t.decimal("score", 10, 2).defaultTo(0);
      });
      await knex.schema.alterTable("users", (t) => { t.boolean("active").notNullable().defaultTo(true); });
    },
    down: async (knex) => {
      await knex.schema.alterTable("users", (t) => { t.dropColumn("active"); });
      await knex.schema.dropTable("posts");
    },
  },
};

const cases = {
  raw: simple(async (knex) => {
    const { rows } = await knex.raw("select ?::int + ?::int as s", [1, 2]);
    assert.deepEqual(rows, [{ s: 3 }]);
  }),
  migrate_up_again_down: simple(async (knex) => {
    const options = { migrationSource: new Source(migrations) };
    assert.deepEqual((await knex.migrate.latest(options))[1], ["001_users", "002_posts"]);
    assert.deepEqual((await knex.migrate.latest(options))[1], []);
    assert.equal(await knex.migrate.currentVersion(options), "002");
    await knex("users").insert({ email: "a@b" });
    const [user] = await knex("users").select("role", "active", "profile");
    assert.deepEqual(user, { role: "user", active: true, profile: {} });
    assert.deepEqual((await knex.migrate.rollback(options, true))[1], ["002_posts", "001_users"]);
    assert.equal(await knex.schema.hasTable("users"), false);
  }),
  migrate_up_and_down_one: simple(async (knex) => {
    const options = { migrationSource: new Source(migrations) };
    await knex.migrate.up(options);
    const [done, pending] = await knex.migrate.list(options);
    assert.deepEqual([done.map((m) => m.name), pending], [["001_users"], ["002_posts"]]);
    await knex.migrate.up(options);
    await knex.migrate.down(options);
    assert.equal(await knex.schema.hasTable("posts"), false);
    assert.equal(await knex.schema.hasColumn("users", "active"), false);
  }),
  migrate_in_schema: simple(async (knex, schema) => {
    const options = { migrationSource: new Source(migrations), schemaName: schema, tableName: "history" };
    await knex.migrate.latest(options);
    assert.equal((await knex.withSchema(schema).from("history").select("name")).length, 2);
  }),
  migrate_fails_is_rolled_back: simple(async (knex) => {
    const migrationSource = new Source({
      "001_bad": { up: async (k) => { await k.schema.createTable("t", (t) => t.increments()); await k.raw("select 1/0"); }, down: () => {} },
    });
    await fails(knex.migrate.latest({ migrationSource }), "22012");
    assert.equal(await knex.schema.hasTable("t"), false);
  }),
  all_column_types: simple(async (knex) => {
    await knex.schema.createTable("t", (t) => {
      t.increments(); t.tinyint("ti"); t.smallint("si"); t.bigint("bi"); t.text("te"); t.string("s"); t.float("f"); t.double("d");
      t.decimal("de", 8, 3); t.boolean("b"); t.date("da"); t.datetime("dt"); t.time("tm"); t.timestamp("ts", { useTz: false });
      t.binary("by"); t.json("js"); t.jsonb("jb"); t.uuid("u").defaultTo(knex.fn.uuid()); t.specificType("arr", "text[]");
    });
    const info = await knex("t").columnInfo();
    assert.deepEqual(
      Object.fromEntries(Object.entries(info).map(([name, c]) => [name, c.type])),
      {
        id: "integer", ti: "smallint", si: "smallint", bi: "bigint", te: "text", s: "character varying", f: "real", d: "double precision",
        de: "numeric", b: "boolean", da: "date", dt: "timestamp with time zone", tm: "time without time zone",
        ts: "timestamp without time zone", by: "bytea", js: "json", jb: "jsonb", u: "uuid", arr: "ARRAY",
      },
    );
    assert.deepEqual([info.s.maxLength, info.id.nullable, info.s.nullable], [255, false, true]);
  }),
  alter_table: simple(async (knex) => {
    await knex.schema.createTable("t", (t) => { t.increments(); t.string("a", 10); t.integer("b"); });
    await knex("t").insert({ a: "x", b: 1 });
    await knex.schema.alterTable("t", (t) => {
      t.renameColumn("b", "c");
      t.string("d").defaultTo("z");
      t.unique(["a", "d"], { indexName: "t_a_d" });
      t.index("d");
    });
    await knex.schema.alterTable("t", (t) => { t.string("a", 50).notNullable().defaultTo("n").alter(); });
    await knex.schema.alterTable("t", (t) => { t.setNullable("a"); t.dropNullable("c"); });
    assert.deepEqual(await knex("t").select("a", "c", "d"), [{ a: "x", c: 1, d: "z" }]);
    await knex.schema.alterTable("t", (t) => { t.dropUnique(["a", "d"], "t_a_d"); t.dropIndex("d"); t.dropColumn("d"); });
    assert.deepEqual(Object.keys(await knex("t").columnInfo()).sort(), ["a", "c", "id"]);
  }),
  alter_to_bigint: simple(async (knex) => {
    await knex.schema.createTable("t", (t) => { t.integer("n").notNullable(); });
    await knex("t").insert({ n: 7 });
    await knex.schema.alterTable("t", (t) => { t.bigInteger("n").notNullable().alter(); });
    assert.deepEqual(await knex("t"), [{ n: "7" }]);
  }),
  comments: simple(async (knex, schema) => {
    await knex.schema.createTable("t", (t) => { t.increments().comment("the key"); t.comment("a table"); });
    const [row] = await sql(`select obj_description('${schema}.t'::regclass) as t, col_description('${schema}.t'::regclass, 1) as c`);
    assert.deepEqual(row, { t: "a table", c: "the key" });
  }),
  native_enum: simple(async (knex, schema) => {
    await knex.schema.createTable("t", (t) => {
      t.enu("m", ["sad", "happy"], { useNative: true, enumName: "mood", schemaName: schema });
    });
    await knex("t").insert({ m: "happy" });
    await fails(knex("t").insert({ m: "bored" }), "22P02");
    await knex.schema.dropTable("t");
    await knex.raw("drop type mood");
  }),
  check_constraints: simple(async (knex) => {
    await knex.schema.createTable("t", (t) => { t.integer("n").checkPositive("n_positive"); t.string("s").checkIn(["a", "b"]); t.string("r").checkRegex("[0-9]{3}"); });
    const error = await fails(knex("t").insert({ n: -1 }), "23514");
    assert.equal(error.constraint, "n_positive");
    await fails(knex("t").insert({ s: "c" }), "23514");
    await fails(knex("t").insert({ r: "12" }), "23514");
  }),
  create_table_like: simple(async (knex) => {
    await knex.schema.createTable("t", (t) => { t.increments(); t.string("a"); });
    await knex.schema.createTableLike("u", "t", (t) => { t.integer("more"); });
    assert.deepEqual(Object.keys(await knex("u").columnInfo()).sort(), ["a", "id", "more"]);
  }),
  views: simple(async (knex) => {
    await knex.schema.createTable("t", (t) => { t.integer("a"); });
    await knex("t").insert([{ a: 1 }, { a: 2 }]);
    await knex.schema.createView("v", (view) => { view.columns(["a"]); view.as(knex("t").select("a").where("a", ">", 1)); });
    assert.deepEqual(await knex("v"), [{ a: 2 }]);
    await knex.schema.dropView("v");
  }),
  partial_index: simple(async (knex) => {
    await knex.schema.createTable("t", (t) => { t.integer("a"); t.boolean("b"); });
    await knex.schema.alterTable("t", (t) => { t.unique(["a"], { indexName: "t_a_b", useConstraint: false, predicate: knex.whereRaw("b") }); });
    await knex("t").insert([{ a: 1, b: false }, { a: 1, b: false }, { a: 1, b: true }]);
    await fails(knex("t").insert({ a: 1, b: true }), "23505");
  }),
  foreign_keys: simple(async (knex) => {
    await knex.schema.createTable("p", (t) => { t.increments(); });
    await knex.schema.createTable("c", (t) => { t.integer("p_id"); t.foreign("p_id").references("p.id").onDelete("SET NULL"); });
    const [{ id }] = await knex("p").insert({}).returning("id");
    await knex("c").insert({ p_id: id });
    await fails(knex("c").insert({ p_id: 99 }), "23503");
    await knex("p").del();
    assert.deepEqual(await knex("c"), [{ p_id: null }]);
    await knex.schema.alterTable("c", (t) => { t.dropForeign("p_id"); });
    await knex("c").insert({ p_id: 99 });
  }),
  crud: simple(async (knex) => {
    await knex.schema.createTable("t", (t) => { t.increments(); t.string("a"); t.integer("n"); });
    assert.deepEqual(await knex("t").insert([{ a: "x", n: 1 }, { a: "y" }], ["id", "n"]), [{ id: 1, n: 1 }, { id: 2, n: null }]);
    assert.deepEqual(await knex("t").where({ a: "x" }).increment("n", 5).returning("n"), [{ n: 6 }]);
    assert.equal(await knex("t").where("n", ">", 100).update({ a: "z" }), 0);
    assert.deepEqual(await knex("t").first("a").orderBy("id", "desc"), { a: "y" });
    assert.equal(await knex("t").whereIn("id", [1, 2]).del(), 2);
  }),
  batch_insert: simple(async (knex) => {
    await knex.schema.createTable("t", (t) => { t.increments(); t.integer("n"); });
    const rows = Array.from({ length: 250 }, (_, n) => ({ n }));
    const ids = await knex.batchInsert("t", rows, 100).returning("id");
    assert.equal(ids.length, 250);
    assert.deepEqual(await knex("t").sum("n as s").count("* as c"), [{ s: "31125", c: "250" }]);
  }),
  upsert: simple(async (knex) => {
    await knex.schema.createTable("t", (t) => { t.string("k").primary(); t.integer("n"); });
    await knex("t").insert({ k: "a", n: 1 }).onConflict("k").merge();
    await knex("t").insert({ k: "a", n: 2 }).onConflict("k").merge(["n"]);
    await knex("t").insert({ k: "a", n: 3 }).onConflict("k").ignore();
    assert.deepEqual(await knex("t"), [{ k: "a", n: 2 }]);
  }),
  joins_groups_paging: simple(async (knex) => {
    await knex.schema.createTable("a", (t) => { t.integer("id"); t.string("name"); });
    await knex.schema.createTable("b", (t) => { t.integer("a_id"); t.integer("n"); });
    await knex("a").insert([{ id: 1, name: "x" }, { id: 2, name: "y" }, { id: 3, name: "z" }]);
    await knex("b").insert([{ a_id: 1, n: 10 }, { a_id: 1, n: 5 }, { a_id: 2, n: 7 }]);
    const rows = await knex("a").leftJoin("b", "a.id", "b.a_id").groupBy("a.id", "a.name").select("a.name").sum({ total: "b.n" }).orderBy("a.id").limit(2).offset(1);
    assert.deepEqual(rows, [{ name: "y", total: "7" }, { name: "z", total: null }]);
  }),
  ctes_unions_windows: simple(async (knex) => {
    const rows = await knex
      .withRecursive("n", (q) => q.select("v").from(knex.raw("(values (1)) as one(v)")).unionAll((u) => u.select(knex.raw("v + 1")).from("n").where("v", "<", 4)))
      .select("v").rowNumber("r", (w) => w.orderBy("v", "desc")).from("n").orderBy("v");
    assert.deepEqual(rows, [{ v: 1, r: "4" }, { v: 2, r: "3" }, { v: 3, r: "2" }, { v: 4, r: "1" }]);
  }),
  json_helpers: simple(async (knex) => {
    await knex.schema.createTable("t", (t) => { t.integer("id"); t.jsonb("j"); });
    await knex("t").insert([{ id: 1, j: { a: { b: 5 }, tags: ["x"] } }, { id: 2, j: { a: { b: 6 } } }]);
    assert.deepEqual(await knex("t").whereJsonPath("j", "$.a.b", ">", 5).select("id"), [{ id: 2 }]);
    assert.deepEqual(await knex("t").whereJsonSupersetOf("j", { tags: ["x"] }).select("id"), [{ id: 1 }]);
    assert.deepEqual(await knex("t").jsonExtract("j", "$.a.b", "b").orderBy("id").select(), [{ b: 5 }, { b: 6 }]);
    await knex("t").where("id", 1).update({ j: knex.jsonSet("j", "$.a.b", 9) });
    assert.deepEqual(await knex("t").where("id", 1).first(knex.raw("j #>> '{a,b}' as v")), { v: "9" });
  }),
  transactions: simple(async (knex) => {
    await knex.schema.createTable("t", (t) => { t.integer("a").primary(); });
    await knex.transaction(async (trx) => {
      await trx("t").insert({ a: 1 });
      await trx.transaction(async (inner) => { await inner("t").insert({ a: 2 }); throw new Error("x"); }).catch(() => {});
    });
    await assert.rejects(knex.transaction(async (trx) => { await trx("t").insert({ a: 3 }); throw new Error("no"); }), /no/);
    const trx = await knex.transaction({ isolationLevel: "repeatable read", readOnly: true });
    await fails(trx("t").insert({ a: 4 }), "25006");
    await trx.rollback();
    assert.deepEqual(await knex("t"), [{ a: 1 }]);
  }),
  row_locks: simple(async (knex) => {
    await knex.schema.createTable("t", (t) => { t.integer("a").primary(); });
    await knex("t").insert([{ a: 1 }, { a: 2 }]);
    const [one, two] = [await knex.transaction(), await knex.transaction()];
    assert.deepEqual(await one("t").where("a", 1).forUpdate(), [{ a: 1 }]);
    assert.deepEqual(await two("t").orderBy("a").forUpdate().skipLocked(), [{ a: 2 }]);
    await fails(two("t").where("a", 1).forUpdate().noWait(), "55P03");
    await Promise.all([one.rollback(), two.rollback()]);
  }),
  streams: simple(async (knex) => {
    let sum = 0;
    for await (const row of knex.select("v").from(knex.raw("generate_series(1, 500) as v")).stream()) sum += row.v;
    assert.equal(sum, 125250);
  }),
  truncate: simple(async (knex) => {
    await knex.schema.createTable("t", (t) => { t.increments(); });
    await knex("t").insert({});
    await knex("t").truncate();
    assert.deepEqual(await knex("t").insert({}).returning("id"), [{ id: 1 }]);
  }),
  query_timeout: simple(async (knex) => {
    await assert.rejects(knex.raw("select pg_sleep(10)").timeout(300, { cancel: true }), /timeout/i);
  }),
  rename_and_drop: simple(async (knex) => {
    await knex.schema.createTable("a", (t) => { t.increments(); });
    await knex.schema.renameTable("a", "b");
    assert.deepEqual([await knex.schema.hasTable("a"), await knex.schema.hasTable("b")], [false, true]);
    await knex.schema.dropTableIfExists("b");
    await knex.schema.dropTableIfExists("b");
  }),
  schemas: simple(async (knex, schema) => {
    await knex.schema.dropSchemaIfExists(`${schema}_2`, true);
    await knex.schema.createSchema(`${schema}_2`);
    await knex.schema.withSchema(`${schema}_2`).createTable("t", (t) => { t.increments(); });
    assert.equal(await knex.schema.withSchema(`${schema}_2`).hasTable("t"), true);
    await knex.schema.dropSchema(`${schema}_2`, true);
  }),
};

await run("knex", version("knex"), cases);
