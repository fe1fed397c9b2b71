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
            ["connections_max=4", "reserved_connections=1"],
            {},
            "superuser_reserved_connections (3) plus reserved_connections (1) must be less than"
            " connections_max (4)",
        ),
        (["auth_delay_ms=-1"], {}, 'setting "auth_delay_ms" must be a number, 0 or more'),
        (["ssl_cert_file=a"], {}, "ssl_cert_file and ssl_key_file belong together"),
        (["ssl_ca_file=a"], {}, "ssl_ca_file needs ssl_cert_file"),
        (["ident_file=a"], {}, "ident_file needs hba_file: the built-in rules name no map"),
        (["audit=all"], {}, "audit must be login, or empty"),
        (["http_listen=nowhere"], {}, 'http_listen must be HOST:PORT, not "nowhere"'),
        (["http_token_file=a"], {}, "http_token_file and http_hosts need http_listen"),
        (["http_hosts=a"], {}, "http_token_file and http_hosts need http_listen"),
        (["spark_start=never"], {}, "spark_start must be eager, lazy or off"),
        (["unix_socket_permissions=9"], {}, 'unix_socket_permissions must be octal, not "9"'),
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


def test_several_addresses(tmp_path: Path) -> None:
    settings = load(flags={"listen": "127.0.0.1:7432, [::1]:7433,*:0"}, sets=[], environment={})
    assert settings.addresses == (("127.0.0.1", 7432), ("::1", 7433), ("*", 0))
    assert settings.port == 7432


def test_a_setting_that_is_gone_says_what_to_write_instead(tmp_path: Path) -> None:
    file = tmp_path / "meridian.toml"
    file.write_text("trust_remote = true\n")
    for given in (
        {"flags": {"config": str(file)}, "sets": [], "environment": {}},
        {"flags": {}, "sets": ["trust_remote=on"], "environment": {}},
        {"flags": {}, "sets": [], "environment": {"MERIDIAN_TRUST_REMOTE": "on"}},
    ):
        with pytest.raises(SettingsError, match="host all all ADDRESS trust"):
            load(**given)  # type: ignore[arg-type]  # one of each kind


def test_the_first_password_comes_from_the_environment_only(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("sesame\n")
    by_value = load(flags={}, sets=[], environment={"MERIDIAN_PASSWORD": "sesame"})
    by_file = load(flags={}, sets=[], environment={"MERIDIAN_PASSWORD_FILE": str(file)})
    assert by_value.first_password == by_file.first_password == "sesame"
    assert "sesame" not in repr(by_value)
    for name in ("password", "first_password", "password_file"):
        with pytest.raises(SettingsError, match="unrecognized configuration parameter"):
            load(flags={}, sets=[f"{name}=sesame"], environment={})
    both = {"MERIDIAN_PASSWORD": "a", "MERIDIAN_PASSWORD_FILE": str(file)}
    with pytest.raises(SettingsError, match="only one of"):
        load(flags={}, sets=[], environment=both)


def test_unknown_keys_of_the_file_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "meridian.toml"
    file.write_text("nonsense = 1\n")
    with pytest.raises(SettingsError, match='unknown setting "nonsense"'):
        load(flags={"config": str(file)}, sets=[], environment={})
    with pytest.raises(SettingsError, match="cannot read"):
        load(flags={"config": str(tmp_path / "missing.toml")}, sets=[], environment={})
