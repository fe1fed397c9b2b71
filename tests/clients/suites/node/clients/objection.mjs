// Objection: models over knex.

import knexLibrary from "knex";
import objection from "objection";
import { assert, run, server, version } from "../harness.mjs";

const { ForeignKeyViolationError, Model, UniqueViolationError, raw, ref, transaction } = objection;

/** A case that gets bound models of persons, their children, pets and films. */
const simple = (body) => async (schema) => {
  const knex = knexLibrary({ client: "pg", connection: { ...server }, searchPath: [schema], pool: { min: 0, max: 4 } });
  class Pet extends Model {
    static tableName = "pets";
  }
  class Film extends Model {
    static tableName = "films";
  }
  class Person extends Model {
    static tableName = "persons";
    static jsonSchema = { type: "object", required: ["name"], properties: { name: { type: "string" }, address: { type: "object" } } };
    static relationMappings = {
      parent: { relation: Model.BelongsToOneRelation, modelClass: Person, join: { from: "persons.parent_id", to: "persons.id" } },
      children: { relation: Model.HasManyRelation, modelClass: Person, join: { from: "persons.id", to: "persons.parent_id" } },
      pets: { relation: Model.HasManyRelation, modelClass: Pet, join: { from: "persons.id", to: "pets.owner_id" } },
      films: { relation: Model.ManyToManyRelation, modelClass: Film, join: { from: "persons.id", through: { from: "persons_films.person_id", to: "persons_films.film_id" }, to: "films.id" } },
    };
  }
  for (const model of [Pet, Film, Person]) model.knex(knex);
  try {
    await knex.schema.createTable("persons", (t) => { t.increments(); t.string("name").notNullable(); t.integer("age"); t.jsonb("address"); t.integer("parent_id").references("persons.id"); });
    await knex.schema.createTable("pets", (t) => { t.increments(); t.string("name").unique(); t.integer("owner_id").references("persons.id").onDelete("CASCADE"); });
    await knex.schema.createTable("films", (t) => { t.increments(); t.string("title"); });
    await knex.schema.createTable("persons_films", (t) => { t.integer("person_id").references("persons.id").onDelete("CASCADE"); t.integer("film_id").references("films.id").onDelete("CASCADE"); t.primary(["person_id", "film_id"]); });
    await body({ knex, Person, Pet, Film });
  } finally {
    await knex.destroy();
  }
};

const graph = {
  name: "ada", age: 50, address: { city: "Oslo", zip: [1, 2] },
  children: [{ name: "bob", age: 20, pets: [{ name: "rex" }, { name: "kit" }] }, { name: "cy", age: 10 }],
  films: [{ title: "one" }, { title: "two" }],
};

const filled = (body) => simple(async (models) => {
  await models.Person.query().insertGraph(graph);
  await body(models);
});

