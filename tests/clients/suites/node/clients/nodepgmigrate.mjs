// node-pg-migrate: each case writes migration files and runs them.

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { runner } from "node-pg-migrate";
import { assert, fails, run, sql, url, version } from "../harness.mjs";

/** A case that gets `migrate(direction, count)` over migrations given as bodies of up and down. */
const simple = (migrations, body) => async (schema) => {
  const dir = new URL(`../migrations/${schema}/`, import.meta.url).pathname;
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  migrations.forEach(([up, down], i) => {
    writeFileSync(`${dir}170000000000${i}_m${i}.js`, `exports.up = ${up ?? "() => {}"};\nexports.down = ${down ?? "false"};\n`);
  });
  writeFileSync(`${dir}../package.json`, '{"type": "commonjs"}');
  const migrate = (direction = "up", options = {}) => runner({
    databaseUrl: url, dir, direction, schema, migrationsSchema: schema, migrationsTable: "pgmigrations", count: Infinity, singleTransaction: true,
    log: () => {}, logger: { debug() {}, info() {}, warn() {}, error() {} }, ...options,
  }).then((done) => done.map((m) => m.name.replace(/^\d+_/, "")));
  await body(migrate, (text) => sql(`set search_path = ${schema}`, text), schema);
};

const up = (source) => [`(pgm) => { ${source} }`];
const both = (there, back) => [`(pgm) => { ${there} }`, `(pgm) => { ${back} }`];
const USERS = "pgm.createTable('users', { id: 'id', name: { type: 'varchar(50)', notNull: true }, made: { type: 'timestamp', notNull: true, default: pgm.func('current_timestamp') } });";

