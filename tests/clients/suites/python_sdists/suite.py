"""SQLAlchemy's and asyncpg's own tests, from their source distributions.

`fetch.py` downloads and unpacks them; `main.py` runs them with pytest and prints an outcome for
each test. Tests that need no server (SQLAlchemy's compiler) are left out.
"""

from tests.clients.suites.suite import Suite

_PYTHON = "{cache}/environment/bin/python"

SUITE = Suite(
    name="python_sdists",
    set_up=[
        ["{python}", "-m", "venv", "{cache}/environment"],
        [_PYTHON, "-m", "pip", "install", "-q", "-r", "requirements.txt"],
        [_PYTHON, "fetch.py", "{cache}"],
    ],
    run=[_PYTHON, "main.py", "{cache}"],
    seconds_max=7200,
)