const cases = {
  insert_and_find: simple(async ({ Person }) => {
    const made = await Person.query().insertAndFetch({ name: "ada", address: { city: "Oslo" } });
    assert.deepEqual(made.toJSON(), { id: 1, name: "ada", age: null, address: { city: "Oslo" }, parent_id: null });
    assert.equal((await Person.query().findById(1).throwIfNotFound()).name, "ada");
  }),
  insert_many: simple(async ({ Film }) => {
    const made = await Film.query().insert([{ title: "a" }, { title: "b" }]).returning("*");
    assert.deepEqual(made.map((f) => [f.id, f.title]), [[1, "a"], [2, "b"]]);
  }),
  insert_graph: filled(async ({ Person, Pet }) => assert.deepEqual([await Person.query().resultSize(), await Pet.query().resultSize()], [3, 2])),
  with_graph_fetched: filled(async ({ Person }) => {
    const [ada] = await Person.query().where("name", "ada").withGraphFetched("[children(byName).pets, films]").modifiers({ byName: (q) => q.orderBy("name") });
    assert.deepEqual([ada.children.map((c) => [c.name, c.pets.length]), ada.films.length], [[["bob", 2], ["cy", 0]], 2]);
  }),
  with_graph_joined: filled(async ({ Person }) => {
    const [ada] = await Person.query().withGraphJoined("children.pets").where("children:pets.name", "rex");
    assert.deepEqual(ada.children.map((c) => c.pets.map((p) => p.name)), [["rex"]]);
  }),
  upsert_graph: filled(async ({ Person, Pet }) => {
    await Person.query().upsertGraph({ id: 2, pets: [{ id: 1, name: "max" }, { name: "new" }] });
    assert.deepEqual((await Pet.query().orderBy("id")).map((p) => p.name), ["max", "new"]);
  }),
  relate_and_unrelate: filled(async ({ Person, Film }) => {
    const bob = await Person.query().findById(2);
    await bob.$relatedQuery("films").relate(1);
    assert.equal(await bob.$relatedQuery("films").resultSize(), 1);
    assert.equal(await Person.relatedQuery("films").for(1).unrelate().where("title", "two"), 1);
    assert.equal(await Film.query().resultSize(), 2);
  }),
  patch_and_delete: filled(async ({ Person, Pet }) => {
    const patched = await Person.query().patchAndFetchById(2, { age: 21 });
    assert.equal(patched.age, 21);
    assert.deepEqual((await Person.query().patch({ age: raw("age + 1") }).where("age", ">", 20).returning("age").orderBy("id")).map((p) => p.age).sort(), [22, 51]);
    assert.equal(await Person.query().deleteById(2), 1);
    assert.equal(await Pet.query().resultSize(), 0);
  }),
  json_paths: filled(async ({ Person }) => {
    assert.equal(await Person.query().where(ref("address:city").castText(), "Oslo").resultSize(), 1);
    await Person.query().findById(1).patch({ "address:city": "Rome" });
    assert.deepEqual((await Person.query().findById(1)).address, { city: "Rome", zip: [1, 2] });
    assert.equal(await Person.query().whereJsonSupersetOf("address", { city: "Rome" }).resultSize(), 1);
  }),
  where_exists: filled(async ({ Person }) => {
    assert.deepEqual((await Person.query().whereExists(Person.relatedQuery("pets"))).map((p) => p.name), ["bob"]);
  }),
  sub_queries: filled(async ({ Person }) => {
    const rows = await Person.query().select("name", Person.relatedQuery("pets").count().as("n")).orderBy("name");
    assert.deepEqual(rows.map((r) => [r.name, r.n]), [["ada", "0"], ["bob", "2"], ["cy", "0"]]);
  }),
  page_and_range: filled(async ({ Person }) => {
    const { results, total } = await Person.query().orderBy("age").page(1, 2);
    assert.deepEqual([results.map((p) => p.name), total], [["ada"], 3]);
  }),
  aggregates: filled(async ({ Person }) => {
    const [row] = await Person.query().max("age as m").sum("age as s").count("parent_id as c");
    assert.deepEqual(row.toJSON(), { m: 50, s: "80", c: "2" });
  }),
  upsert: filled(async ({ Pet }) => {
    await Pet.query().insert({ name: "rex", owner_id: 1 }).onConflict("name").merge();
    assert.equal((await Pet.query().findOne({ name: "rex" })).owner_id, 1);
  }),
  transactions: filled(async ({ knex, Person, Film }) => {
    await assert.rejects(Person.transaction(async (trx) => { await Film.query(trx).insert({ title: "x" }); throw new Error("no"); }), /no/);
    await transaction(Person, Film, async (P, F) => { await F.query().insert({ title: "y" }); await P.query().findById(1).forUpdate(); });
    const trx = await knex.transaction();
    await Film.query(trx).delete();
    await trx.rollback();
    assert.equal(await Film.query().resultSize(), 3);
  }),
  errors: filled(async ({ Pet }) => {
    const error = await Pet.query().insert({ name: "rex" }).catch((e) => e);
    assert.ok(error instanceof UniqueViolationError);
    assert.deepEqual([error.constraint, error.columns], ["pets_name_unique", ["name"]]);
    assert.ok((await Pet.query().insert({ owner_id: 99 }).catch((e) => e)) instanceof ForeignKeyViolationError);
  }),
  recursive: filled(async ({ Person }) => {
    const rows = await Person.query().withRecursive("line", (q) => {
      q.select("id", "name").from("persons").where("id", 1).union((u) => u.select("p.id", "p.name").from("persons as p").join("line", "line.id", "p.parent_id"));
    }).select("name").from("line").orderBy("name");
    assert.deepEqual(rows.map((r) => r.name), ["ada", "bob", "cy"]);
  }),
};
await run("objection", version("objection"), cases);
