// MikroORM: schema generator, migrations, entities.

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { EntitySchema, LockMode, MikroORM, OptimisticLockError, raw, UniqueConstraintViolationException } from "@mikro-orm/postgresql";
import { Migrator } from "@mikro-orm/migrations";
import { assert, run, server, version } from "../harness.mjs";

class User {}
class Post {}
class Tag {}

const userSchema = new EntitySchema({
  class: User, tableName: "users",
  properties: {
    id: { type: "number", primary: true },
    name: { type: "string", length: 50 },
    email: { type: "string", unique: true, nullable: true },
    role: { enum: true, type: "string", items: ["admin", "user"], default: "user" },
    mood: { enum: true, type: "string", items: ["sad", "happy"], nativeEnumName: "mood", nullable: true },
    profile: { type: "json", nullable: true },
    tags: { type: "string[]", nullable: true },
    balance: { type: "decimal", precision: 10, scale: 2, default: 0 },
    active: { type: "boolean", default: true },
    made: { type: "datetime", defaultRaw: "now()" },
    version: { type: "number", version: true },
    posts: { kind: "1:m", entity: () => Post, mappedBy: "author" },
  },
  indexes: [{ properties: ["name"] }],
});
const postSchema = new EntitySchema({
  class: Post, tableName: "posts",
  properties: {
    id: { type: "bigint", primary: true },
    title: { type: "text", index: true },
    views: { type: "integer", default: 0 },
    author: { kind: "m:1", entity: () => User, nullable: true, deleteRule: "cascade" },
    words: { kind: "m:n", entity: () => Tag, owner: true, pivotTable: "post_words" },
  },
  checks: [{ name: "views_positive", expression: "views >= 0" }],
});
const tagSchema = new EntitySchema({ class: Tag, tableName: "tags", properties: { word: { type: "string", primary: true }, at: { type: "date", nullable: true } } });

const open = (schema, more = {}) => MikroORM.init({
  entities: [userSchema, postSchema, tagSchema], dbName: server.database, host: server.host, port: server.port, user: server.user,
  password: server.password, schema, extensions: [Migrator], allowGlobalContext: false, discovery: { warnWhenNoEntities: false },
  driverOptions: { connection: { options: `-c search_path=${schema}` } }, ensureDatabase: false, ...more,
});

const simple = (body, more) => async (schema) => {
  const orm = await open(schema, more);
  try {
    await body(orm, schema);
  } finally {
    await orm.close(true);
  }
};

/** The changes that it plans in its own schema: it would drop what others have left elsewhere, too. */
const pendingChanges = async (orm) => {
  const text = await orm.schema.getUpdateSchemaSQL({ wrap: false });
  return text.split("\n").filter((line) => line.includes(`"${orm.config.get("schema")}"`));
};

const made = (body) => simple(async (orm) => {
  await orm.schema.createSchema();
  await body(orm, () => orm.em.fork());
});

const filled = (body) => made(async (orm, fork) => {
  const em = fork();
  const ada = em.create(User, { name: "ada", email: "a@b", profile: { x: [1] }, tags: ["p", "q"], mood: "sad", balance: "1.50" });
  const big = em.create(Tag, { word: "big" });
  const one = em.create(Post, { title: "one", author: ada });
  one.words.add(big);
  em.create(Post, { title: "two", author: ada, views: 5 });
  em.create(User, { name: "bob" });
  await em.flush();
  await body(orm, fork, ada);
});

