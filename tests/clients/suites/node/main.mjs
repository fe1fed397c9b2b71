// Runs the programs of the clients named, or of all; each is a process of its own.

import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";

const here = new URL(".", import.meta.url).pathname;
const all = readdirSync(`${here}clients`)
  .filter((name) => name.endsWith(".mjs"))
  .map((name) => name.slice(0, -4))
  .sort();
const names = process.argv.length > 2 ? process.argv.slice(2) : all;
for (const name of names) {
  const done = spawnSync(process.execPath, [`${here}clients/${name}.mjs`], {
    cwd: here,
    stdio: ["ignore", "inherit", "inherit"],
    timeout: 300_000,
  });
  if (done.status !== 0) console.error(`${name}: ended with ${done.status ?? done.signal}`);
}
