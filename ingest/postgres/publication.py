"""Look at a publication: what it has, who publishes it, and whether it still is what it was.

    start ─ PublicationState ─▶ kept with the position ─▶ compared before each batch is given

PostgreSQL says nothing when a table leaves a publication: its rows are silently left out of the
stream. So rows of the catalogs are compared: an oid or xmin changes with every ALTER PUBLICATION.

INVARIANTS
  S2  a source is never read while its stash's commits wait for it: both would stand for ever.
  S3  a batch is given only after a check that began when its last commit had come.
  S5  positions mean something only within one system, database and history of timelines.
  W1  a check is one statement, so it sees one moment.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ingest.postgres.libpq_link import LibpqLink, quote_text
from ingest.postgres.pgoutput import format_lsn, parse_lsn
from ingest.postgres.upstream_types import KEY_HINT
from ingest.reader import ReaderFailure, UpstreamTable

_VERSION_MIN: Final = 140_000
_OPERATIONS: Final = "insert, update, delete, truncate"


@dataclass(frozen=True, slots=True)
class PublicationState:
    """One moment of a publication.

    `publication`: a text that changes when anything but its tables does. `tables`: the same of
    each table, by its oid, only those that are published; behind spaces its replica identity with
    its primary key, and how many columns it ever had. `synchronous`: upstream's
    synchronous_standby_names. `newest`: where its log ends.
    """

    publication: str
    tables: Mapping[int, str]
    synchronous: str
    newest: int = 0


async def fetch_state(
    link: LibpqLink, publication: str, relations: Sequence[int]
) -> PublicationState:
    """The state of now, for some relations (W1)."""
    schemas = _SCHEMAS if link.server_version >= _SCHEMAS_SINCE else ""
    name, oids = quote_text(publication), _oids(relations)
    rows = await link.query(_STATE.format(name=name, oids=oids, schemas=schemas))
    published, synchronous, newest = "", "", 0
    tables: dict[int, str] = {}
    for kind, oid, text in rows:
        if kind == "p":
            published = text or ""
        elif kind == "s":
            synchronous = text or ""
        elif kind == "n":
            newest = parse_lsn(text or "0/0")
        else:
            tables[int(oid or 0)] = text or ""
    return PublicationState(published, tables, synchronous, newest)


def _oids(relations: Sequence[int]) -> str:
    return "'{" + ",".join(map(str, relations)) + "}'::oid[]"


_STATE: Final = """
WITH p AS (SELECT oid, xmin, puballtables FROM pg_publication WHERE pubname = {name}),
entries AS (
    SELECT r.prrelid AS relation, 0 AS schema, 'r' || r.oid || '.' || r.xmin AS entry
    FROM pg_publication_rel r, p WHERE r.prpubid = p.oid{schemas})
SELECT 'p', NULL::oid, p.oid || '/' || p.xmin FROM p
UNION ALL SELECT 's', NULL, current_setting('synchronous_standby_names')
UNION ALL SELECT 'n', NULL, (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
                             ELSE pg_current_wal_lsn() END)::text
UNION ALL
SELECT 't', c.oid, c.relpersistence::text || coalesce(string_agg(e.entry, '/' ORDER BY e.entry), '')
    || ' ' || CASE c.relreplident WHEN 'i' THEN 'i-' ELSE c.relreplident::text || coalesce((
        SELECT min(k.oid::text) FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'p'
    ), '') END || ' ' || c.relnatts
FROM p, pg_class c LEFT JOIN entries e ON e.relation = c.oid OR e.schema = c.relnamespace
     OR EXISTS (SELECT FROM pg_class a WHERE a.oid IN (SELECT pg_partition_ancestors(c.oid))
                AND (e.relation = a.oid OR e.schema = a.relnamespace))
