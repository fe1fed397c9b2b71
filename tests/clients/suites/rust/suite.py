"""The clients of Rust: drivers, ORMs and migrators, built into one program."""

from tests.clients.suites.suite import Suite

SUITE = Suite(
    name="rust",
    # diesel's libpq comes with its crate, as C.
    needs=("cargo", "cc"),
    set_up=[["cargo", "build", "--locked", "-j", "2", "--target-dir", "{cache}/target"]],
    run=["{cache}/target/debug/meridian-client-suite"],
)
