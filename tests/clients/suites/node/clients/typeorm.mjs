// TypeORM: synchronize, generated migrations, entities and their relations.

import "reflect-metadata";
import typeorm from "typeorm";
import { assert, fails, run, server, version } from "../harness.mjs";

const { DataSource, EntitySchema, IsNull, In, Like, MoreThan, Table, TableColumn, TableForeignKey, TableIndex, TableUnique } = typeorm;

const User = new EntitySchema({
  name: "User", tableName: "users",
  columns: {
    id: { type: Number, primary: true, generated: true },
    name: { type: "varchar", length: 50 },
    email: { type: String, unique: true, nullable: true },
    role: { type: "enum", enum: ["admin", "user"], default: "user" },
    profile: { type: "jsonb", nullable: true },
    tags: { type: "text", array: true, default: () => "'{}'" },
    balance: { type: "decimal", precision: 10, scale: 2, default: 0 },
    active: { type: Boolean, default: true },
    key: { type: "uuid", generated: "uuid" },
    createdAt: { type: "timestamptz", createDate: true },
    updatedAt: { type: "timestamptz", updateDate: true },
    deletedAt: { type: "timestamptz", deleteDate: true, nullable: true },
    version: { type: Number, version: true },
  },
  indices: [{ name: "users_name", columns: ["name"] }],
  relations: { posts: { type: "one-to-many", target: "Post", inverseSide: "author", cascade: true } },
});

const Post = new EntitySchema({
  name: "Post", tableName: "posts",
  columns: {
    id: { type: "bigint", primary: true, generated: "increment" },
    title: { type: "varchar" },
    views: { type: "int", default: 0 },
    at: { type: "timestamp", default: () => "now()" },
  },
  checks: [{ name: "views_positive", expression: '"views" >= 0' }],
  uniques: [{ name: "posts_title", columns: ["title"] }],
  relations: {
    author: { type: "many-to-one", target: "User", inverseSide: "posts", onDelete: "CASCADE", nullable: true },
    words: { type: "many-to-many", target: "Tag", joinTable: { name: "post_words" }, cascade: true },
  },
});

const Tag = new EntitySchema({ name: "Tag", tableName: "tags", columns: { word: { type: "varchar", primary: true } } });

/** A case that gets a data source whose tables are in its schema. */
const simple = (body, options = {}) => async (schema) => {
  const source = new DataSource({
    type: "postgres", host: server.host, port: server.port, username: server.user, password: server.password,
    database: server.database, schema, entities: [User, Post, Tag], uuidExtension: "pgcrypto",
    extra: { options: `-c search_path=${schema}` }, ...options,
  });
  await source.initialize();
  try {
    await body(source, schema);
  } finally {
    await source.destroy();
  }
};

const synchronized = (body) => simple(body, { synchronize: true });

const pendingChanges = async (source) => (await source.driver.createSchemaBuilder().log()).upQueries.map((q) => q.query);

/** A migration that is a class, as the CLI writes it. */
function migration(name, up, down) {
  const Made = { [name]: class { constructor() { this.name = name; } up(runner) { return up(runner); } down(runner) { return down(runner); } } };
  return Made[name];
}

const schemaOnly = (entity) => simple(async (source) => {
  await source.synchronize();
  assert.deepEqual(await pendingChanges(source), []);
}, { entities: [entity] });

const column = (definition) => schemaOnly(new EntitySchema({
  name: "T", tableName: "t", columns: { id: { type: Number, primary: true, generated: true }, c: definition },
}));

