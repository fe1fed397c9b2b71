// Prisma's client with the driver adapter for node-postgres.
//
// The schema engine (migrate, db push, db pull) is a binary that npm does not have: only the client
// runs. The generator wants a path of that binary, but never starts it.

import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { PrismaPg } from "@prisma/adapter-pg";
import { assert, run, server, sql, version } from "../harness.mjs";

const home = new URL("../", import.meta.url).pathname;
const generated = spawnSync(process.execPath, [`${home}node_modules/prisma/build/index.js`, "generate", "--schema", "prisma.schema"], {
  cwd: home, stdio: ["ignore", 2, 2],
  env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, PRISMA_HIDE_UPDATE_MESSAGE: "1", CHECKPOINT_DISABLE: "1" },
});
if (generated.status !== 0) throw new Error("prisma generate has failed");
const { Prisma, PrismaClient } = createRequire(import.meta.url)("../prisma-client/index.js");

// The statements that `prisma migrate diff` prints for the schema.
const DDL = [
  `CREATE TYPE "Role" AS ENUM ('admin', 'user')`,
  `CREATE TABLE "users" ("id" SERIAL NOT NULL, "name" VARCHAR(50) NOT NULL, "email" TEXT, "role" "Role" NOT NULL DEFAULT 'user', "profile" JSONB, "tags" TEXT[], "balance" DECIMAL(10,2) NOT NULL DEFAULT 0, "big" BIGINT, "bytes" BYTEA, "made" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "born" DATE, "score" DOUBLE PRECISION NOT NULL DEFAULT 0, "active" BOOLEAN NOT NULL DEFAULT true, "version" INTEGER NOT NULL DEFAULT 1, CONSTRAINT "users_pkey" PRIMARY KEY ("id"))`,
  `CREATE TABLE "posts" ("id" UUID NOT NULL DEFAULT gen_random_uuid(), "title" TEXT NOT NULL, "views" INTEGER NOT NULL DEFAULT 0, "author_id" INTEGER, CONSTRAINT "posts_pkey" PRIMARY KEY ("id"))`,
  `CREATE TABLE "tags" ("word" TEXT NOT NULL, CONSTRAINT "tags_pkey" PRIMARY KEY ("word"))`,
  `CREATE TABLE "_PostToTag" ("A" UUID NOT NULL, "B" TEXT NOT NULL, CONSTRAINT "_PostToTag_AB_pkey" PRIMARY KEY ("A","B"))`,
  `CREATE UNIQUE INDEX "users_email_key" ON "users"("email")`,
  `CREATE UNIQUE INDEX "posts_title_key" ON "posts"("title")`,
  `CREATE INDEX "posts_author_id_idx" ON "posts"("author_id")`,
  `CREATE INDEX "_PostToTag_B_index" ON "_PostToTag"("B")`,
  `ALTER TABLE "posts" ADD CONSTRAINT "posts_author_id_fkey" FOREIGN KEY ("author_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE`,
  `ALTER TABLE "_PostToTag" ADD CONSTRAINT "_PostToTag_A_fkey" FOREIGN KEY ("A") REFERENCES "posts"("id") ON DELETE CASCADE ON UPDATE CASCADE`,
  `ALTER TABLE "_PostToTag" ADD CONSTRAINT "_PostToTag_B_fkey" FOREIGN KEY ("B") REFERENCES "tags"("word") ON DELETE CASCADE ON UPDATE CASCADE`,
];

/** A case that gets a client over the tables in its schema. */
const simple = (body) => async (schema) => {
  await sql(`set search_path = ${schema}`, ...DDL);
  const adapter = new PrismaPg({ ...server, max: 4, options: `-c search_path=${schema}` }, { schema });
  const prisma = new PrismaClient({ adapter });
  try {
    await body(prisma);
  } finally {
    await prisma.$disconnect();
  }
};

const filled = (body) => simple(async (prisma) => {
  await prisma.user.create({ data: { name: "ada", email: "a@b", tags: ["x", "y"], profile: { a: { b: 1 }, l: [1, 2] }, posts: { create: [{ title: "one", views: 1, words: { create: [{ word: "big" }] } }, { title: "two", views: 5 }] } } });
  await prisma.user.create({ data: { name: "bob", tags: [], balance: "7.25" } });
  await body(prisma);
});

const code = (wanted) => (error) => error.code === wanted;

