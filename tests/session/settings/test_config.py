"""Settings: precedence, types, and refusals in one line."""

from pathlib import Path

import pytest

from coordinator.config import Settings, SettingsError, load


def test_flags_win_over_environment_over_file_over_defaults(tmp_path: Path) -> None:
    file = tmp_path / "meridian.toml"
    file.write_text('listen = "127.0.0.1:1"\ndata_dir = "file"\nattempts_max = 3\n')
    settings = load(
        flags={"config": str(file), "listen": "127.0.0.1:3"},
        sets=["shutdown_grace_s=1.5"],
        environment={"MERIDIAN_LISTEN": "127.0.0.1:2", "MERIDIAN_DATA_DIR": "env", "PATH": "/bin"},
    )
    assert (settings.listen, settings.data_dir) == ("127.0.0.1:3", "env")
    assert (settings.attempts_max, settings.shutdown_grace_s) == (3, 1.5)
    assert settings.connections_max == Settings().connections_max


def test_session_variables_become_defaults(tmp_path: Path) -> None:
    file = tmp_path / "meridian.toml"
    file.write_text('[variables]\nTimeZone = "Asia/Tokyo"\n')
    settings = load(flags={"config": str(file)}, sets=["work_mem=1MB"], environment={})
    assert dict(settings.variables) == {"TimeZone": "Asia/Tokyo", "work_mem": "1MB"}


@pytest.mark.parametrize(
    ("sets", "environment", "line"),
    [
        (["nonsense=1"], {}, 'unrecognized configuration parameter "nonsense"'),
        (["attempts_max"], {}, '--set takes name=value, not "attempts_max"'),
        (["attempts_max=many"], {}, 'setting "attempts_max" takes a value of type int, not "many"'),
        (["attempts_max=0"], {}, 'setting "attempts_max" must be a number greater than 0'),
        (
            ["startup_timeout_s=nan"],
            {},
            'setting "startup_timeout_s" must be a number greater than 0',
        ),
        (
            ["startup_timeout_s=inf"],
            {},
            'setting "startup_timeout_s" must be a number greater than 0',
        ),
        ([], {"MERIDIAN_DATA_DIR": ""}, "data_dir must not be empty"),
        (["listen=nowhere"], {}, 'listen must be HOST:PORT, not "nowhere"'),
        (
            ["connections_max=1"],
            {},
            "connections_unauthenticated_max must not exceed connections_max",
        ),
        (["fsync=off"], {}, '"off" for parameter "fsync" is not supported'),
        (["port=1"], {}, '"1" for parameter "port" is not supported'),
        (["TimeZone=Mars"], {}, 'invalid value for parameter "TimeZone": "Mars"'),
        ([], {"MERIDIAN_NONSENSE": "1"}, "unknown environment variable MERIDIAN_NONSENSE"),
    ],
)
def test_refusals(sets: list[str], environment: dict[str, str], line: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load(flags={}, sets=sets, environment=environment)
    assert str(refused.value) == line


def test_only_loopback_is_trusted_unless_asked_for() -> None:
    with pytest.raises(SettingsError, match=r"refusing to listen on 0\.0\.0\.0"):
        load(flags={"listen": "0.0.0.0:7432"}, sets=[], environment={})
    settings = load(flags={"listen": "0.0.0.0:7432"}, sets=["trust_remote=on"], environment={})
    assert (settings.host, settings.port) == ("0.0.0.0", 7432)


def test_unknown_keys_of_the_file_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "meridian.toml"
    file.write_text("nonsense = 1\n")
    with pytest.raises(SettingsError, match='unknown setting "nonsense"'):
        load(flags={"config": str(file)}, sets=[], environment={})
    with pytest.raises(SettingsError, match="cannot read"):
        load(flags={"config": str(tmp_path / "missing.toml")}, sets=[], environment={})
