// Drizzle: queries of drizzle-orm, migrations, and drizzle-kit's push and introspection.

import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { and, asc, avg, count, desc, eq, gt, ilike, inArray, isNull, relations, sql, sum } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { migrate } from "drizzle-orm/node-postgres/migrator";
import { bigserial, boolean, check, index, integer, jsonb, numeric, pgSchema, primaryKey, serial, text, timestamp, uniqueIndex, uuid, varchar } from "drizzle-orm/pg-core";
import { drizzle as drizzleJs } from "drizzle-orm/postgres-js";
import pg from "pg";
import postgres from "postgres";
import { assert, fails, run, server, sql as statements, url, version } from "../harness.mjs";

const home = new URL("../", import.meta.url).pathname;

/** The tables of a blog in a schema. */
function blog(schema) {
  const space = pgSchema(schema);
  const mood = space.enum("mood", ["sad", "happy"]);
  const users = space.table("users", {
    id: serial().primaryKey(), name: varchar({ length: 50 }).notNull(), email: text().unique(), mood: mood().default("happy"),
    profile: jsonb(), tags: text().array(), balance: numeric({ precision: 10, scale: 2 }).default("0"), key: uuid().defaultRandom(),
    made: timestamp({ withTimezone: true }).defaultNow().notNull(), active: boolean().notNull().default(true),
  });
  const posts = space.table("posts", {
    id: bigserial({ mode: "number" }).primaryKey(), title: text().notNull(), views: integer().default(0).notNull(),
    userId: integer("user_id").references(() => users.id, { onDelete: "cascade" }),
  }, (t) => [index("posts_user").on(t.userId), check("views_positive", sql`${t.views} >= 0`), uniqueIndex("posts_title").on(sql`lower(${t.title})`)]);
  const likes = space.table("likes", { userId: integer("user_id").references(() => users.id), postId: integer("post_id") }, (t) => [primaryKey({ columns: [t.userId, t.postId] })]);
  const usersRelations = relations(users, ({ many }) => ({ posts: many(posts) }));
  const postsRelations = relations(posts, ({ one }) => ({ author: one(users, { fields: [posts.userId], references: [users.id] }) }));
  return { space, mood, users, posts, likes, usersRelations, postsRelations };
}

const ddl = (s) => [
  `create type ${s}.mood as enum ('sad', 'happy')`,
  `create table ${s}.users (id serial primary key, name varchar(50) not null, email text constraint users_email_unique unique, mood ${s}.mood default 'happy', profile jsonb, tags text[], balance numeric(10, 2) default '0', key uuid default gen_random_uuid(), made timestamp with time zone default now() not null, active boolean default true not null)`,
  `create table ${s}.posts (id bigserial primary key, title text not null, views integer default 0 not null, user_id integer, constraint views_positive check (${s}.posts.views >= 0))`,
  `create table ${s}.likes (user_id integer, post_id integer, constraint likes_user_id_post_id_pk primary key (user_id, post_id))`,
  `alter table ${s}.posts add constraint posts_user_id_users_id_fk foreign key (user_id) references ${s}.users(id) on delete cascade on update no action`,
  `create index posts_user on ${s}.posts using btree (user_id)`,
  `create unique index posts_title on ${s}.posts using btree (lower(title))`,
];

/** A case that gets a Drizzle and the tables of a blog. */
const simple = (body) => async (schema) => {
  await statements(...ddl(schema));
  const pool = new pg.Pool({ ...server, max: 4 });
  const tables = blog(schema);
  try {
    await body(drizzle({ client: pool, schema: tables }), tables, schema);
  } finally {
    await pool.end();
  }
};

const ada = { name: "ada", email: "a@b", profile: { a: [1] }, tags: ["x", "y"], balance: "1.50" };

