"""The Python family, in three virtual environments: dbt and SQLMesh pin what others need newer."""

from tests.clients.suites.suite import Suite

_ENVIRONMENTS = {
    "main": "requirements.txt",
    "dbt": "requirements_dbt.txt",
    "sqlmesh": "requirements_sqlmesh.txt",
}


def _set_up() -> list[list[str]]:
    commands: list[list[str]] = []
    for name, requirements in _ENVIRONMENTS.items():
        place = f"{{cache}}/{name}"
        commands.append(["{python}", "-m", "venv", place])
        commands.append([f"{place}/bin/python", "-m", "pip", "install", "-q", "-r", requirements])
    return commands


SUITE = Suite(
    name="python", set_up=_set_up(), run=["{cache}/main/bin/python", "main.py", "{cache}"]
)
