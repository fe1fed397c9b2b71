"""The clients of Go: drivers, ORMs and migrators, built into one program."""

from tests.clients.suites.suite import Suite

SUITE = Suite(
    name="go",
    needs=("go",),
    set_up=[["go", "build", "-p", "1", "-o", "{cache}/suite", "."]],
    run=["{cache}/suite"],
    environment={"CGO_ENABLED": "0", "GOMAXPROCS": "1"},
)
