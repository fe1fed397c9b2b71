"""node-postgres: levels, LISTEN and NOTIFY by its events, parameters, errors."""

import json
import shutil
from pathlib import Path

import pytest

from tests.clients.drivers.levels import EXPLAIN, STRICT, named_level
from tests.clients.drivers.node import fetch_driver, run_program

LISTENS = """
const { Client, Pool } = require('pg')
async function main(connectionString) {
  const listening = new Client({ connectionString })
  const telling = new Pool({ connectionString })
  await listening.connect()
  const heard = []
  const all = new Promise(resolve => listening.on('notification', told => {
    heard.push([told.processId, told.channel, told.payload])
    if (told.payload === 'last') resolve()
  }))
  await listening.query('LISTEN node_jobs')
  const client = await telling.connect()
  const pid = (await client.query('SELECT pg_backend_pid() AS pid')).rows[0].pid
  await client.query('BEGIN')
  await client.query("NOTIFY node_jobs, '1'")
  await client.query("SELECT pg_notify('node_jobs', $1)", ['2'])
  await client.query("NOTIFY node_jobs, '1'")
  await client.query('COMMIT')
  await client.query('BEGIN')
  await client.query("NOTIFY node_jobs, 'rolled back'")
  await client.query('ROLLBACK')
  const refused = await client.query("SELECT pg_notify('', 'x')").catch(error => error.code)
  await client.query("NOTIFY node_jobs, 'last'")
  await all
  client.release()
  await telling.end()
  await listening.end()
  console.log(JSON.stringify({ pid, heard, refused }))
}
main(process.argv[1])
"""


@pytest.fixture(scope="module")
def node() -> Path:
    """Where the driver is."""
    if shutil.which("node") is None:
        pytest.skip("there is no Node.js")
    folder = fetch_driver()
    if folder is None:
        pytest.fail("node-postgres is not cached and cannot be fetched")
    return folder


def test_notifications_are_events(node: Path, dsn: str) -> None:
    told = json.loads(run_program(node, LISTENS, dsn))
    payloads = [[told["pid"], "node_jobs", payload] for payload in ("1", "2", "last")]
    assert told == {"pid": told["pid"], "heard": payloads, "refused": "22023"}


LEVELS = """
const { Client } = require('pg')
async function main(connectionString, explain) {
  const client = new Client({ connectionString })
  await client.connect()
  const one = async text => Object.values((await client.query(text)).rows[0])[0]
  const shown = await one('SHOW transaction_isolation')
  const levels = []
  for (const level of [shown, 'read committed', shown]) {
    await client.query(`SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL ${level}`)
    levels.push([await one('SHOW transaction_isolation'),
      (await client.query(explain)).rows.map(row => Object.values(row)[0])])
  }
  await client.query(`BEGIN ISOLATION LEVEL ${shown}`)
  const lines = (await client.query(explain)).rows.map(row => Object.values(row)[0])
  await client.query('COMMIT')
  await client.end()
  console.log(JSON.stringify({ shown, levels, lines }))
}
main(...process.argv.slice(1))
"""


def test_a_level_that_is_read_and_set_back_is_strict(node: Path, dsn: str) -> None:
    told = json.loads(run_program(node, LEVELS, dsn, EXPLAIN))
    assert told["shown"] == "serializable"
    shown = [(name, named_level(lines)) for name, lines in told["levels"]]
    strict = ("serializable", STRICT)
    assert shown == [strict, ("read committed", "read committed"), strict]
    assert named_level(told["lines"]) == STRICT