const cases = {
  create_and_find: simple(async (prisma) => {
    const data = { name: "ada", email: "a@b", role: "admin", profile: { x: [1, null] }, tags: ["p", "q,"], balance: "12.30", big: 9007199254740993n, bytes: new Uint8Array([0, 255]), born: new Date("2000-02-29"), score: 1.5 };
    const made = await prisma.user.create({ data });
    const found = await prisma.user.findUniqueOrThrow({ where: { email: "a@b" } });
    assert.deepEqual([made.id, found.role, found.profile, found.tags, found.balance.toFixed(2), found.big, [...found.bytes], found.born, found.score, found.active], [1, "admin", data.profile, data.tags, "12.30", data.big, [0, 255], data.born, 1.5, true]);
    assert.ok(found.made instanceof Date && found.made.getTime() === made.made.getTime());
  }),
  create_many: simple(async (prisma) => {
    const data = Array.from({ length: 50 }, (_, i) => ({ title: `t${i}`, views: i }));
    assert.equal((await prisma.post.createMany({ data })).count, 50);
    assert.equal((await prisma.post.createMany({ data: [{ title: "t1" }, { title: "new" }], skipDuplicates: true })).count, 1);
    assert.deepEqual((await prisma.post.createManyAndReturn({ data: [{ title: "z" }], select: { title: true } })), [{ title: "z" }]);
  }),
  include_relations: filled(async (prisma) => {
    const users = await prisma.user.findMany({ include: { posts: { include: { words: true }, orderBy: { title: "asc" } }, _count: { select: { posts: true } } }, orderBy: { id: "asc" } });
    assert.deepEqual(users.map((u) => [u.name, u._count.posts, u.posts.map((p) => [p.title, p.words])]), [["ada", 2, [["one", [{ word: "big" }]], ["two", []]]], ["bob", 0, []]]);
  }),
  filters: filled(async (prisma) => {
    const names = async (where) => (await prisma.user.findMany({ where, orderBy: { id: "asc" } })).map((u) => u.name);
    assert.deepEqual(await names({ name: { startsWith: "A", mode: "insensitive" } }), ["ada"]);
    assert.deepEqual(await names({ OR: [{ email: null }, { balance: { gt: 7 } }] }), ["bob"]);
    assert.deepEqual(await names({ posts: { some: { views: { gte: 5 } } } }), ["ada"]);
    assert.deepEqual(await names({ posts: { none: {} } }), ["bob"]);
    assert.deepEqual(await names({ id: { in: [1, 2, 3] }, NOT: { name: { contains: "o" } } }), ["ada"]);
  }),
  list_filters: filled(async (prisma) => {
    assert.equal(await prisma.user.count({ where: { tags: { has: "x" } } }), 1);
    assert.equal(await prisma.user.count({ where: { tags: { hasEvery: ["x", "y"] } } }), 1);
    assert.equal(await prisma.user.count({ where: { tags: { isEmpty: true } } }), 1);
    await prisma.user.update({ where: { id: 1 }, data: { tags: { push: "z" } } });
    assert.deepEqual((await prisma.user.findUnique({ where: { id: 1 } })).tags, ["x", "y", "z"]);
  }),
  json_filters: filled(async (prisma) => {
    assert.equal(await prisma.user.count({ where: { profile: { path: ["a", "b"], equals: 1 } } }), 1);
    assert.equal(await prisma.user.count({ where: { profile: { path: ["l"], array_contains: [2] } } }), 1);
    assert.equal(await prisma.user.count({ where: { profile: { equals: Prisma.DbNull } } }), 1);
  }),
  paging: filled(async (prisma) => {
    assert.deepEqual((await prisma.post.findMany({ orderBy: [{ views: "desc" }], skip: 1, take: 1 })).map((p) => p.title), ["one"]);
    assert.deepEqual((await prisma.user.findMany({ cursor: { id: 1 }, skip: 1, take: 5, orderBy: { id: "asc" } })).map((u) => u.id), [2]);
    assert.equal((await prisma.post.findMany({ distinct: ["authorId"] })).length, 1);
  }),
  aggregates: filled(async (prisma) => {
    const found = await prisma.post.aggregate({ _sum: { views: true }, _avg: { views: true }, _max: { title: true }, _count: true });
    assert.deepEqual(found, { _sum: { views: 6 }, _avg: { views: 3 }, _max: { title: "two" }, _count: 2 });
    const groups = await prisma.post.groupBy({ by: ["authorId"], _count: { _all: true }, having: { views: { _sum: { gt: 3 } } } });
    assert.deepEqual(groups, [{ authorId: 1, _count: { _all: 2 } }]);
  }),
  update_and_delete: filled(async (prisma) => {
    const changed = await prisma.user.update({ where: { id: 2 }, data: { balance: { increment: 2 }, version: { increment: 1 }, posts: { connect: { title: "two" } } }, include: { posts: true } });
    assert.deepEqual([changed.balance.toFixed(2), changed.version, changed.posts.length], ["9.25", 2, 1]);
    assert.equal((await prisma.post.updateMany({ where: { views: { lt: 3 } }, data: { views: { multiply: 4 } } })).count, 1);
    await prisma.user.delete({ where: { id: 1 } });
    assert.equal((await prisma.post.deleteMany()).count, 1);
  }),
  upsert: filled(async (prisma) => {
    const put = (name) => prisma.user.upsert({ where: { email: "new@b" }, create: { name, email: "new@b" }, update: { name } });
    const [one, two] = [await put("x"), await put("y")];
    assert.deepEqual([one.id === two.id, two.name], [true, "y"]);
  }),
  nested_writes: filled(async (prisma) => {
    await prisma.post.update({ where: { title: "one" }, data: { words: { connectOrCreate: [{ where: { word: "big" }, create: { word: "big" } }, { where: { word: "red" }, create: { word: "red" } }] }, author: { update: { name: "eve" } } } });
    const post = await prisma.post.findUnique({ where: { title: "one" }, include: { words: { orderBy: { word: "asc" } }, author: true } });
    assert.deepEqual([post.words.map((w) => w.word), post.author.name], [["big", "red"], "eve"]);
    await prisma.post.update({ where: { title: "one" }, data: { words: { set: [] } } });
    assert.equal(await prisma.tag.count({ where: { posts: { some: {} } } }), 0);
  }),
  optimistic_locking: filled(async (prisma) => {
    const put = () => prisma.user.updateMany({ where: { id: 1, version: 1 }, data: { version: { increment: 1 } } });
    assert.deepEqual([(await put()).count, (await put()).count], [1, 0]);
  }),
  batch_transaction: filled(async (prisma) => {
    const [n, made] = await prisma.$transaction([prisma.user.count(), prisma.tag.create({ data: { word: "w" } })]);
    assert.deepEqual([n, made], [2, { word: "w" }]);
    await assert.rejects(prisma.$transaction([prisma.tag.create({ data: { word: "v" } }), prisma.tag.create({ data: { word: "w" } })]), code("P2002"));
    assert.equal(await prisma.tag.count(), 2);
  }),
  interactive_transaction: filled(async (prisma) => {
    await prisma.$transaction(async (tx) => { await tx.tag.create({ data: { word: "y" } }); await tx.user.update({ where: { id: 1 }, data: { name: "z" } }); }, { isolationLevel: "Serializable" });
    await assert.rejects(prisma.$transaction(async (tx) => { await tx.tag.deleteMany(); throw new Error("no"); }), /no/);
    assert.equal(await prisma.tag.count(), 2);
  }),
  errors: filled(async (prisma) => {
    await assert.rejects(prisma.user.create({ data: { name: "x", email: "a@b" } }), code("P2002"));
    await assert.rejects(prisma.post.create({ data: { title: "x", authorId: 99 } }), code("P2003"));
    await assert.rejects(prisma.user.delete({ where: { id: 99 } }), code("P2025"));
    await assert.rejects(prisma.user.create({ data: { name: "x".repeat(60) } }), code("P2000"));
  }),
  raw_queries: filled(async (prisma) => {
    const rows = await prisma.$queryRaw`select id, name, balance, made, tags, profile, 12::bigint as l from users where id = ${1} and name = any(${["ada"]})`;
    assert.deepEqual([rows[0].id, rows[0].balance.toFixed(2), rows[0].made instanceof Date, rows[0].tags, rows[0].l], [1, "0.00", true, ["x", "y"], 12n]);
    assert.equal(await prisma.$executeRaw`update posts set views = views + ${1}`, 2);
    assert.deepEqual(await prisma.$queryRawUnsafe("select count(*)::int as n from posts where views > $1", 2), [{ n: 1 }]);
    await assert.rejects(prisma.$queryRaw`select 1/0`, code("P2010"));
  }),
  many_at_once: filled(async (prisma) => {
    const all = await Promise.all(Array.from({ length: 20 }, (_, i) => prisma.user.findUnique({ where: { id: 1 + (i % 2) } })));
    assert.deepEqual(all.map((u) => u.id), Array.from({ length: 20 }, (_, i) => 1 + (i % 2)));
  }),
};

await run("prisma", version("@prisma/client"), cases);
