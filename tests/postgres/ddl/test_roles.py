"""Roles and privileges beyond what PostgreSQL's answers say: restarts, warnings, passwords."""

import asyncio
from typing import Any

import psycopg
import pytest

from coordinator.core.catalog import apply_changes, compact_history, decode_changes
from coordinator.execution.grant import NOT_ENFORCED
from sql.catalog.catalog import Catalog
from storage.memory import MemoryObjectStore, MemoryStash
from storage.stash import Put
from storage.types import Timestamp
from tests.support.stack import serving

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
    short, _ = compact_history(records, Timestamp(1 << 62))
    kept = {write.key: write.value for write in short if isinstance(write, Put)}
    ((_, changes),) = decode_changes(kept)
    made = apply_changes(Catalog(), changes, version=1, replayed=True)
    assert sorted(role.name for role in made.roles.values()) == ["a", "b"]
    with serving(stash=stash, store=store) as dsn:
        assert _state(dsn) == before


def test_a_password_is_kept_as_a_verifier_that_only_superusers_see() -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as one:
        told: list[str | None] = []
        one.add_notice_handler(lambda notice: told.append(notice.message_primary))
        one.execute("create role a password 'secret'")
        assert told == []
        assert _passwords(one, "pg_roles") == ["********"]
        (verifier,) = _passwords(one, "pg_authid")
        assert str(verifier).startswith("SCRAM-SHA-256$4096:")
        one.execute(f"create role b password '{verifier}'".encode())
        one.execute("set role b")
        assert _passwords(one, "pg_authid") == ["********"]
        one.execute("reset role")
        shadow = one.execute("select passwd from pg_shadow where usename = 'a'").fetchall()
        assert shadow == []
        one.execute("alter role a login")
        shadow = one.execute("select passwd from pg_shadow where usename = 'a'").fetchall()
        assert shadow == [(verifier,)]


def _passwords(connection: "psycopg.Connection[Any]", relation: str) -> list[object]:
    found = connection.execute(
        f"select rolpassword from {relation} where rolname = 'a'".encode()
    ).fetchall()
    return [password for (password,) in found]


def test_a_session_stays_the_role_that_it_has_become() -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as one:
        one.execute("create role a superuser; create role gone superuser")
        with psycopg.connect(dsn, autocommit=True) as two:
            two.execute("set role a")
            then = two.execute("select meridian_now()").fetchone()
            one.execute("alter role a rename to b; create role a")
            two.execute("create table t (n int)")
            assert two.execute("select current_user").fetchone() == ("b",)
            owner = "select relowner::regrole::text from pg_class where relname = 't'"
            assert two.execute(owner.encode()).fetchone() == ("b",)
            assert then is not None
            past = f"select current_user as of {then[0]}"
            assert two.execute(past.encode()).fetchone() == ("a",)
            two.execute("set role gone")
            one.execute("drop role gone; create role gone superuser")
            with pytest.raises(psycopg.errors.UndefinedObject, match="invalid role OID"):
                two.execute("create table u (n int)")
            assert two.execute("show is_superuser").fetchone() == ("on",)
            two.execute("reset role; create table u (n int)")


def test_what_an_earlier_transaction_read_hides_no_role() -> None:
    with serving() as dsn, psycopg.connect(dsn) as one:
        one.execute("select * from pg_roles")
        with psycopg.connect(dsn, autocommit=True) as two:
            two.execute("create role new")
        one.execute("set role new")
        assert one.execute("select current_user").fetchone() == ("new",)
        # But it could own nothing at that time.
        with pytest.raises(psycopg.errors.SerializationFailure, match="newer than the snapshot"):
            one.execute("create table t (n int)")
        one.rollback()
        one.execute("set role new; create table t (n int)")
        one.commit()
        owner = one.execute("select relowner::regrole::text from pg_class where relname = 't'")
        assert owner.fetchone() == ("new",)


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


_RIGHTS = (
    "select relname, relowner::regrole::text, relacl from pg_class where oid >= 16384 order by 1",
    "select attname, attacl from pg_attribute where attacl is not null order by 1",
    "select nspname, nspowner::regrole::text, nspacl from pg_namespace where nspname ~ '^n'",
    "select defaclobjtype, defaclacl from pg_default_acl order by 1",
    "select datacl from pg_database",
)


