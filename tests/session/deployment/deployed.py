"""Services of a compose file as processes of this machine, without containers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

DEPLOY: Final = Path(__file__).parents[3] / "deploy"
CLUSTER: Final = DEPLOY / "docker-compose.cluster.yml"
SINGLE: Final = DEPLOY / "docker-compose.yml"


def dashboard_expressions() -> list[tuple[str, str]]:
    """Panel and expression, with the interval that Grafana would fill in."""
    board = json.loads((DEPLOY / "grafana" / "meridian.json").read_text())
    return [
        (panel["title"], target["expr"].replace("$__rate_interval", "30s"))
        for panel in board["panels"]
        for target in panel["targets"]
    ]


def read_yaml(path: Path) -> Any:
    """The document of a file, with its anchors and merges resolved."""
    return YAML(typ="safe").load(path)


@dataclass(frozen=True)
class Service:
    """Options after `serve`, and environment, with paths and addresses of this machine."""

    options: tuple[str, ...]
    environment: Mapping[str, str]


def service(path: Path, name: str, here: Mapping[str, str]) -> Service:
    """A service of a compose file; `here`: what its paths and addresses are called on this
    machine. The address to listen on and the data directory are the caller's.
    """
    found = read_yaml(path)["services"][name]
    verb, *options = [_renamed(str(part), here) for part in found["command"]]
    assert verb == "serve", "the image's entry point is the program"
    for own in ("--listen", "--data-dir"):
        at = options.index(own)
        del options[at : at + 2]
    environment = {
        key: _renamed(str(value), here)
        for key, value in found["environment"].items()
        if not str(value).startswith("$")
    }
    return Service(tuple(options), environment)


def _renamed(text: str, here: Mapping[str, str]) -> str:
    for there, name in here.items():
        text = text.replace(there, name)
    return text
