// Kysely: migrator, introspection, queries.

import { Kysely, Migrator, PostgresDialect, sql } from "kysely";
import { jsonArrayFrom, jsonBuildObject, jsonObjectFrom } from "kysely/helpers/postgres";
import pg from "pg";
import Cursor from "pg-cursor";
import { assert, fails, run, server, version } from "../harness.mjs";

/** A case that gets a Kysely whose search_path is its schema. */
const simple = (body) => async (schema) => {
  const pool = new pg.Pool({ ...server, max: 4, options: `-c search_path=${schema}` });
  const db = new Kysely({ dialect: new PostgresDialect({ pool, cursor: Cursor }) });
  try {
    await body(db, schema);
  } finally {
    await db.destroy();
  }
};

const migrations = {
  "1_person": {
    up: async (db) => {
      await db.schema.createType("species").asEnum(["cat", "dog"]).execute();
      await db.schema.createTable("person")
        .addColumn("id", "serial", (c) => c.primaryKey())
        .addColumn("name", "varchar(50)", (c) => c.notNull())
        .addColumn("made", "timestamptz", (c) => c.defaultTo(sql`now()`).notNull())
        .execute();
      await db.schema.createTable("pet")
        .addColumn("id", "integer", (c) => c.generatedAlwaysAsIdentity().primaryKey())
        .addColumn("owner_id", "integer", (c) => c.references("person.id").onDelete("cascade").notNull())
        .addColumn("name", "text", (c) => c.unique())
        .addColumn("species", sql`species`)
        .addColumn("data", "jsonb")
        .execute();
      await db.schema.createIndex("pet_owner").on("pet").column("owner_id").execute();
    },
    down: async (db) => {
      await db.schema.dropTable("pet").execute();
      await db.schema.dropTable("person").execute();
      await db.schema.dropType("species").execute();
    },
  },
  "2_age": {
    up: (db) => db.schema.alterTable("person").addColumn("age", "int2", (c) => c.check(sql`age > 0`)).execute(),
    down: (db) => db.schema.alterTable("person").dropColumn("age").execute(),
  },
};

const provider = { getMigrations: () => Promise.resolve(migrations) };

const succeeded = ({ error, results }) => {
  if (error) throw error;
  return results.map((r) => [r.migrationName, r.status]);
};

const migrated = (body) => simple(async (db, schema) => {
  for (const { up } of Object.values(migrations)) await up(db);
  await body(db, schema);
});

const household = async (db) => {
  const { id } = await db.insertInto("person").values({ name: "ada", age: 36 }).returning("id").executeTakeFirstOrThrow();
  await db.insertInto("pet").values([{ owner_id: id, name: "kit", species: "cat", data: { a: [1] } }, { owner_id: id, name: "rex", species: "dog" }]).execute();
  return id;
};