WHERE c.oid = ANY ({oids})
GROUP BY c.oid, c.relpersistence, c.relreplident, c.relnatts, p.puballtables
HAVING p.puballtables OR count(e.entry) > 0
"""
_SCHEMAS: Final = """
    UNION ALL SELECT 0, n.pnnspid, 's' || n.oid || '.' || n.xmin
    FROM pg_publication_namespace n, p WHERE n.pnpubid = p.oid"""
_SCHEMAS_SINCE: Final = 150_000


def check_state(
    publication: str,
    known: PublicationState,
    now: PublicationState,
    names: Mapping[int, str],
    after: int,
    keyed: Collection[int] = (),
) -> None:
    """S3: raises if a table of ours (`names` by oid) may have lost changes behind `after`; or
    rows, if it is `keyed` and its key no longer tells them apart.
    """
    where = f"somewhere after LSN {format_lsn(after)}"
    hint = "Changes may be missing: put it back upstream, then ALTER SOURCE .. RESNAPSHOT."
    if now.publication != known.publication:
        happened = "was altered" if now.publication else "was dropped"
        message = f'publication "{publication}" {happened} upstream {where}'
        raise ReaderFailure("55000", message, hint=hint, broken=True)
    for oid, name in names.items():
        entry, identity, _ = _parts(now, oid)
        entry_before, identity_before, _ = _parts(known, oid)
        if entry != entry_before or oid not in now.tables:
            message = f'table {name} left publication "{publication}" {where}'
            raise ReaderFailure("55000", message, hint=hint, broken=True)
        if oid in keyed and _is_key_lost(identity_before, identity):
            message = f"the key of table {name} was dropped or changed upstream {where}"
            raise ReaderFailure("55000", message, hint=KEY_HINT, broken=True)


def _parts(state: PublicationState, oid: int) -> tuple[str, str, int]:
    """Of a table: how it is published, its identity, and how many columns it ever had."""
    entry, identity, width = (*state.tables.get(oid, "").split(" "), "", "")[:3]
    return entry, identity, int(width or 0)


async def check_columns(
    link: LibpqLink,
    known: PublicationState,
    now: PublicationState,
    tables: Mapping[int, UpstreamTable],
    after: int,
) -> None:
    """Raises if a column of ours is another one by now, of the same name: the stream does not tell
    the values that it has in the rows of before.
    """
    before = {oid: _parts(known, oid)[2] for oid in tables}
    grown = [oid for oid in tables if before[oid] and _parts(now, oid)[2] > before[oid]]
    if not grown:
        return
    rows = await link.query(
        "SELECT attrelid, attnum, attname FROM pg_attribute "
        f"WHERE attrelid = ANY ({_oids(grown)}) AND attnum > 0 AND NOT attisdropped"
    )
    for oid, place, name in rows:
        table = tables[int(oid or 0)]
        if int(place or 0) > before[int(oid or 0)] and any(c.name == name for c in table.columns):
            message = (
                f'column "{name}" of {table.reference} was made anew upstream somewhere after LSN '
                f"{format_lsn(after)}"
            )
            hint = f'ALTER SOURCE .. RESNAPSHOT; or ALTER TABLE .. DROP COLUMN "{name}".'
            raise ReaderFailure("55000", message, hint=hint, broken=True)


def _is_key_lost(before: str, now: str) -> bool:
    """With REPLICA IDENTITY FULL, rows do not say what their key is; otherwise their shape does."""
    return bool(before) and now.startswith("f") and now[1:] != before[1:]


@dataclass(frozen=True, slots=True)
class SystemIdentity:
    """IDENTIFY_SYSTEM. `newest`: where its log ends."""

    system: str
    timeline: int
    newest: int
    database: str


async def identify_system(replication: LibpqLink) -> SystemIdentity:
    """Who upstream is; on a replication connection."""
    ((system, timeline, newest, database),) = await replication.query("IDENTIFY_SYSTEM")
    assert system is not None, "IDENTIFY_SYSTEM tells the system"
    return SystemIdentity(system, int(timeline or 0), parse_lsn(newest or "0/0"), database or "")


async def check_system(
    replication: LibpqLink, known: Mapping[str, str], after: int
) -> SystemIdentity:
    """S5: upstream is the one that `after` is a position of. Raises with `broken`."""
    now = await identify_system(replication)
    hint = "ALTER SOURCE .. RESNAPSHOT takes in what this server has."
    if (now.system, now.database) != (known["system"], known["database"]):
        message = "another server or database is at the address of upstream"
        raise ReaderFailure("55000", message, hint=hint, broken=True)
    if now.newest < after:
        message = (
            f"upstream ends at LSN {format_lsn(now.newest)}, before what was taken in up to "
            f"{format_lsn(after)}: it was restored, or promoted without its last commits"
        )
        raise ReaderFailure("55000", message, hint=hint, broken=True)
    timeline = int(known["timeline"])
    if now.timeline < timeline:
        message = f"upstream is on timeline {now.timeline}, and was on {timeline}"
        raise ReaderFailure("55000", message, hint=hint, broken=True)
    if now.timeline > timeline:
        ((_, history),) = await replication.query(f"TIMELINE_HISTORY {now.timeline}")
        left_at = left_timeline(history or "", timeline)
        if left_at is None or left_at < after:
            left = "never" if left_at is None else f"at LSN {format_lsn(left_at)}"
            message = (
                f"upstream left timeline {timeline} {left}, before what was taken in up to "
                f"{format_lsn(after)}"
            )
            raise ReaderFailure("55000", message, hint=hint, broken=True)
    return now


def names_standby(synchronous: str, name: str) -> bool:
    """Whether synchronous_standby_names has a source: upstream's commits may wait for it."""
    found = {one.strip('"').lower() for one in _STANDBYS.findall(synchronous)}
    return not found.isdisjoint({"*", name.lower()})


