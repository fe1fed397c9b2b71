"""Roles and privileges beyond what PostgreSQL's answers say: restarts, warnings, passwords."""

import asyncio

import psycopg
import pytest

from coordinator.core.catalog import apply_changes, compacted, decode_changes
from coordinator.execute_rights import WARNINGS, verifier
from sql.catalog import Catalog
from storage.memory import MemoryObjectStore, MemoryStash
from storage.stash import Put
from storage.types import Timestamp
from tests.session.stack import serving

_STATE = (
    "select rolname, rolsuper, rolcanlogin, rolconnlimit from pg_roles where oid >= 16384"
    " order by 1",
    "select roleid::regrole::text, member::regrole::text, admin_option, inherit_option, set_option"
    " from pg_auth_members where roleid >= 16384 order by 1, 2",
)


def _state(dsn: str) -> list[object]:
    with psycopg.connect(dsn, autocommit=True) as one:
        return [one.execute(query.encode()).fetchall() for query in _STATE]


def test_roles_survive_also_in_a_compacted_history() -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    with serving(stash=stash, store=store) as dsn, psycopg.connect(dsn, autocommit=True) as one:
        one.execute("create role a superuser connection limit 3")
        one.execute("create role gone")
        one.execute("create user b password 'secret' in role a")
        one.execute("grant a to b with admin option")
        one.execute("drop role gone")
        one.execute("begin")
        one.execute("create role never")
        one.execute("revoke a from b")
        one.execute("rollback")
        before = _state(dsn)
    stash, store = stash.crash(), store.crash()
    records = asyncio.run(stash.scan("catalog"))
    assert not any(b"secret" in record for record in records.values())
    short, _ = compacted(records, Timestamp(1 << 62))
    kept = {write.key: write.value for write in short if isinstance(write, Put)}
    ((_, changes),) = decode_changes(kept)
    made = apply_changes(Catalog(), changes, version=1, replayed=True)
    assert sorted(role.name for role in made.roles.values()) == ["a", "b"]
    with serving(stash=stash, store=store) as dsn:
        assert _state(dsn) == before


def test_no_oid_is_given_twice_also_after_a_restart() -> None:
    """Sequences, types and roles count, too: tables were not alone when the last oid was given."""
    stash, store = MemoryStash(), MemoryObjectStore()
    seen: list[int] = []
    for kind in ("create sequence s", "create type e as enum ('x')", "create role r"):
        with serving(stash=stash, store=store) as dsn, psycopg.connect(dsn, autocommit=True) as one:
            one.execute(kind.encode())
            found = one.execute(
                "select oid from pg_class where oid >= 16384 union all"
                " select oid from pg_type where oid between 16384 and 1000000 union all"
                " select oid from pg_roles where oid >= 16384"
            ).fetchall()
            seen = [int(str(row[0])) for row in found]
        stash, store = stash.crash(), store.crash()
    assert len(seen) == len(set(seen)) == 4


def test_a_password_is_kept_as_a_verifier_and_never_shown() -> None:
    kept = verifier("secret", 4096)
    assert kept.startswith("SCRAM-SHA-256$4096:")
    assert verifier(kept, 5000) == kept
    assert verifier("secret", 4096) != kept
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as one:
        told: list[str | None] = []
        one.add_notice_handler(lambda notice: told.append(notice.message_primary))
        one.execute("create role a password 'secret'")
        assert told == [WARNINGS[1]]
        for query in (
            "select rolpassword from pg_authid where rolname = 'a'",
            "select rolpassword from pg_roles where rolname = 'a'",
        ):
            assert one.execute(query.encode()).fetchall() == [("********",)]


def test_who_may_not_log_in_is_not_let_in() -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as one:
        one.execute("create role a nologin")
        one.execute("create role b login")
        with pytest.raises(psycopg.OperationalError, match='"a" is not permitted to log in'):
            psycopg.connect(psycopg.conninfo.make_conninfo(dsn, user="a"))
        with psycopg.connect(psycopg.conninfo.make_conninfo(dsn, user="b")) as two:
            assert two.execute("select current_user").fetchall() == [("b",)]


def test_two_who_change_a_role_at_a_time_do_not_lose_it() -> None:
    with (
        serving() as dsn,
        psycopg.connect(dsn) as one,
        psycopg.connect(dsn, autocommit=True) as two,
    ):
        for name in ("a", "b", "c"):
            two.execute(f"create role {name}".encode())
        one.execute("grant a to b")
        two.execute("grant a to c")
        with pytest.raises(psycopg.errors.SerializationFailure):
            one.commit()
        one.rollback()
        one.execute("create table t (x int)")
        one.execute("grant c to b")
        two.execute("drop role b")
        with pytest.raises(psycopg.errors.SerializationFailure):
            one.commit()
        assert _state(dsn)[1] == [("a", "c", False, True, True)]