const cases = {
  migrate_up_again_down: simple(async (db) => {
    const migrator = new Migrator({ db, provider });
    assert.deepEqual(succeeded(await migrator.migrateToLatest()), [["1_person", "Success"], ["2_age", "Success"]]);
    assert.deepEqual(succeeded(await migrator.migrateToLatest()), []);
    assert.ok((await migrator.getMigrations()).every((m) => m.executedAt instanceof Date));
    assert.deepEqual(succeeded(await migrator.migrateDown()), [["2_age", "Success"]]);
    succeeded(await migrator.migrateDown());
    assert.equal((await db.introspection.getTables()).filter((t) => t.name === "person").length, 0);
  }),
  migrate_in_schema: simple(async (db, schema) => {
    const migrator = new Migrator({ db, provider, migrationTableSchema: schema });
    succeeded(await migrator.migrateTo("1_person"));
    assert.deepEqual((await migrator.getMigrations()).map((m) => m.executedAt !== undefined), [true, false]);
  }),
  migrate_at_once_from_two: simple(async (db) => {
    const results = await Promise.all([1, 2].map(() => new Migrator({ db, provider }).migrateToLatest()));
    assert.equal(results.flatMap(succeeded).length, 2);
  }),
  migration_fails_is_rolled_back: simple(async (db, schema) => {
    const failing = { a: { up: async (d) => { await d.schema.createTable("t").addColumn("a", "int4").execute(); await sql`select 1/0`.execute(d); } } };
    const { error } = await new Migrator({ db, provider: { getMigrations: () => Promise.resolve(failing) } }).migrateToLatest();
    assert.equal(error.code, "22012");
    assert.deepEqual((await db.introspection.getTables()).filter((t) => t.schema === schema && t.name === "t"), []);
  }),
  introspect_schemas: simple(async (db, schema) => {
    const names = (await db.introspection.getSchemas()).map((s) => s.name);
    assert.ok(names.includes(schema) && names.includes("public"));
  }),
  introspect_tables: migrated(async (db, schema) => {
    const tables = (await db.introspection.getTables()).filter((t) => t.schema === schema);
    assert.deepEqual(tables.map((t) => [t.name, t.isView, t.columns.map((c) => [c.name, c.dataType, c.isNullable, c.isAutoIncrementing, c.hasDefaultValue])]), [
      ["person", false, [["id", "int4", false, true, true], ["name", "varchar", false, false, false], ["made", "timestamptz", false, false, true], ["age", "int2", true, false, false]]],
      ["pet", false, [["id", "int4", false, true, false], ["owner_id", "int4", false, false, false], ["name", "text", true, false, false], ["species", "species", true, false, false], ["data", "jsonb", true, false, false]]],
    ]);
  }),
  introspect_only_own_tables: simple(async (db) => {
    const tables = await db.introspection.getTables();
    assert.deepEqual(tables.filter((t) => /^pg_|information_schema|meridian/.test(t.schema)), []);
  }),
  introspect_views_and_comments: migrated(async (db, schema) => {
    await db.schema.createView("v").as(db.selectFrom("person").select("name")).execute();
    await sql`comment on column person.name is 'who'`.execute(db);
    const tables = (await db.introspection.getTables()).filter((t) => t.schema === schema);
    assert.equal(tables.find((t) => t.name === "v").isView, true);
    assert.equal(tables.find((t) => t.name === "person").columns[1].comment, "who");
  }),
  insert_select_update_delete: migrated(async (db) => {
    const id = await household(db);
    assert.deepEqual(await db.selectFrom("pet").select(["name", "species", "data"]).where("owner_id", "=", id).orderBy("name").execute(), [
      { name: "kit", species: "cat", data: { a: [1] } }, { name: "rex", species: "dog", data: null },
    ]);
    const { numUpdatedRows } = await db.updateTable("person").set((eb) => ({ age: eb("age", "+", 1) })).where("id", "=", id).executeTakeFirst();
    assert.equal(numUpdatedRows, 1n);
    assert.deepEqual(await db.deleteFrom("person").returning(["age"]).execute(), [{ age: 37 }]);
    assert.deepEqual(await db.selectFrom("pet").select((eb) => eb.fn.countAll().as("n")).execute(), [{ n: "0" }]);
  }),
  json_helpers: migrated(async (db) => {
    await household(db);
    const rows = await db.selectFrom("person").select((eb) => [
      "name",
      jsonArrayFrom(eb.selectFrom("pet").select(["pet.name", "pet.species"]).whereRef("pet.owner_id", "=", "person.id").orderBy("pet.name")).as("pets"),
      jsonObjectFrom(eb.selectFrom("pet").select("pet.name").whereRef("pet.owner_id", "=", "person.id").where("species", "=", "dog")).as("dog"),
      jsonBuildObject({ n: eb.ref("person.name"), a: eb.ref("person.age") }).as("o"),
    ]).execute();
    assert.deepEqual(rows, [{ name: "ada", pets: [{ name: "kit", species: "cat" }, { name: "rex", species: "dog" }], dog: { name: "rex" }, o: { n: "ada", a: 36 } }]);
  }),
  joins_and_aggregates: migrated(async (db) => {
    await household(db);
    await db.insertInto("person").values({ name: "bob" }).execute();
    const rows = await db.selectFrom("person as p").leftJoin("pet", "pet.owner_id", "p.id").groupBy(["p.id", "p.name"])
      .select((eb) => ["p.name", eb.fn.count("pet.id").as("n"), eb.fn.agg("string_agg", [eb.ref("pet.name"), sql.lit(",")]).orderBy("pet.name").as("names")])
      .orderBy("p.name").execute();
    assert.deepEqual(rows, [{ name: "ada", n: "2", names: "kit,rex" }, { name: "bob", n: "0", names: null }]);
  }),
  upsert: migrated(async (db) => {
    const id = await household(db);
    const put = (species) => db.insertInto("pet").values({ owner_id: id, name: "kit", species })
      .onConflict((oc) => oc.column("name").doUpdateSet((eb) => ({ species: eb.ref("excluded.species") })).where("pet.species", "!=", "dog")).execute();
    await put("dog");
    const [{ numInsertedOrUpdatedRows }] = await put("cat");
    assert.equal(numInsertedOrUpdatedRows, 0n);
  }),
  merge: migrated(async (db) => {
    await household(db);
    const result = await db.mergeInto("person").using(sql`(values ('ada', 40), ('eve', 20))`.as(sql`v(name, age)`), "v.name", "person.name")
      .whenMatched().thenUpdateSet((eb) => ({ age: eb.ref("v.age") })).whenNotMatched().thenInsertValues((eb) => ({ name: eb.ref("v.name"), age: eb.ref("v.age") }))
      .executeTakeFirstOrThrow();
    assert.equal(result.numChangedRows, 2n);
    assert.deepEqual(await db.selectFrom("person").select(["name", "age"]).orderBy("name").execute(), [{ name: "ada", age: 40 }, { name: "eve", age: 20 }]);
  }),
  ctes_and_windows: migrated(async (db) => {
    await household(db);
    const rows = await db.with("named", (q) => q.updateTable("pet").set({ data: JSON.stringify({ seen: true }) }).returning(["name", "species"]))
      .selectFrom("named").select((eb) => ["name", eb.fn.agg("row_number").over((ob) => ob.orderBy("name", "desc")).as("r")]).orderBy("name").execute();
    assert.deepEqual(rows, [{ name: "kit", r: "2" }, { name: "rex", r: "1" }]);
  }),
  recursive: simple(async (db) => {
    const rows = await db.withRecursive("n(v)", (q) => q.selectNoFrom(sql`1`.as("v")).unionAll(q.selectFrom("n").select(sql`v + 1`.as("v")).where("v", "<", 4))).selectFrom("n").selectAll().execute();
    assert.deepEqual(rows.map((r) => r.v), [1, 2, 3, 4]);
  }),
  distinct_on_and_limit: migrated(async (db) => {
    await household(db);
    const rows = await db.selectFrom("pet").distinctOn("owner_id").select("name").orderBy("owner_id").orderBy("name", (o) => o.desc().nullsLast()).limit(5).offset(0).execute();
    assert.deepEqual(rows, [{ name: "rex" }]);
  }),
  transactions: migrated(async (db) => {
    await assert.rejects(db.transaction().execute(async (trx) => { await household(trx); throw new Error("no"); }), /no/);
    await db.transaction().setIsolationLevel("serializable").execute(household);
    assert.equal((await db.selectFrom("person").selectAll().execute()).length, 1);
    const trx = await db.startTransaction().execute();
    const after = await trx.savepoint("s").execute();
    await after.deleteFrom("person").execute();
    await after.rollbackToSavepoint("s").execute();
    await trx.commit().execute();
    assert.equal((await db.selectFrom("person").selectAll().execute()).length, 1);
  }),
  streams: simple(async (db) => {
    const seen = [];
    for await (const row of db.selectFrom(sql`generate_series(1, 250)`.as("v")).selectAll().stream(100)) seen.push(row.v);
    assert.equal(seen.length, 250);
  }),
  errors: migrated(async (db) => {
    await household(db);
    await fails(db.insertInto("pet").values({ owner_id: 99 }).execute(), "23503");
    assert.equal((await fails(db.insertInto("person").values({ name: "x", age: -1 }).execute(), "23514")).constraint, "person_age_check");
  }),
  alter_table: migrated(async (db, schema) => {
    await db.schema.alterTable("person").renameColumn("name", "called").execute();
    await db.schema.alterTable("person").alterColumn("called", (c) => c.setDataType("text")).alterColumn("age", (c) => c.setDefault(1)).execute();
    await db.schema.alterTable("person").addUniqueConstraint("person_called", ["called"], (u) => u.nullsNotDistinct()).execute();
    await db.schema.alterTable("pet").dropConstraint("pet_owner_id_fkey").execute();
    await db.schema.alterTable("pet").addForeignKeyConstraint("pet_owner", ["owner_id"], "person", ["id"]).onUpdate("cascade").execute();
    await db.schema.alterTable("pet").renameTo("animal").execute();
    assert.ok((await db.introspection.getTables()).some((t) => t.schema === schema && t.name === "animal"));
  }),
  partial_and_expression_indexes: migrated(async (db) => {
    await db.schema.createIndex("person_lower").on("person").unique().expression(sql`lower(name)`).execute();
    await db.schema.createIndex("pet_cats").on("pet").columns(["owner_id"]).where("species", "=", sql.lit("cat")).unique().execute();
    const id = await household(db);
    await fails(db.insertInto("person").values({ name: "ADA" }).execute(), "23505");
    await fails(db.insertInto("pet").values({ owner_id: id, species: "cat" }).execute(), "23505");
  }),
};

await run("kysely", version("kysely"), cases);