_STANDBYS: Final = re.compile(r'"[^"]*"|[^\s,()"]+')
"""Names, and some words that no source is called."""


def check_stash(stash: str, system: str, synchronous: str, name: str) -> None:
    """S2: raises if commits of the stash would wait for the source that they are for. `stash`: the
    system identifier of its cluster; empty: it is in none.
    """
    if stash and stash == system and names_standby(synchronous, name):
        raise ReaderFailure(
            "55000",
            "upstream is in the cluster of the stash, and its commits wait for this source: both "
            "would wait for each other",
            hint="Take the source out of synchronous_standby_names upstream, or move the stash to "
            "another cluster.",
            broken=True,
        )


def left_timeline(history: str, timeline: int) -> int | None:
    """Where a history file says that a timeline was left; None if it is not in it."""
    for line in history.splitlines():
        fields = line.split()
        if len(fields) >= 2 and fields[0] == str(timeline):
            return parse_lsn(fields[1])
    return None


async def check_publication(link: LibpqLink, publication: str) -> None:
    """That upstream can be read at all. Raises with the SQL to run there."""
    if link.server_version < _VERSION_MIN:
        raise ReaderFailure("0A000", "upstream is older than PostgreSQL 14")
    ((wal_level, can_replicate),) = await link.query(
        "SELECT current_setting('wal_level'), (rolreplication OR rolsuper)::text FROM pg_roles "
        "WHERE rolname = current_user"
    )
    if wal_level != "logical":
        raise ReaderFailure(
            "55000",
            f"wal_level of upstream is {wal_level}, and has to be logical",
            hint="Upstream: ALTER SYSTEM SET wal_level = logical; then restart it.",
            broken=True,
        )
    if can_replicate != "true":
        raise ReaderFailure(
            "42501",
            "the role of the connection may not replicate",
            hint="Upstream: ALTER ROLE .. REPLICATION.",
            broken=True,
        )
    name = quote_text(publication)
    rows = await link.query(
        "SELECT (pubinsert AND pubupdate AND pubdelete AND pubtruncate)::text "
        f"FROM pg_publication WHERE pubname = {name}"
    )
    if not rows:
        raise ReaderFailure(
            "42704",
            f'publication "{publication}" does not exist upstream',
            hint="Upstream: CREATE PUBLICATION .. FOR TABLE ..",
            broken=True,
        )
    if rows[0][0] != "true":
        raise ReaderFailure(
            "0A000",
            f'publication "{publication}" leaves out some kinds of changes',
            hint=f"Upstream: ALTER PUBLICATION .. SET (publish = '{_OPERATIONS}').",
            broken=True,
        )
