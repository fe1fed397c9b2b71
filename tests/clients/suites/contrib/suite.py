"""pgbench, postgres_fdw and dblink of the distribution that the peer is of."""

from tests.clients.suites.suite import ROOT, Suite

SUITE = Suite(
    name="contrib",
    run=["{python}", "-m", "tests.clients.suites.contrib.main"],
    environment={"PYTHONPATH": str(ROOT)},
)