const cases = {
  initialize: simple(async (source) => assert.deepEqual(await source.query("select 1 as one"), [{ one: 1 }])),
  synchronize: synchronized(async (source) => assert.equal(await source.getRepository("User").count(), 0)),
  synchronize_twice: synchronized(async (source) => { await source.synchronize(); }),
  synchronized_again_changes_nothing: synchronized(async (source) => assert.deepEqual(await pendingChanges(source), [])),
  no_change_integers: column({ type: "int", default: 5 }),
  no_change_negative_default: column({ type: "int", default: -5 }),
  no_change_text_default: column({ type: "varchar", length: 20, default: "some text" }),
  no_change_numeric: column({ type: "numeric", precision: 12, scale: 4, default: 0 }),
  no_change_boolean: column({ type: "boolean", default: false }),
  no_change_enum: column({ type: "enum", enum: ["a", "b c"], default: "a" }),
  no_change_enum_array: column({ type: "enum", enum: ["a", "b"], array: true, default: ["a"] }),
  no_change_json: column({ type: "jsonb", default: { a: 1 } }),
  no_change_array: column({ type: "int", array: true, default: [1, 2] }),
  no_change_uuid: column({ type: "uuid", generated: "uuid" }),
  no_change_timestamps: column({ type: "timestamptz", precision: 3, default: () => "CURRENT_TIMESTAMP(3)" }),
  no_change_now: column({ type: "timestamp", default: () => "now()" }),
  no_change_comment: column({ type: "text", comment: "a column" }),
  no_change_generated: column({ type: "int", asExpression: "id * 2", generatedType: "STORED" }),
  no_change_other_types: schemaOnly(new EntitySchema({
    name: "T", tableName: "t",
    columns: {
      id: { type: "uuid", primary: true, generated: "uuid" }, s: { type: "smallint" }, r: { type: "real" }, d: { type: "double precision" },
      c: { type: "char", length: 3 }, b: { type: "bytea" }, da: { type: "date" }, t: { type: "time" }, i: { type: "interval" }, j: { type: "json" },
    },
  })),
  no_change_identity: schemaOnly(new EntitySchema({
    name: "T", tableName: "t", columns: { id: { type: "bigint", primary: true, generated: "identity", generatedIdentity: "ALWAYS" } },
  })),
  no_change_partial_index: schemaOnly(new EntitySchema({
    name: "T", tableName: "t", columns: { id: { type: Number, primary: true }, a: { type: Number, nullable: true } },
    indices: [{ name: "t_a", columns: ["a"], unique: true, where: "a > 5" }],
  })),
  no_change_checks: schemaOnly(new EntitySchema({
    name: "T", tableName: "t", columns: { id: { type: Number, primary: true }, a: { type: "varchar" } },
    checks: [{ name: "t_a", expression: `"a" IN ('x', 'y') AND id BETWEEN 1 AND 10` }],
  })),
  no_change_composite_keys: schemaOnly(new EntitySchema({
    name: "T", tableName: "t", columns: { a: { type: Number, primary: true }, b: { type: String, primary: true } }, uniques: [{ columns: ["b", "a"] }],
  })),
  no_change_view: simple(async (source) => {
    await source.synchronize();
    assert.deepEqual(await pendingChanges(source), []);
    assert.deepEqual(await source.getRepository("V").find(), []);
  }, { entities: [User, Post, Tag, new EntitySchema({
    name: "V", tableName: "v", type: "view", expression: "select id, name from users", columns: { id: { type: Number, viewColumn: true, primary: true }, name: { type: String, viewColumn: true } },
  })] }),
  schema_change_is_found: simple(async (source, schema) => {
    await source.query(`create table "${schema}"."t" ("id" int not null, "a" varchar, constraint "PK_t" primary key ("id"))`);
    const planned = await pendingChanges(source);
    assert.equal(planned.filter((q) => /ADD "b"/.test(q)).length, 1);
    await source.synchronize();
    assert.deepEqual(await pendingChanges(source), []);
  }, { entities: [new EntitySchema({ name: "T", tableName: "t", columns: { id: { type: Number, primary: true }, a: { type: "text", nullable: true }, b: { type: Number, nullable: true } } })] }),
  drop_database_schema: synchronized(async (source) => {
    await source.dropDatabase();
    await source.synchronize();
    assert.equal(await source.getRepository("Post").count(), 0);
  }),
  migrations_up_again_down: simple(async (source) => {
    assert.deepEqual((await source.runMigrations()).map((m) => m.name), ["First1700000000001", "Second1700000000002"]);
    assert.deepEqual(await source.runMigrations(), []);
    assert.equal(await source.showMigrations(), false);
    assert.deepEqual(await source.query("select a, b from t"), [{ a: 1, b: "x" }]);
    await source.undoLastMigration();
    await source.undoLastMigration();
    assert.deepEqual(await source.query("select to_regclass('t') as t"), [{ t: null }]);
  }, {
    migrations: [
      migration("First1700000000001", (r) => r.query("create table t (a int); insert into t values (1)"), (r) => r.query("drop table t")),
      migration("Second1700000000002", (r) => r.query("alter table t add b text default 'x'"), (r) => r.query("alter table t drop b")),
    ],
  }),
  generated_migration_runs: simple(async (source) => {
    const { upQueries, downQueries } = await source.driver.createSchemaBuilder().log();
    for (const { query, parameters } of upQueries) await source.query(query, parameters);
    assert.deepEqual(await pendingChanges(source), []);
    for (const { query, parameters } of downQueries.reverse()) await source.query(query, parameters);
    assert.equal((await pendingChanges(source)).length, upQueries.length);
  }),
  query_runner_tables: simple(async (source) => {
    const runner = source.createQueryRunner();
    try {
      await runner.createTable(new Table({ name: "p", columns: [{ name: "id", type: "int", isPrimary: true, isGenerated: true, generationStrategy: "increment" }] }));
      await runner.createTable(new Table({ name: "c", columns: [{ name: "p_id", type: "int", isNullable: true }, { name: "a", type: "varchar", length: "10" }] }));
      await runner.addColumn("c", new TableColumn({ name: "b", type: "int", default: 3 }));
      await runner.createForeignKey("c", new TableForeignKey({ columnNames: ["p_id"], referencedTableName: "p", referencedColumnNames: ["id"], onDelete: "CASCADE" }));
      await runner.createIndex("c", new TableIndex({ name: "c_a", columnNames: ["a"] }));
      await runner.createUniqueConstraint("c", new TableUnique({ name: "c_b", columnNames: ["b"] }));
      const table = await runner.getTable("c");
      assert.deepEqual(table.columns.map((c) => [c.name, c.type]), [["p_id", "integer"], ["a", "character varying"], ["b", "integer"]]);
      assert.deepEqual([table.foreignKeys.length, table.indices.length, table.uniques.length], [1, 1, 1]);
      await runner.renameColumn("c", "a", "z");
      await runner.changeColumn("c", "z", new TableColumn({ name: "z", type: "varchar", length: "20", isNullable: false }));
      await runner.dropColumn("c", "b");
      await runner.renameTable("c", "d");
      await runner.dropTable("d");
    } finally {
      await runner.release();
    }
  }),
  save_and_find: synchronized(async (source) => {
    const users = source.getRepository("User");
    const ada = await users.save({ name: "ada", email: "a@b", profile: { x: [1] }, tags: ["p", "q"], balance: "10.50" });
    assert.deepEqual([ada.id, ada.role, ada.version, ada.createdAt instanceof Date], [1, "user", 1, true]);
    const found = await users.findOneByOrFail({ id: 1 });
    assert.deepEqual([found.profile, found.tags, found.balance, found.active], [{ x: [1] }, ["p", "q"], "10.50", true]);
    assert.match(found.key, /^[0-9a-f-]{36}$/);
  }),
  update_raises_version: synchronized(async (source) => {
    const users = source.getRepository("User");
    const ada = await users.save({ name: "ada" });
    ada.name = "bob";
    await users.save(ada);
    assert.deepEqual([ada.version, (await users.findOneBy({ name: "bob" })).version], [2, 2]);
  }),
  optimistic_lock: synchronized(async (source) => {
    const users = source.getRepository("User");
    await users.save({ name: "ada" });
    await assert.rejects(users.findOne({ where: { id: 1 }, lock: { mode: "optimistic", version: 7 } }), /optimistic lock/);
  }),
  pessimistic_lock: synchronized(async (source) => {
    await source.getRepository("User").save({ name: "ada" });
    await source.transaction("READ COMMITTED", async (manager) => {
      const found = await manager.findOne("User", { where: { id: 1 }, lock: { mode: "pessimistic_write" } });
      assert.equal(found.name, "ada");
    });
  }),
  soft_delete: synchronized(async (source) => {
    const users = source.getRepository("User");
    await users.save([{ name: "a" }, { name: "b" }]);
    await users.softDelete({ name: "a" });
    assert.deepEqual([await users.count(), await users.count({ withDeleted: true })], [1, 2]);
    await users.restore({ name: "a" });
    assert.equal(await users.countBy({ deletedAt: IsNull() }), 2);
  }),
  relations: synchronized(async (source) => {
    const users = source.getRepository("User");
    await users.save({ name: "ada", posts: [{ title: "one", words: [{ word: "red" }, { word: "big" }] }, { title: "two" }] });
    const found = await users.find({ relations: { posts: { words: true } }, order: { posts: { id: "ASC", words: { word: "ASC" } } } });
    assert.deepEqual(found.map((u) => u.posts.map((p) => [p.title, p.words.map((t) => t.word)])), [[["one", ["big", "red"]], ["two", []]]]);
    await users.delete({ name: "ada" });
    assert.equal(await source.getRepository("Post").count(), 0);
  }),
  relations_with_paging: synchronized(async (source) => {
    const users = source.getRepository("User");
    for (const name of ["a", "b", "c"]) await users.save({ name, posts: [{ title: `${name}1` }, { title: `${name}2` }] });
    const [rows, count] = await users.findAndCount({ relations: { posts: true }, order: { name: "DESC" }, skip: 1, take: 1 });
    assert.deepEqual([count, rows.map((u) => [u.name, u.posts.length])], [3, [["b", 2]]]);
  }),
  query_builder: synchronized(async (source) => {
    const users = source.getRepository("User");
    await users.save([{ name: "a", balance: 1, posts: [{ title: "x", views: 3 }] }, { name: "b", balance: 5 }, { name: "c", balance: 7 }]);
    const rows = await users.createQueryBuilder("u").leftJoin("u.posts", "p").select("u.name", "name").addSelect("COALESCE(SUM(p.views), 0)::int", "views")
      .where("u.balance < :most", { most: 6 }).groupBy("u.name").having("COUNT(*) > 0").orderBy("u.name").getRawMany();
    assert.deepEqual(rows, [{ name: "a", views: 3 }, { name: "b", views: 0 }]);
    assert.equal((await users.find({ where: [{ name: Like("a%") }, { balance: MoreThan(6) }] })).length, 2);
    assert.equal(await users.countBy({ name: In(["a", "z"]) }), 1);
    assert.equal(await users.sum("balance"), 13);
  }),
  insert_update_delete_builders: synchronized(async (source) => {
    const made = await source.createQueryBuilder().insert().into("Post").values([{ title: "a" }, { title: "b" }]).returning("id").execute();
    assert.deepEqual(made.raw.map((r) => r.id), ["1", "2"]);
    const changed = await source.createQueryBuilder().update("Post").set({ views: () => "views + 2" }).where("title = :t", { t: "a" }).returning("*").execute();
    assert.deepEqual([changed.affected, changed.raw[0].views], [1, 2]);
    assert.equal((await source.createQueryBuilder().delete().from("Post").where("id > 0").execute()).affected, 2);
  }),
  upsert: synchronized(async (source) => {
    const posts = source.getRepository("Post");
    await posts.upsert([{ title: "a", views: 1 }], ["title"]);
    await posts.upsert([{ title: "a", views: 2 }, { title: "b", views: 3 }], { conflictPaths: ["title"], skipUpdateIfNoValuesChanged: true });
    assert.deepEqual((await posts.find({ order: { title: "ASC" } })).map((p) => [p.title, p.views]), [["a", 2], ["b", 3]]);
  }),
  transactions: synchronized(async (source) => {
    await assert.rejects(source.transaction(async (manager) => { await manager.save("Tag", { word: "x" }); throw new Error("no"); }), /no/);
    await source.transaction("SERIALIZABLE", async (manager) => {
      await manager.save("Tag", { word: "y" });
      await manager.transaction(async (inner) => { await inner.save("Tag", { word: "z" }); throw new Error("x"); }).catch(() => {});
    });
    assert.deepEqual(await source.getRepository("Tag").find(), [{ word: "y" }]);
  }),
  errors: synchronized(async (source) => {
    const posts = source.getRepository("Post");
    await posts.save({ title: "a" });
    const error = await fails(posts.insert({ title: "a" }), "23505");
    assert.equal(error.driverError.constraint, "posts_title");
    await fails(posts.insert({ title: "b", views: -1 }), "23514");
  }),
  stream: synchronized(async (source) => {
    await source.getRepository("Tag").save([{ word: "a" }, { word: "b" }]);
    const rows = [];
    for await (const row of await source.getRepository("Tag").createQueryBuilder("t").orderBy("t.word").stream()) rows.push(row.t_word);
    assert.deepEqual(rows, ["a", "b"]);
  }),
};

await run("typeorm", version("typeorm"), cases);