def _rights(dsn: str) -> list[object]:
    with psycopg.connect(dsn, autocommit=True) as one:
        return [one.execute(query.encode()).fetchall() for query in _RIGHTS]


def test_owners_and_privileges_survive_also_in_a_compacted_history() -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    with serving(stash=stash, store=store) as dsn, psycopg.connect(dsn, autocommit=True) as one:
        for statement in (
            "create role a",
            "create role b",
            "create table t (x int, y int)",
            "grant select on t to a with grant option",
            "grant update (y) on t to b",
            "create schema n",
            "alter schema n rename to n2",
            "alter schema n2 owner to b",
            "alter default privileges grant select on tables to a",
            "create table u (x int)",
            "alter table t owner to a",
            "grant connect on database meridian to a",
            "create table gone (x int)",
            "grant all on gone to b",
            "drop table gone",
        ):
            one.execute(statement.encode())
        before = _rights(dsn)
    stash, store = stash.crash(), store.crash()
    records = asyncio.run(stash.scan("catalog"))
    short, _ = compact_history(records, Timestamp(1 << 62))
    kept = {write.key: write.value for write in short if isinstance(write, Put)}
    ((_, changes),) = decode_changes(kept)
    made = apply_changes(Catalog(), changes, version=1, replayed=True)
    with serving(stash=stash, store=store) as dsn, psycopg.connect(dsn, autocommit=True) as one:
        assert _rights(dsn) == before
        assert len(made.rights) == 6
        with pytest.raises(psycopg.errors.DependentObjectsStillExist):
            one.execute("drop role a")


def test_who_grants_is_told_once_that_nothing_is_enforced() -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as one:
        told: list[tuple[str | None, str | None, str | None]] = []
        one.add_notice_handler(
            lambda n: told.append((n.severity_nonlocalized, n.sqlstate, n.message_primary))
        )
        one.execute("create table t (x int)")
        one.execute("create role a")
        one.execute("alter table t owner to a")
        assert not told
        for statement in (
            "grant select, insert (x) on t to a, public",
            "revoke all on t from a",
            "alter default privileges grant select on tables to a",
        ):
            one.execute(statement.encode())
            assert told == [("WARNING", "01000", NOT_ENFORCED)]
            told.clear()


def test_a_grant_and_a_drop_of_the_role_do_not_both_commit() -> None:
    with (
        serving() as dsn,
        psycopg.connect(dsn) as one,
        psycopg.connect(dsn, autocommit=True) as two,
    ):
        two.execute("create table t (x int)")
        two.execute("create role a")
        two.execute("create role b")
        one.execute("grant select on t to a")
        two.execute("drop role a")
        with pytest.raises(psycopg.errors.SerializationFailure):
            one.commit()
        one.rollback()
        one.execute("grant select on t to b")
        two.execute("grant insert on t to b")
        with pytest.raises(psycopg.errors.SerializationFailure):
            one.commit()
        found = two.execute("select relacl from pg_class where relname = 't'").fetchall()
        assert found == [(["meridian=arwdDxtm/meridian", "b=a/meridian"],)]


def test_grants_that_lead_in_a_circle_do_not_both_commit() -> None:
    with (
        serving() as dsn,
        psycopg.connect(dsn) as one,
        psycopg.connect(dsn, autocommit=True) as two,
    ):
        for name in (b"a", b"b", b"c"):
            two.execute(b"create role " + name)
        two.execute("grant a to b")
        one.execute("grant b to c")
        two.execute("grant c to a")
        with pytest.raises(psycopg.errors.SerializationFailure):
            one.commit()
        with pytest.raises(psycopg.errors.InvalidGrantOperation):
            two.execute("grant b to c")


def test_what_a_role_makes_is_its_own() -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as one:
        one.execute("create role b login")
        with psycopg.connect(psycopg.conninfo.make_conninfo(dsn, user="b"), autocommit=True) as two:
            two.execute("create table mine (x serial)")
            two.execute("create table also as select 1 as x")
            two.execute("create schema own")
        owned = one.execute(
            "select relname, relowner::regrole::text from pg_class where relnamespace = 2200"
            " union all select nspname, nspowner::regrole::text from pg_namespace"
            " where nspname = 'own' order by 1"
        ).fetchall()
        assert owned == [(name, "b") for name in ("also", "mine", "mine_x_seq", "own")]
