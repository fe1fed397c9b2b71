// Runs the cases of one client, one after the other, and prints a line of JSON for each.
//
// INVARIANTS
//   S1  nothing but these lines goes to stdout; whatever tools chatter goes to stderr.
//   S2  a case that fails or hangs never stops those after it.
//   S3  each case has a schema of its own, which is made afresh before it begins.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import pg from "pg";

const CASE_MS = 30_000;
const write = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);
console.log = console.info = console.debug = console.error;
process.on("unhandledRejection", (error) => console.error("unhandled:", error));
process.on("uncaughtException", (error) => console.error("uncaught:", error));

export { assert };

/** Where the server is. */
export const server = {
  host: process.env.PGHOST || "127.0.0.1",
  port: Number(process.env.PGPORT || 5432),
  user: process.env.PGUSER || "postgres",
  password: process.env.PGPASSWORD || undefined,
  database: process.env.PGDATABASE || "postgres",
};

const secret = server.password ? `:${encodeURIComponent(server.password)}` : "";

/** The server as a connection string. */
export const url =
  `postgresql://${server.user}${secret}@${server.host}:${server.port}/${server.database}`;

/** The pinned version of an installed package. */
export function version(name) {
  const file = new URL(`./node_modules/${name}/package.json`, import.meta.url);
  return JSON.parse(readFileSync(file, "utf8")).version;
}

/** Statements on a connection of node-postgres: what a case needs beside its own client. */
export async function sql(...statements) {
  const client = new pg.Client(server);
  await client.connect();
  try {
    let result;
    for (const statement of statements) result = await client.query(statement);
    return result.rows;
  } finally {
    await client.end();
  }
}

/** Asserts that a promise fails with an SQLSTATE, and returns the error. */
export async function fails(promise, code) {
  let error;
  try {
    await promise;
  } catch (caught) {
    error = caught;
  }
  assert.ok(error, `no error, wanted ${code}`);
  assert.equal(sqlstate(error), code, error.message);
  return error;
}

const WRAPPERS = ["original", "parent", "driverError", "nativeError", "cause", "previous", "meta"];

/** The SQLSTATE of an error, also of one that an ORM has wrapped. */
export function sqlstate(error) {
  for (const key of WRAPPERS) {
    const inner = error?.[key];
    const found = inner && inner !== error ? sqlstate(inner) : undefined;
    if (found) return found;
  }
  const code = error?.originalCode ?? error?.code;
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

function reasonOf(error) {
  const state = sqlstate(error);
  const message = String(error?.message ?? error).split("\n").filter(Boolean);
  const inner = error?.cause?.message ?? error?.original?.message;
  let text = (error instanceof assert.AssertionError ? message.slice(0, 12).join(" ") : message[0]) ?? "";
  if (inner && !text.includes(inner)) text = `${inner.split("\n")[0]} <- ${text}`;
  return `${state ? `${state}: ` : ""}${text}`.slice(0, 400);
}

function withLimit(promise, name) {
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`time-out of 30 s: ${name}`)), CASE_MS);
  });
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}

/**
 * Runs cases: an object of functions, each called with the name of its own empty schema (S3).
 * Ends the process, because a case that failed may have left a connection open.
 */
export async function run(client, release, cases) {
  const only = process.env.ONLY;
  for (const [name, body] of Object.entries(cases)) {
    if (only && !name.match(only)) continue;
    const schema = `c_${client}_${name}`.replace(/[^a-z0-9]+/gi, "_").toLowerCase().slice(0, 60);
    const line = { client, version: release, case: name, ok: true, reason: "" };
    try {
      await sql(`drop schema if exists "${schema}" cascade`, `create schema "${schema}"`);
      await withLimit(body(schema), name);
    } catch (error) {
      line.ok = false;
      line.reason = reasonOf(error);
      if (process.env.TRACE) console.error(error);
    }
    write(`${JSON.stringify(line)}\n`);
    await sql(`drop schema if exists "${schema}" cascade`).catch((error) => {
      console.error(`${client} ${name}: schema is not dropped: ${error.message}`);
    });
  }
  process.exit(0);
}
