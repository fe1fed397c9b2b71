// Sequelize: sync, sync alter, models, associations, queryInterface, migrations by umzug.

import sequelizeLibrary from "sequelize";
import { SequelizeStorage, Umzug } from "umzug";
import { assert, fails, run, server, sql, version } from "../harness.mjs";

const { DataTypes, Op, QueryTypes, Sequelize, Transaction, UniqueConstraintError } = sequelizeLibrary;

/** A case that gets a Sequelize whose models are in its schema. */
const simple = (body) => async (schema) => {
  const sequelize = new Sequelize(server.database, server.user, server.password ?? "", {
    host: server.host, port: server.port, dialect: "postgres", logging: false, schema,
    dialectOptions: { options: `-c search_path=${schema}` },
  });
  try {
    await body(sequelize, schema);
  } finally {
    await sequelize.close();
  }
};

const blog = (sequelize) => {
  const User = sequelize.define("User", {
    name: { type: DataTypes.STRING(50), allowNull: false },
    email: { type: DataTypes.STRING, unique: true, validate: { isEmail: true } },
    role: { type: DataTypes.STRING(10), defaultValue: "user" },
    profile: DataTypes.JSONB,
    tags: DataTypes.ARRAY(DataTypes.STRING),
    balance: { type: DataTypes.DECIMAL(10, 2), defaultValue: 0 },
  });
  const Post = sequelize.define("Post", { title: DataTypes.STRING, body: DataTypes.TEXT, views: { type: DataTypes.INTEGER, defaultValue: 0 } }, { indexes: [{ fields: ["title"] }] });
  const Tag = sequelize.define("Tag", { word: { type: DataTypes.STRING, primaryKey: true } }, { timestamps: false });
  User.hasMany(Post, { foreignKey: "userId", as: "posts", onDelete: "CASCADE" });
  Post.belongsTo(User, { foreignKey: "userId", as: "author" });
  Post.belongsToMany(Tag, { through: "PostTags", as: "words" });
  Tag.belongsToMany(Post, { through: "PostTags", as: "posts" });
  return { User, Post, Tag };
};

/** A case that gets the synchronized models of a blog. */
const models = (body) => simple(async (sequelize, schema) => {
  const found = blog(sequelize);
  await sequelize.sync();
  await body({ sequelize, schema, ...found });
});

