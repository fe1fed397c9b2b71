"""The command line and the composition root: the one place that chooses implementations.

    meridian serve | check | doctor | passwd | version

    Settings ─▶ ports ─▶ data directory (lock) ─▶ stash, store ─▶ recover ─▶ Driver ─┐
                                        Server ◀─ Services ◀─────────────────────────┤
                                                      engine, started beside it ─────┘

INVARIANTS
  E1  a failure before `ready` prints one line on stderr and exits with code 1; nothing is changed.
  E2  `ready ..` is printed when connections are accepted, and nothing else ever goes to stdout.
  E3  ports are taken before almost anything is imported, and heavy engines, definitions, EXPLAIN
      and what else a start does not need are imported after `ready`.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Final

from coordinator.config import Settings, SettingsError, load
from coordinator.exit_line import report_failure
from coordinator.version import PRODUCT_VERSION

_OPTIONS: Final = (
    "listen", "data_dir", "stash", "warehouse", "spark_master", "config", "standby",
)  # fmt: skip
_PLACES: Final = ("data_dir", "stash", "warehouse")


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of `meridian`; the exit code."""
    given = _parser().parse_args(arguments)
    match given.command:
        case "version":
            return _version()
        case "check":
            return _check(given)
        case "doctor":
            return _doctor(given)
        case "passwd":
            return _passwd(given)
        case _:
            return _serve(given)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="meridian", description="A SQL server with strict-serializable Delta Lake tables."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="run the server in the foreground")
    serve.add_argument("--listen", metavar="HOST:PORT", help="default 127.0.0.1:7432; port 0: any")
    serve.add_argument("--data-dir", metavar="DIR", help="default ./data")
    serve.add_argument("--stash", metavar="URL", help="default: inside the data directory")
    serve.add_argument("--warehouse", metavar="URL", help="default: inside the data directory")
    serve.add_argument(
        "--spark-master",
        metavar="URL",
        help="default local[*]; none: no JVM, as --set spark_start=off",
    )
    serve.add_argument(
        "--standby", action="store_const", const="true",
        help="wait until the coordinator that leads is gone, then take over",
    )  # fmt: skip
    serve.add_argument("--config", metavar="FILE", help="a TOML file with any of the settings")
    serve.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], dest="sets",
        help="a setting, or the default of a session variable; may be repeated",
    )  # fmt: skip
    check = commands.add_parser("check", help="verify data that is not being served")
    _add_places(check)
    check.add_argument(
        "--views", metavar="URL",
        help="instead, compare exact materialized views of the server there with their queries",
    )  # fmt: skip
    doctor = commands.add_parser(
        "doctor", help="say what is wrong first, and pack what helpers ask for into one archive"
    )
    _add_doctor_options(doctor)
    passwd = commands.add_parser("passwd", help="set a role's password while no server runs")
    passwd.add_argument("name", metavar="NAME", help="the role; meridian is the first superuser")
    _add_places(passwd)
    commands.add_parser("version", help="print the version")
    return parser


def _add_doctor_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--data-dir", metavar="DIR", help="default ./data")
    command.add_argument("--stash", metavar="URL", help="default: inside the data directory")
    command.add_argument("--warehouse", metavar="URL", help="default: inside the data directory")
    command.add_argument("--config", metavar="FILE", help="the file that the server has")
    command.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], dest="sets",
        help="a setting that the server has; may be repeated",
    )  # fmt: skip
    command.add_argument("--log", metavar="FILE", help="the server's log, if it goes into a file")
    command.add_argument("--output", metavar="FILE", help="default: in this directory, by the time")


def _add_places(command: argparse.ArgumentParser) -> None:
    command.add_argument("--data-dir", metavar="DIR", default="./data", help="default ./data")
    command.add_argument("--stash", metavar="URL", help="default: inside the data directory")
    command.add_argument("--warehouse", metavar="URL", help="default: inside the data directory")


def _version() -> int:
    sys.stdout.write(f"meridian {PRODUCT_VERSION}\n")
    return 0


def _settings(given: argparse.Namespace) -> Settings:
    flags = {
        name: getattr(given, name) for name in _OPTIONS if getattr(given, name, None) is not None
    }
    return load(flags=flags, sets=given.sets, environment=os.environ)


def _serve(given: argparse.Namespace) -> int:
    from coordinator.server.ports import take_ports
    from coordinator.server.quick_imports import quick_imports

    with quick_imports():
        try:
            settings = _settings(given)
            ports = take_ports(settings)
        except SettingsError as error:
            return report_failure(str(error))
        from coordinator.server.serve import serve

    return serve(settings, ports)


def _offline_settings(given: argparse.Namespace) -> Settings:
    flags = {name: getattr(given, name) for name in _PLACES if getattr(given, name) is not None}
    return load(flags=flags, sets=[], environment={})


def _check(given: argparse.Namespace) -> int:
    if given.views is not None:
        from coordinator.server.check_views import check_views

        return check_views(given.views)
    try:
        settings = _offline_settings(given)
    except SettingsError as error:
        return report_failure(str(error))
    from coordinator.server.check import check

    return check(settings)


def _doctor(given: argparse.Namespace) -> int:
    from coordinator.server.doctor import doctor

    refused = None
    try:
        settings = _settings(given)
    except SettingsError as error:
        refused = str(error)
        settings = Settings(**({"data_dir": given.data_dir} if given.data_dir else {}))
    return doctor(settings, refused=refused, log=given.log, output=given.output)


def _passwd(given: argparse.Namespace) -> int:
    try:
        settings = _offline_settings(given)
    except SettingsError as error:
        return report_failure(str(error))
    from coordinator.server.passwd import passwd

    return passwd(settings, given.name)


if __name__ == "__main__":
    sys.exit(main())