const cases = {
  up_again_down: simple(
    [both(USERS, "pgm.dropTable('users');"), both("pgm.addColumns('users', { age: { type: 'int', check: 'age > 0' } });", "pgm.dropColumns('users', ['age']);")],
    async (migrate, query) => {
      assert.deepEqual(await migrate(), ["m0", "m1"]);
      assert.deepEqual(await migrate(), []);
      assert.deepEqual(await query("select name from pgmigrations order by id"), [{ name: "1700000000000_m0" }, { name: "1700000000001_m1" }]);
      await query("insert into users (name, age) values ('x', 1)");
      await fails(query("insert into users (name, age) values ('x', -1)"), "23514");
      assert.deepEqual(await migrate("down", { count: 1 }), ["m1"]);
      assert.deepEqual(await query("select * from users where made is null"), []);
      assert.deepEqual(await migrate("down"), ["m0"]);
      assert.deepEqual(await query("select to_regclass('users') as t"), [{ t: null }]);
    },
  ),
  dry_run: simple([up(USERS)], async (migrate, query) => {
    assert.deepEqual(await migrate("up", { dryRun: true }), ["m0"]);
    assert.deepEqual(await query("select to_regclass('users') as t"), [{ t: null }]);
  }),
  fake: simple([up(USERS)], async (migrate, query) => {
    await migrate("up", { fake: true });
    assert.deepEqual(await query("select to_regclass('users') as t, (select count(*)::int from pgmigrations) as n"), [{ t: null, n: 1 }]);
  }),
  reversed_by_itself: simple([up(USERS).concat("undefined")], async (migrate, query) => {
    await migrate();
    await migrate("down");
    assert.deepEqual(await query("select to_regclass('users') as t"), [{ t: null }]);
  }),
  fails_is_rolled_back: simple([up(USERS), up("pgm.sql('create table other (a int)'); pgm.sql('select 1/0');")], async (migrate, query) => {
    await fails(migrate(), "22012");
    assert.deepEqual(await query("select to_regclass('users') as t, to_regclass('other') as o"), [{ t: null, o: null }]);
  }),
  one_transaction_each: simple([up(USERS), up("pgm.sql('select 1/0');")], async (migrate, query) => {
    await fails(migrate("up", { singleTransaction: false }), "22012");
    assert.deepEqual(await query("select count(*)::int as n from users"), [{ n: 0 }]);
  }),
  two_at_once: simple([up(USERS)], async (migrate, query) => {
    const results = await Promise.allSettled([migrate(), migrate()]);
    assert.ok(results.some((r) => r.status === "fulfilled"));
    assert.deepEqual(await query("select count(*)::int as n from pgmigrations"), [{ n: 1 }]);
  }),
  creates_schemas: async (schema) => {
    await sql(`drop schema if exists ${schema} cascade`, `drop schema if exists ${schema}_m cascade`);
    await simple([up(USERS)], (migrate) => migrate("up", { createSchema: true, createMigrationsSchema: true, migrationsSchema: `${schema}_m` }))(schema);
    assert.deepEqual(await sql(`select count(*)::int as n from ${schema}_m.pgmigrations`), [{ n: 1 }]);
    await sql(`drop schema ${schema}_m cascade`);
  },
  constraints: simple([
    up(`${USERS} pgm.createTable('posts', { id: { type: 'bigserial', primaryKey: true }, user_id: { type: 'int', notNull: true, references: 'users', onDelete: 'cascade' }, title: 'text' }, { comment: 'what is written' });`),
    up("pgm.addConstraint('posts', 'posts_title', { unique: ['title', 'user_id'] }); pgm.addConstraint('posts', 'posts_long', 'check (length(title) > 2)');"),
    both("pgm.dropConstraint('posts', 'posts_long');", "pgm.addConstraint('posts', 'posts_long', 'check (length(title) > 2)');"),
  ], async (migrate, query) => {
    await migrate();
    await query("insert into users (name) values ('a'); insert into posts (user_id, title) values (1, 'x')");
    await fails(query("insert into posts (user_id, title) values (1, 'x')"), "23505");
    await fails(query("insert into posts (user_id, title) values (2, 'y')"), "23503");
    await query("delete from users");
    assert.deepEqual(await query("select * from posts"), []);
    assert.deepEqual(await query("select obj_description('posts'::regclass, 'pg_class') as d"), [{ d: "what is written" }]);
  }),
  indexes: simple([
    up(`${USERS} pgm.createIndex('users', 'name', { unique: true, where: 'id > 0' }); pgm.createIndex('users', ['lower(name)', { name: 'made', sort: 'DESC' }], { name: 'users_lower' });`),
    both("pgm.dropIndex('users', [], { name: 'users_lower' });", ""),
  ], async (migrate, query, schema) => {
    await migrate();
    const found = await query(`select indexname from pg_indexes where schemaname = '${schema}' and tablename = 'users' order by 1`);
    assert.deepEqual(found.map((r) => r.indexname), ["users_name_unique_index", "users_pkey"]);
  }),
  index_concurrently: simple([up(USERS), up("pgm.noTransaction(); pgm.createIndex('users', 'name', { concurrently: true });")], async (migrate, query) => {
    await migrate("up", { singleTransaction: false });
    assert.deepEqual(await query("select to_regclass('users_name_index') is not null as t"), [{ t: true }]);
  }),
  alter_columns: simple([
    up(USERS),
    both("pgm.alterColumn('users', 'name', { type: 'text', default: 'nobody', notNull: false, comment: 'who' }); pgm.renameColumn('users', 'made', 'born');", "pgm.renameColumn('users', 'born', 'made');"),
  ], async (migrate, query) => {
    await migrate();
    assert.deepEqual(await query("insert into users default values returning name, born is not null as b"), [{ name: "nobody", b: true }]);
    await migrate("down", { count: 1 });
  }),
  types_and_domains: simple([
    both("pgm.createType('mood', ['sad', 'happy']); pgm.addTypeValue('mood', 'ok', { before: 'happy' }); pgm.createDomain('positive', 'int', { check: 'value > 0' });", "pgm.dropDomain('positive'); pgm.dropType('mood');"),
    both("pgm.createTable('t', { m: 'mood', p: 'positive' });", "pgm.dropTable('t');"),
  ], async (migrate, query) => {
    await migrate("up", { singleTransaction: false });
    await query("insert into t values ('ok', 3)");
    await fails(query("insert into t values ('ok', -3)"), "23514");
    await migrate("down");
  }),
  views_and_sequences: simple([
    both(`${USERS} pgm.createView('v', { columns: ['n'] }, 'select name from users'); pgm.createSequence('s', { start: 5, increment: 2 });`, "pgm.dropSequence('s'); pgm.dropView('v'); pgm.dropTable('users');"),
  ], async (migrate, query) => {
    await migrate();
    assert.deepEqual(await query("select nextval('s')::int as a, (select count(n)::int from v) as c"), [{ a: 5, c: 0 }]);
    await migrate("down");
  }),
  roles_and_grants: simple([
    both(`${USERS} pgm.createRole('suite_migrated'); pgm.grantOnTables({ tables: 'users', privileges: ['SELECT'], roles: 'suite_migrated' });`,
      "pgm.revokeOnTables({ tables: 'users', privileges: ['SELECT'], roles: 'suite_migrated' }); pgm.dropRole('suite_migrated'); pgm.dropTable('users');"),
  ], async (migrate, query) => {
    await query("drop role if exists suite_migrated");
    await migrate();
    assert.deepEqual(await query("select has_table_privilege('suite_migrated', 'users', 'SELECT') as s, has_table_privilege('suite_migrated', 'users', 'INSERT') as i"), [{ s: true, i: false }]);
    await migrate("down");
  }),
  data_in_migrations: simple([up(USERS), ["async (pgm) => { await pgm.db.query(\"select 1\"); pgm.sql(\"insert into users (name) values ('{x}')\", { x: 'ada' }); }"]], async (migrate, query) => {
    await migrate();
    assert.equal((await query("select count(*)::int as n from users"))[0].n, 1);
  }),
  functions_and_triggers_needs_functions: simple([
    both(`${USERS} pgm.createFunction('touch', [], { returns: 'trigger', language: 'plpgsql' }, 'begin new.name := upper(new.name); return new; end'); pgm.createTrigger('users', 'touch', { when: 'BEFORE', operation: 'INSERT', level: 'ROW', function: 'touch' });`,
      "pgm.dropTrigger('users', 'touch'); pgm.dropFunction('touch', []); pgm.dropTable('users');"),
  ], async (migrate, query) => {
    await migrate();
    assert.deepEqual(await query("insert into users (name) values ('x') returning name"), [{ name: "X" }]);
    await migrate("down");
  }),
};

await run("node-pg-migrate", version("node-pg-migrate"), cases);