const cases = {
  is_connected: simple(async (orm) => assert.equal(await orm.isConnected(), true)),
  create_schema: made(async (_orm, fork) => assert.equal(await fork().count(User), 0)),
  schema_update_is_empty: made(async (orm) => assert.deepEqual(await pendingChanges(orm), [])),
  schema_update_adds_column: simple(async (orm, schema) => {
    await orm.schema.execute(`create table "${schema}"."tags" ("word" varchar(255) not null, constraint "tags_pkey" primary key ("word"))`);
    await orm.schema.updateSchema();
    assert.deepEqual(await pendingChanges(orm), []);
    await orm.em.fork().insert(Tag, { word: "x", at: "2024-01-01" });
  }),
  create_and_find: filled(async (_orm, fork) => {
    const user = await fork().findOneOrFail(User, { email: "a@b" });
    assert.deepEqual([user.id, user.role, user.mood, user.profile, user.tags, Number(user.balance), user.active, user.made instanceof Date], [1, "user", "sad", { x: [1] }, ["p", "q"], 1.5, true, true]);
  }),
  populate: filled(async (_orm, fork) => {
    for (const strategy of ["joined", "select-in"]) {
      const users = await fork().find(User, {}, { populate: ["posts.words"], orderBy: { id: "asc", posts: { id: "asc" } }, strategy });
      assert.deepEqual(users.map((u) => u.posts.getItems().map((p) => [p.title, p.words.getItems().map((t) => t.word)])), [[["one", ["big"]], ["two", []]], []]);
    }
  }),
  paging_and_count: filled(async (_orm, fork) => {
    const [posts, n] = await fork().findAndCount(Post, { author: { name: "ada" } }, { orderBy: { title: "desc" }, limit: 1, offset: 1 });
    assert.deepEqual([posts.map((p) => p.title), n], [["one"], 2]);
  }),
  operators: filled(async (_orm, fork) => {
    const em = fork();
    assert.equal(await em.count(User, { $or: [{ name: { $like: "a%" } }, { id: { $in: [2, 9] } }], active: { $ne: false } }), 2);
    assert.equal(await em.count(User, { tags: { $contains: ["p"] } }), 1);
    assert.equal(await em.count(User, { profile: { x: { $ne: null } } }), 1);
    assert.equal(await em.count(User, { posts: { $some: { views: { $gt: 3 } } } }), 1);
    assert.equal(await em.count(User, { name: { $ilike: "A_A" } }), 1);
  }),
  update_and_remove: filled(async (_orm, fork) => {
    const em = fork();
    const user = await em.findOneOrFail(User, { name: "ada" });
    user.name = "eve";
    await em.flush();
    assert.equal(user.version, 2);
    em.remove(user);
    await em.flush();
    assert.deepEqual([await em.count(User), await em.count(Post)], [1, 0]);
  }),
  native_updates: filled(async (_orm, fork) => {
    const em = fork();
    assert.equal(await em.nativeUpdate(Post, { views: { $lt: 5 } }, { views: 7 }), 1);
    assert.equal(await em.nativeDelete(Post, { views: { $gte: 5 } }), 2);
  }),
  upsert: filled(async (_orm, fork) => {
    const em = fork();
    const user = await em.upsert(User, { email: "a@b", name: "new" });
    assert.deepEqual([user.id, (await fork().findOneOrFail(User, 1)).name], [1, "new"]);
    await em.upsertMany(Tag, [{ word: "big", at: "2024-01-01" }, { word: "new" }]);
    assert.equal(await em.count(Tag), 2);
  }),
  optimistic_lock: filled(async (_orm, fork) => {
    const [one, two] = [fork(), fork()];
    const [a, b] = [await one.findOneOrFail(User, 1), await two.findOneOrFail(User, 1)];
    a.name = "x";
    await one.flush();
    b.name = "y";
    await assert.rejects(two.flush(), OptimisticLockError);
  }),
  pessimistic_lock: filled(async (_orm, fork) => {
    await fork().transactional(async (em) => {
      await em.findOneOrFail(User, 1, { lockMode: LockMode.PESSIMISTIC_WRITE });
      const rows = await fork().transactional((other) => other.find(User, {}, { lockMode: LockMode.PESSIMISTIC_PARTIAL_WRITE }));
      assert.deepEqual(rows.map((u) => u.name), ["bob"]);
    });
  }),
  transactions: made(async (_orm, fork) => {
    await assert.rejects(fork().transactional(async (em) => { em.create(Tag, { word: "x" }); await em.flush(); throw new Error("no"); }), /no/);
    await fork().transactional(async (em) => {
      em.create(Tag, { word: "y" });
      await em.flush();
      await em.transactional(async (inner) => { inner.create(Tag, { word: "z" }); await inner.flush(); throw new Error("x"); }).catch(() => {});
    }, { isolationLevel: "serializable" });
    assert.deepEqual((await fork().find(Tag, {})).map((t) => t.word), ["y"]);
  }),
  errors: filled(async (_orm, fork) => {
    const em = fork();
    em.create(User, { name: "x", email: "a@b" });
    await assert.rejects(em.flush(), UniqueConstraintViolationException);
    await assert.rejects(fork().insert(Post, { title: "x", views: -1 }), { name: "CheckConstraintViolationException" });
    await assert.rejects(fork().insert(Post, { title: "x", author: 99 }), { name: "ForeignKeyConstraintViolationException" });
  }),
  query_builder: filled(async (_orm, fork) => {
    const rows = await fork().createQueryBuilder(User, "u").select(["u.name", raw("count(p.id)::int as n")]).leftJoin("u.posts", "p").groupBy("u.id").orderBy({ "u.id": "asc" }).execute();
    assert.deepEqual(rows.map((r) => [r.name, r.n]), [["ada", 2], ["bob", 0]]);
  }),
  migrations_up_again_down: async (schema) => {
    const path = new URL(`../migrations/${schema}/`, import.meta.url).pathname;
    rmSync(path, { recursive: true, force: true });
    mkdirSync(path, { recursive: true });
    writeFileSync(`${path}Migration1.mjs`, `import { Migration } from "@mikro-orm/migrations";
      export class Migration1 extends Migration { up() { this.addSql('create table t (a int)'); } down() { this.addSql('drop table t'); } }`);
    writeFileSync(`${path}Migration2.mjs`, `import { Migration } from "@mikro-orm/migrations";
      export class Migration2 extends Migration { up() { this.addSql('alter table t add b text'); } down() { this.addSql('alter table t drop b'); } }`);
    await simple(async (orm) => {
      assert.deepEqual((await orm.migrator.up()).map((m) => m.name), ["Migration1.mjs", "Migration2.mjs"]);
      assert.deepEqual(await orm.migrator.up(), []);
      assert.equal((await orm.migrator.getExecutedMigrations()).length, 2);
      await orm.em.getConnection().execute("insert into t (b) values ('x')");
      await orm.migrator.down();
      await orm.migrator.down();
      assert.deepEqual(await orm.em.getConnection().execute("select to_regclass('t') as t"), [{ t: null }]);
    }, { migrations: { path, glob: "*.mjs", snapshot: false } })(schema);
  },
  initial_migration: async (schema) => {
    const path = new URL(`../migrations/${schema}/`, import.meta.url).pathname;
    rmSync(path, { recursive: true, force: true });
    await simple(async (orm) => {
      const { diff } = await orm.migrator.createInitialMigration(path, "first");
      assert.ok(diff.up.length > 3);
      await orm.migrator.up();
      assert.equal(await orm.migrator.checkMigrationNeeded(), false);
    }, { migrations: { path, snapshot: false, emit: "cjs" } })(schema);
  },
};

await run("mikro-orm", version("@mikro-orm/core"), cases);