const cases = {
  authenticate: simple((sequelize) => sequelize.authenticate()),
  database_version: simple(async (sequelize) => assert.match(await sequelize.databaseVersion(), /^\d+\.\d+/)),
  sync: models(async ({ sequelize }) => {
    const tables = await sequelize.getQueryInterface().showAllTables();
    assert.ok(tables.length >= 4);
  }),
  sync_twice: models(async ({ sequelize }) => { await sequelize.sync(); }),
  sync_force: models(async ({ sequelize, User }) => {
    await User.create({ name: "a" });
    await sequelize.sync({ force: true });
    assert.equal(await User.count(), 0);
  }),
  sync_alter: models(async ({ sequelize, User }) => {
    await User.create({ name: "a", email: "a@b.cd" });
    await sequelize.sync({ alter: true });
    await sequelize.sync({ alter: true });
    assert.equal((await User.findOne()).name, "a");
  }),
  sync_alter_adds_column: simple(async (sequelize) => {
    sequelize.define("T", { a: DataTypes.STRING });
    await sequelize.sync();
    const T = sequelize.define("T", { a: DataTypes.TEXT, b: { type: DataTypes.INTEGER, defaultValue: 5 } });
    await sequelize.sync({ alter: true });
    const made = await T.create({ a: "x" });
    assert.deepEqual([(await T.findByPk(made.id)).b], [5]);
  }),
  sync_enum_needs_do: simple(async (sequelize, schema) => {
    const T = sequelize.define("T", { m: { type: DataTypes.ENUM("a", "b"), defaultValue: "a" } });
    await sequelize.sync();
    assert.equal((await T.create()).m, "a");
    const found = await sequelize.getQueryInterface().describeTable("Ts", { schema });
    assert.deepEqual([found.m.type, found.m.special], ["USER-DEFINED", ["a", "b"]]);
  }),
  sync_alter_enum_needs_do: simple(async (sequelize) => {
    sequelize.define("T", { m: DataTypes.ENUM("a", "b") });
    await sequelize.sync();
    const T = sequelize.define("T", { m: DataTypes.ENUM("a", "b", "c") });
    await sequelize.sync({ alter: true });
    assert.equal((await T.create({ m: "c" })).m, "c");
  }),
  describe_table: models(async ({ sequelize, schema }) => {
    const found = await sequelize.getQueryInterface().describeTable("Users", { schema });
    assert.deepEqual(
      Object.fromEntries(Object.entries(found).map(([name, c]) => [name, [c.type, c.allowNull, c.primaryKey]])),
      {
        id: ["INTEGER", false, true], name: ["CHARACTER VARYING(50)", false, false], email: ["CHARACTER VARYING(255)", true, false],
        role: ["CHARACTER VARYING(10)", true, false], profile: ["JSONB", true, false], tags: ["ARRAY", true, false], balance: ["NUMERIC", true, false],
        createdAt: ["TIMESTAMP WITH TIME ZONE", false, false], updatedAt: ["TIMESTAMP WITH TIME ZONE", false, false],
      },
    );
  }),
  show_index: models(async ({ sequelize, schema }) => {
    const indexes = await sequelize.getQueryInterface().showIndex({ tableName: "Users", schema });
    assert.deepEqual(indexes.map((i) => [i.name, i.unique, i.primary, i.fields.map((f) => f.attribute)]).sort(), [
      ["Users_email_key", true, false, ["email"]], ["Users_pkey", true, true, ["id"]],
    ]);
  }),
  show_constraints: models(async ({ sequelize, schema }) => {
    const found = await sequelize.getQueryInterface().showConstraint("Posts");
    assert.ok(found.some((c) => c.constraintName === "Posts_userId_fkey" && c.constraintType === "FOREIGN KEY"), JSON.stringify(found));
  }),
  foreign_key_references: models(async ({ sequelize, schema }) => {
    const found = await sequelize.getQueryInterface().getForeignKeyReferencesForTable({ tableName: "Posts", schema });
    assert.deepEqual(found.map((f) => [f.columnName, f.referencedTableName, f.referencedColumnName]), [["userId", "Users", "id"]]);
  }),
  show_all_schemas: simple(async (sequelize, schema) => {
    const found = await sequelize.getQueryInterface().showAllSchemas();
    assert.ok(found.includes(schema));
    assert.ok(found.every((name) => !/meridian/.test(name)), JSON.stringify(found));
  }),
  create_and_find: models(async ({ User }) => {
    const ada = await User.create({ name: "ada", email: "a@b.cd", profile: { level: 3, nested: { x: [1] } }, tags: ["x", "y"], balance: "12.30" });
    assert.deepEqual([ada.id, ada.role], [1, "user"]);
    const found = await User.findByPk(1, { raw: true });
    assert.deepEqual([found.profile, found.tags, found.balance], [{ level: 3, nested: { x: [1] } }, ["x", "y"], "12.30"]);
    assert.equal(await User.count({ where: { profile: { level: 3 }, tags: { [Op.contains]: ["x"] } } }), 1);
    assert.equal(await User.count({ where: { "profile.nested.x": { [Op.ne]: null } } }), 1);
  }),
  update_and_destroy: models(async ({ User }) => {
    const user = await User.create({ name: "ada" });
    user.name = "bob";
    await user.save();
    await user.increment("balance", { by: 2 });
    await user.reload();
    assert.deepEqual([user.name, user.balance], ["bob", "2.00"]);
    const [count, rows] = await User.update({ name: "cy" }, { where: { id: user.id }, returning: true });
    assert.deepEqual([count, rows[0].name], [1, "cy"]);
    assert.equal(await User.destroy({ where: { name: { [Op.iLike]: "C%" } } }), 1);
  }),
  bulk_create: models(async ({ User }) => {
    const made = await User.bulkCreate(Array.from({ length: 100 }, (_, i) => ({ name: `n${i}`, email: `e${i}@x.yz` })));
    assert.deepEqual([made.length, made[99].id], [100, 100]);
    await User.bulkCreate([{ name: "other", email: "e5@x.yz" }], { updateOnDuplicate: ["name"], conflictAttributes: ["email"] });
    assert.equal((await User.findOne({ where: { email: "e5@x.yz" } })).name, "other");
    await User.bulkCreate([{ name: "third", email: "e5@x.yz" }], { ignoreDuplicates: true });
    assert.equal(await User.count(), 100);
  }),
  upsert: models(async ({ User }) => {
    await User.upsert({ id: 1, name: "a", email: "a@b.cd" });
    const [user, created] = await User.upsert({ id: 1, name: "b", email: "a@b.cd" });
    assert.deepEqual([user.name, created, await User.count()], ["b", null, 1]);
  }),
  find_create_find: models(async ({ User }) => {
    const [one, first] = await User.findCreateFind({ where: { email: "a@b.cd" }, defaults: { name: "a" } });
    const [two, second] = await User.findCreateFind({ where: { email: "a@b.cd" }, defaults: { name: "b" } });
    assert.deepEqual([first, second, one.id === two.id], [true, false, true]);
  }),
  find_or_create_needs_functions: models(async ({ sequelize, User }) => {
    await sequelize.transaction(async (transaction) => {
      const [one, first] = await User.findOrCreate({ where: { email: "a@b.cd" }, defaults: { name: "a" }, transaction });
      assert.deepEqual([one.name, first], ["a", true]);
    });
  }),
  associations: models(async ({ User, Post, Tag }) => {
    const user = await User.create({ name: "ada", posts: [{ title: "one" }, { title: "two" }] }, { include: "posts" });
    const [post] = await user.getPosts({ order: ["id"] });
    await post.addWords(await Tag.bulkCreate([{ word: "red" }, { word: "big" }]));
    const found = await User.findAll({
      include: [{ model: Post, as: "posts", include: [{ model: Tag, as: "words" }] }],
      order: [[{ model: Post, as: "posts" }, "id", "ASC"], [{ model: Post, as: "posts" }, { model: Tag, as: "words" }, "word", "ASC"]],
    });
    assert.deepEqual(found.map((u) => u.posts.map((p) => [p.title, p.words.map((t) => t.word)])), [[["one", ["big", "red"]], ["two", []]]]);
    await user.destroy();
    assert.equal(await Post.count(), 0);
  }),
  include_with_limit: models(async ({ User, Post }) => {
    for (const name of ["a", "b", "c"]) await User.create({ name, posts: [{ title: "x" }, { title: "y" }] }, { include: "posts" });
    const { rows, count } = await User.findAndCountAll({ include: [{ model: Post, as: "posts", where: { title: "x" } }], limit: 2, offset: 1, order: ["id"], distinct: true });
    assert.deepEqual([count, rows.map((u) => [u.name, u.posts.length])], [3, [["b", 1], ["c", 1]]]);
  }),
  include_separate: models(async ({ User, Post }) => {
    for (const name of ["a", "b"]) await User.create({ name, posts: [{ title: "x" }, { title: "y" }, { title: "z" }] }, { include: "posts" });
    const users = await User.findAll({ include: [{ model: Post, as: "posts", separate: true, limit: 2, order: [["title", "DESC"]] }], order: ["id"] });
    assert.deepEqual(users.map((u) => u.posts.map((p) => p.title)), [["z", "y"], ["z", "y"]]);
  }),
  aggregates: models(async ({ sequelize, User, Post }) => {
    const user = await User.create({ name: "a" });
    await Post.bulkCreate([{ title: "x", views: 3, userId: user.id }, { title: "x", views: 4, userId: user.id }, { title: "y", views: 9 }]);
    assert.deepEqual([await Post.sum("views"), await Post.max("views")], [16, 9]);
    const rows = await Post.findAll({
      attributes: ["title", [sequelize.fn("SUM", sequelize.col("views")), "total"]], group: ["title"],
      having: sequelize.where(sequelize.fn("COUNT", "*"), Op.gte, 2), raw: true,
    });
    assert.deepEqual(rows, [{ title: "x", total: "7" }]);
  }),
  transactions: models(async ({ sequelize, User }) => {
    await sequelize.transaction(async (transaction) => { await User.create({ name: "a" }, { transaction }); });
    await assert.rejects(sequelize.transaction(async (transaction) => {
      await User.create({ name: "b" }, { transaction });
      throw new Error("no");
    }), /no/);
    assert.equal(await User.count(), 1);
  }),
  nested_transaction: models(async ({ sequelize, User }) => {
    const outer = await sequelize.transaction({ isolationLevel: Transaction.ISOLATION_LEVELS.REPEATABLE_READ });
    await User.create({ name: "a" }, { transaction: outer });
    const inner = await sequelize.transaction({ transaction: outer });
    await User.create({ name: "b" }, { transaction: inner });
    await inner.rollback();
    await outer.commit();
    assert.equal(await User.count(), 1);
  }),
  locks: models(async ({ sequelize, User }) => {
    await User.bulkCreate([{ name: "a" }, { name: "b" }]);
    const [one, two] = [await sequelize.transaction(), await sequelize.transaction()];
    await User.findByPk(1, { transaction: one, lock: one.LOCK.UPDATE });
    const rows = await User.findAll({ transaction: two, lock: true, skipLocked: true });
    assert.deepEqual(rows.map((u) => u.name), ["b"]);
    await Promise.all([one.rollback(), two.rollback()]);
  }),
  optimistic_locking: simple(async (sequelize) => {
    const T = sequelize.define("T", { a: DataTypes.INTEGER }, { version: true });
    await sequelize.sync();
    const made = await T.create({ a: 1 });
    const other = await T.findByPk(made.id);
    await made.update({ a: 2 });
    await assert.rejects(other.update({ a: 3 }), { name: "SequelizeOptimisticLockError" });
  }),
  paranoid: simple(async (sequelize) => {
    const T = sequelize.define("T", { a: DataTypes.INTEGER }, { paranoid: true });
    await sequelize.sync();
    const made = await T.create({ a: 1 });
    await made.destroy();
    assert.deepEqual([await T.count(), await T.count({ paranoid: false })], [0, 1]);
    await made.restore();
    assert.equal(await T.count(), 1);
  }),
  errors: models(async ({ User, Post }) => {
    await User.create({ name: "a", email: "a@b.cd" });
    const error = await fails(User.create({ name: "b", email: "a@b.cd" }), "23505");
    assert.ok(error instanceof UniqueConstraintError);
    assert.deepEqual([error.fields, error.errors[0].path], [{ email: "a@b.cd" }, "email"]);
    const missing = await fails(Post.create({ title: "x", userId: 99 }), "23503");
    assert.equal(missing.name, "SequelizeForeignKeyConstraintError");
  }),
  raw_queries: simple(async (sequelize) => {
    const rows = await sequelize.query("select :a::int as a, :b as b", { replacements: { a: 1, b: "x" }, type: QueryTypes.SELECT });
    assert.deepEqual(rows, [{ a: 1, b: "x" }]);
    const bound = await sequelize.query("select $a::int + 1 as n", { bind: { a: 4 }, type: QueryTypes.SELECT });
    assert.deepEqual(bound, [{ n: 5 }]);
  }),
  query_interface_changes: simple(async (sequelize, schema) => {
    const qi = sequelize.getQueryInterface();
    const table = { tableName: "t", schema };
    await qi.createTable(table, { id: { type: DataTypes.INTEGER, primaryKey: true, autoIncrement: true }, a: DataTypes.STRING });
    await qi.addColumn(table, "b", { type: DataTypes.INTEGER, allowNull: false, defaultValue: 1 });
    await qi.changeColumn(table, "a", { type: DataTypes.TEXT, allowNull: false });
    await qi.renameColumn(table, "a", "c");
    await qi.addIndex(table, ["c"], { name: "t_c", unique: true });
    await qi.addConstraint(table, { fields: ["b"], type: "check", name: "b_small", where: { b: { [Op.lt]: 10 } } });
    await qi.bulkInsert(table, [{ c: "x" }, { c: "y" }]);
    await fails(qi.bulkInsert(table, [{ c: "z", b: 11 }]), "23514");
    const columns = await qi.describeTable(table);
    assert.deepEqual([columns.c.type, columns.c.allowNull, columns.b.defaultValue], ["TEXT", false, "1"]);
    await qi.removeConstraint(table, "b_small");
    await qi.removeIndex(table, "t_c");
    await qi.removeColumn(table, "b");
    await qi.dropTable(table);
  }),
  change_column_to_enum_needs_do: simple(async (sequelize, schema) => {
    const qi = sequelize.getQueryInterface();
    await qi.createTable("t", { a: DataTypes.STRING });
    await qi.changeColumn("t", "a", { type: DataTypes.ENUM("x", "y") });
    await qi.bulkInsert("t", [{ a: "x" }]);
    const [row] = await sql(`select pg_typeof(a)::text as t from ${schema}.t`);
    assert.match(row.t, /enum_t_a/);
  }),
  migrations_by_umzug: simple(async (sequelize, schema) => {
    const umzug = new Umzug({
      migrations: [
        { name: "1", up: ({ context }) => context.createTable("t", { id: { type: DataTypes.INTEGER, primaryKey: true } }), down: ({ context }) => context.dropTable("t") },
        { name: "2", up: ({ context }) => context.addColumn("t", "a", DataTypes.DATE), down: ({ context }) => context.removeColumn("t", "a") },
      ],
      context: sequelize.getQueryInterface(),
      storage: new SequelizeStorage({ sequelize, schema }),
      logger: undefined,
    });
    assert.deepEqual((await umzug.up()).map((m) => m.name), ["1", "2"]);
    assert.deepEqual(await umzug.up(), []);
    await umzug.down();
    assert.deepEqual((await umzug.executed()).map((m) => m.name), ["1"]);
    await umzug.down({ to: 0 });
    assert.equal(await sequelize.getQueryInterface().tableExists({ tableName: "t", schema }), false);
  }),
};

await run("sequelize", version("sequelize"), cases);