/** Runs drizzle-kit over a schema file. */
async function kit(schema, command, source) {
  const place = `${home}drizzle/${schema}`;
  mkdirSync(place, { recursive: true });
  if (source) writeFileSync(`${place}/schema.js`, source);
  writeFileSync(`${place}/config.js`, `module.exports = { dialect: "postgresql", schema: "./drizzle/${schema}/schema.js", out: "./drizzle/${schema}/out", schemaFilter: ["${schema}"], migrations: { schema: "${schema}_m" }, dbCredentials: { url: "${url}" } };`);
  writeFileSync(`${home}drizzle/package.json`, '{"type": "commonjs"}');
  const child = spawn(process.execPath, [`${home}node_modules/drizzle-kit/bin.cjs`, ...command, `--config=drizzle/${schema}/config.js`], { cwd: home, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => { output += chunk; });
  const timer = setTimeout(() => child.kill(), 25_000);
  const code = await new Promise((resolve) => child.on("close", resolve));
  clearTimeout(timer);
  output = output.replace(/\x1b\[[0-9;]*[A-Za-z]/g, "").replace(/^.*(Pulling schema|fetching|Reading config|Using 'pg').*\n/gm, "").trim();
  console.error(output);
  const error = output.match(/error: .*/)?.[0];
  if (error) throw Object.assign(new Error(error), { code: output.match(/code: '([0-9A-Z]{5})'/)?.[1] });
  assert.equal(code, 0, output.slice(-300));
  return output;
}

const fresh = (schema) => rmSync(`${home}drizzle/${schema}`, { recursive: true, force: true });

const schemaFile = (schema, more = "") => `
const { pgSchema, serial, varchar, integer, text, jsonb, boolean, timestamp, numeric, index, uniqueIndex, check } = require("drizzle-orm/pg-core");
const { sql } = require("drizzle-orm");
const space = exports.space = pgSchema("${schema}");
exports.mood = space.enum("mood", ["sad", "happy"]);
const users = exports.users = space.table("users", {
  id: serial().primaryKey(), name: varchar({ length: 50 }).notNull(), email: text().unique(), mood: exports.mood().default("happy"),
  profile: jsonb().default({}), balance: numeric({ precision: 10, scale: 2 }).default("0"), made: timestamp({ withTimezone: true }).defaultNow().notNull(), ${more}
}, (t) => [index("users_name").on(t.name), check("users_id", sql\`\${t.id} > 0\`)]);
exports.posts = space.table("posts", { id: integer().primaryKey().generatedAlwaysAsIdentity(), active: boolean().default(true), userId: integer("user_id").references(() => users.id, { onDelete: "cascade" }) });
`;

/** A folder of migrations as drizzle-kit generates it. */
function migrationsFolder(schema, files) {
  const folder = `${home}drizzle/${schema}_migrations`;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(`${folder}/meta`, { recursive: true });
  const entries = files.map((text, idx) => {
    const tag = `000${idx}_step`;
    writeFileSync(`${folder}/${tag}.sql`, text);
    return { idx, version: "7", when: 1700000000000 + idx, tag, breakpoints: true };
  });
  writeFileSync(`${folder}/meta/_journal.json`, JSON.stringify({ version: "7", dialect: "postgresql", entries }));
  return folder;
}

const cases = {
  insert_and_select: simple(async (db, { users }) => {
    const [made] = await db.insert(users).values(ada).returning();
    assert.deepEqual([made.id, made.mood, made.profile, made.tags, made.balance, made.active, made.made instanceof Date], [1, "happy", { a: [1] }, ["x", "y"], "1.50", true, true]);
    assert.deepEqual(await db.select({ name: users.name }).from(users).where(and(eq(users.id, 1), isNull(users.email))), []);
  }),
  update_and_delete: simple(async (db, { users }) => {
    await db.insert(users).values([ada, { name: "bob" }]);
    const changed = await db.update(users).set({ name: sql`upper(${users.name})`, mood: "sad" }).where(ilike(users.name, "A%")).returning({ name: users.name, mood: users.mood });
    assert.deepEqual(changed, [{ name: "ADA", mood: "sad" }]);
    assert.equal((await db.delete(users).where(inArray(users.id, [1, 2, 3]))).rowCount, 2);
  }),
  upsert: simple(async (db, { users }) => {
    await db.insert(users).values(ada);
    await db.insert(users).values({ ...ada, name: "eve" }).onConflictDoUpdate({ target: users.email, set: { name: sql`excluded.name` } });
    await db.insert(users).values({ ...ada, name: "zoe" }).onConflictDoNothing();
    assert.deepEqual(await db.select({ name: users.name }).from(users), [{ name: "eve" }]);
  }),
  joins_and_aggregates: simple(async (db, { users, posts }) => {
    await db.insert(users).values([ada, { name: "bob" }]);
    await db.insert(posts).values([{ title: "a", views: 1, userId: 1 }, { title: "b", views: 4, userId: 1 }]);
    const rows = await db.select({ name: users.name, n: count(posts.id), total: sum(posts.views), mean: avg(posts.views) }).from(users).leftJoin(posts, eq(posts.userId, users.id)).groupBy(users.id).orderBy(asc(users.id));
    assert.deepEqual(rows.map((r) => [r.name, r.n, r.total, Number(r.mean)]), [["ada", 2, "5", 2.5], ["bob", 0, null, 0]]);
    assert.equal(await db.$count(users, gt(users.id, 1)), 1);
  }),
  relational_queries: simple(async (db, { users, posts }) => {
    await db.insert(users).values([ada, { name: "bob" }]);
    await db.insert(posts).values([{ title: "a", userId: 1 }, { title: "b", userId: 1 }]);
    const found = await db.query.users.findMany({ columns: { name: true }, with: { posts: { columns: { title: true }, orderBy: (p, o) => [o.desc(p.id)], limit: 1 } }, orderBy: (u, o) => [o.asc(u.id)] });
    assert.deepEqual(found, [{ name: "ada", posts: [{ title: "b" }] }, { name: "bob", posts: [] }]);
    const one = await db.query.posts.findFirst({ with: { author: true } });
    assert.equal(one.author.made instanceof Date && one.author.name, "ada");
  }),
  subqueries_and_ctes: simple(async (db, { users }) => {
    await db.insert(users).values([ada, { name: "bob" }, { name: "cy" }]);
    const young = db.$with("young").as(db.select({ id: users.id, name: users.name }).from(users).where(gt(users.id, 1)));
    assert.deepEqual(await db.with(young).select({ name: young.name }).from(young).orderBy(desc(young.name)).limit(1).offset(1), [{ name: "bob" }]);
  }),
  set_operations: simple(async (db, { users }) => {
    await db.insert(users).values([ada, { name: "bob" }]);
    const rows = await db.select({ n: users.name }).from(users).union(db.select({ n: sql`'zed'::varchar` }).from(users)).orderBy(sql`name`);
    assert.deepEqual(rows.map((r) => r.n), ["ada", "bob", "zed"]);
  }),
  transactions: simple(async (db, { users }) => {
    await assert.rejects(db.transaction(async (tx) => { await tx.insert(users).values(ada); tx.rollback(); }));
    await db.transaction(async (tx) => {
      await tx.insert(users).values(ada);
      await tx.transaction(async (inner) => { await inner.insert(users).values({ name: "x" }); inner.rollback(); }).catch(() => {});
    }, { isolationLevel: "serializable", accessMode: "read write", deferrable: false });
    assert.equal(await db.$count(users), 1);
  }),
  row_locks: simple(async (db, { users }) => {
    await db.insert(users).values([ada]);
    await db.transaction(async (tx) => {
      assert.equal((await tx.select().from(users).for("update", { skipLocked: true })).length, 1);
      await db.transaction(async (other) => assert.equal((await other.select().from(users).for("update", { skipLocked: true })).length, 0));
    });
  }),
  prepared: simple(async (db, { users }) => {
    await db.insert(users).values([ada, { name: "bob" }]);
    const prepared = db.select({ name: users.name }).from(users).where(eq(users.id, sql.placeholder("id"))).prepare("by_id");
    assert.deepEqual([await prepared.execute({ id: 1 }), await prepared.execute({ id: 2 })], [[{ name: "ada" }], [{ name: "bob" }]]);
  }),
  errors: simple(async (db, { posts, users }) => {
    await db.insert(posts).values({ title: "A" });
    await fails(db.insert(posts).values({ title: "a" }), "23505");
    await fails(db.insert(posts).values({ title: "b", views: -1 }), "23514");
    await fails(db.insert(posts).values({ title: "c", userId: 77 }), "23503");
    await fails(db.insert(users).values({ name: sql`null` }), "23502");
  }),
  over_postgresjs: simple(async (_db, tables) => {
    const client = postgres(url, { max: 2, onnotice: () => {} });
    const db = drizzleJs({ client, schema: tables });
    await db.insert(tables.users).values(ada);
    const [row] = await db.select().from(tables.users);
    assert.deepEqual([row.profile, row.tags, row.made instanceof Date], [{ a: [1] }, ["x", "y"], true]);
    await client.end();
  }),
  migrate: async (schema) => {
    const folder = migrationsFolder(schema, [ddl(schema).join(";\n--> statement-breakpoint\n"), `alter table ${schema}.users add column age integer;`]);
    const pool = new pg.Pool({ ...server, max: 2 });
    const options = { migrationsFolder: folder, migrationsSchema: schema };
    await migrate(drizzle({ client: pool }), options);
    await migrate(drizzle({ client: pool }), options);
    await pool.end();
    assert.deepEqual(await statements(`select count(*)::int as n, (select count(age)::int from ${schema}.users) as m from ${schema}.__drizzle_migrations`), [{ n: 2, m: 0 }]);
  },
  migrate_fails_is_rolled_back: async (schema) => {
    const folder = migrationsFolder(schema, [`create table ${schema}.t (a int);`, "select 1/0;"]);
    const pool = new pg.Pool({ ...server, max: 2 });
    await fails(migrate(drizzle({ client: pool }), { migrationsFolder: folder, migrationsSchema: schema }), "22012");
    await pool.end();
    assert.deepEqual(await statements(`select to_regclass('${schema}.t') as t`), [{ t: null }]);
  },
  kit_push: async (schema) => {
    fresh(schema);
    await kit(schema, ["push", "--force"], schemaFile(schema));
    assert.deepEqual(await statements(`insert into ${schema}.users (name) values ('x') returning id, mood`), [{ id: 1, mood: "happy" }]);
  },
  kit_push_again_is_empty: async (schema) => {
    fresh(schema);
    await kit(schema, ["push", "--force"], schemaFile(schema));
    assert.match(await kit(schema, ["push", "--force", "--verbose"]), /^\[.\] No changes detected$/);
  },
  kit_push_adds_column: async (schema) => {
    fresh(schema);
    await kit(schema, ["push", "--force"], schemaFile(schema));
    await kit(schema, ["push", "--force"], schemaFile(schema, "age: integer().default(7),"));
    assert.deepEqual(await statements(`insert into ${schema}.users (name) values ('x') returning age`), [{ age: 7 }]);
  },
  kit_generate_and_migrate: async (schema) => {
    fresh(schema);
    await statements(`drop schema ${schema}`, `drop schema if exists ${schema}_m cascade`);
    await kit(schema, ["generate"], schemaFile(schema));
    await kit(schema, ["migrate"]);
    assert.deepEqual(await statements(`select count(*)::int as n from ${schema}.posts`), [{ n: 0 }]);
    await statements(`drop schema ${schema}_m cascade`);
  },
  kit_introspect: async (schema) => {
    fresh(schema);
    await statements(...ddl(schema));
    await kit(schema, ["pull"]);
    const out = `${home}drizzle/${schema}/out/`;
    const text = readFileSync(`${out}schema.ts`, "utf8");
    for (const part of [/users_email_unique/, /varchar\(\{ length: 50 \}\)\.notNull\(\)/, /enum\("mood", \['sad', 'happy'\]\)/, /numeric\(\{ precision: 10, scale:\s+2 \}\)/, /posts_user_id_users_id_fk/, /onDelete\("cascade"\)/, /defaultNow\(\)/, /views_positive/, /lower\(title\)/]) {
      assert.match(text, part);
    }
    assert.ok(readdirSync(out).includes("relations.ts"));
  },
};

await run("drizzle", version("drizzle-orm"), cases);
