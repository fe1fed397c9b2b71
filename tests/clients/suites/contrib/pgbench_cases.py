"""pgbench: it makes its tables and runs its scripts."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

from tests.clients.suites.contrib.places import equal, remote, rows, value, version
from tests.clients.suites.python.clients.cases import Cases
from tests.support.servers import postgres_program

cases = Cases("pgbench", version(), 120)


def _pgbench(*options: str, fails: bool = False) -> str:
    done = subprocess.run(
        [postgres_program("pgbench"), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert (done.returncode != 0) == fails, done.stdout.splitlines()[-1]
    return done.stdout


def _ran(said: str, transactions: int) -> None:
    found = re.search(r"transactions actually processed: (\d+)", said)
    assert found, said
    equal(int(found[1]), transactions)
    assert "number of failed transactions: 0 (" in said, said


def _fresh() -> None:
    _pgbench("-i", "-q")


def _balanced() -> None:
    """What the scripts keep true."""
    sums = """select (select sum(abalance) from pgbench_accounts),
        (select sum(bbalance) from pgbench_branches), (select sum(tbalance) from pgbench_tellers),
        (select sum(delta) from pgbench_history)"""
    with remote() as c:
        found = set(rows(c, sums)[0])
    assert len(found) == 1, f"sums differ: {found}"


@cases.case
def initializes() -> None:
    """The default steps: dtgvp."""
    _fresh()
    with remote() as c:
        equal(value(c, "select count(*) from pgbench_accounts"), 100_000)
        equal(value(c, "select count(*) from pgbench_tellers"), 10)
        keys = "select count(*) from pg_index where indrelid::regclass::text like 'pgbench%'"
        equal(value(c, keys), 3)


@cases.case
def initializes_on_the_server() -> None:
    """Steps dtGvp: rows of generate_series."""
    _pgbench("-i", "-q", "-I", "dtGvp")
    with remote() as c:
        equal(value(c, "select count(*) from pgbench_accounts"), 100_000)


@cases.case
def initializes_with_foreign_keys() -> None:
    """Steps dtgvpf."""
    _pgbench("-i", "-q", "--foreign-keys")
    keys = "select count(*) from pg_constraint where contype = 'f' and conname like 'pgbench%'"
    with remote() as c:
        equal(value(c, keys), 5)
    _pgbench("-i", "-I", "d")


@cases.case
def initializes_partitions_needs_partitions() -> None:
    """Partitions by hash."""
    _pgbench("-i", "-q", "--partitions=3", "--partition-method=hash")
    _ran(_pgbench("-n", "-t", "5", "-S"), 5)


@cases.case
def initializes_unlogged() -> None:
    """Unlogged tables, with a fill factor."""
    _pgbench("-i", "-q", "--unlogged-tables", "-F", "90")
    with remote() as c:
        equal(value(c, "select count(*) from pgbench_accounts"), 100_000)


@cases.case
def runs_the_default_script() -> None:
    """tpcb-like, with its vacuums before."""
    _fresh()
    _ran(_pgbench("-t", "20"), 20)
    _balanced()


@cases.case
def runs_selects() -> None:
    """-S."""
    _fresh()
    _ran(_pgbench("-n", "-S", "-t", "100"), 100)


@cases.case
def runs_simple_updates() -> None:
    """-N."""
    _fresh()
    _ran(_pgbench("-n", "-N", "-t", "20"), 20)


@cases.case
def runs_prepared() -> None:
    """-M prepared."""
    _fresh()
    _ran(_pgbench("-n", "-M", "prepared", "-t", "20"), 20)
    _ran(_pgbench("-n", "-M", "prepared", "-S", "-t", "100"), 100)
    _balanced()


@cases.case
def runs_extended() -> None:
    """-M extended."""
    _fresh()
    _ran(_pgbench("-n", "-M", "extended", "-N", "-t", "20"), 20)


@cases.case
def runs_many_clients() -> None:
    """-c and -j: conflicts are waited for."""
    _fresh()
    _ran(_pgbench("-n", "-c", "6", "-j", "2", "-t", "10"), 60)
    _balanced()


@cases.case
def reconnects() -> None:
    """-C: a connection for each transaction."""
    _fresh()
    _ran(_pgbench("-n", "-C", "-S", "-t", "10"), 10)


@cases.case
def retries_serialization_failures() -> None:
    """--max-tries, at the level repeatable read."""
    _fresh()
    os.environ["PGOPTIONS"] = r"-c default_transaction_isolation=repeatable\ read"
    try:
        options = ("-c", "3", "-t", "10", "--max-tries=200", "--random-seed=1")
        _ran(_pgbench("-n", *options), 30)
    finally:
        del os.environ["PGOPTIONS"]
    _balanced()


@cases.case
def mixes_scripts() -> None:
    """-b with weights, and the report of each."""
    _fresh()
    said = _pgbench("-n", "-b", "tpcb-like@2", "-b", "select-only@8", "-t", "30", "-r")
    _ran(said, 30)
    assert "SQL script 2: <builtin: select only>" in said


@cases.case
def runs_scripts_of_users() -> None:
    """-f with variables, conditions and results that are kept."""
    script = (
        "\\set n random(1, 10)\n"
        "select :n + 1 as next, 'x' as word \\gset r_\n"
        "\\if :r_next > 1\nselect :r_next::int;\n\\else\nselect 1 / 0;\n\\endif\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "script.sql")
        path.write_text(script)
        for mode in ("simple", "prepared"):
            _ran(_pgbench("-n", "-M", mode, "-f", str(path), "-t", "10"), 10)


@cases.case
def runs_pipelines() -> None:
    """\\startpipeline, in the extended protocol."""
    script = "\\startpipeline\nbegin;\nselect 1;\nselect 2;\nend;\n\\syncpipeline\nselect 3;\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "script.sql")
        path.write_text(script + "\\endpipeline\n")
        for mode in ("extended", "prepared"):
            _ran(_pgbench("-n", "-M", mode, "-f", str(path), "-t", "10"), 10)


@cases.case
def tells_of_errors() -> None:
    """A script that fails ends its client."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "script.sql")
        path.write_text("select 1 / 0;\n")
        said = _pgbench("-n", "-f", str(path), "-t", "3", fails=True)
    assert "ERROR:  division by zero" in said, said


if __name__ == "__main__":
    cases.run()
