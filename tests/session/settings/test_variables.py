"""Session variables: PostgreSQL's spellings and errors, and what transactions undo."""

import pytest

from coordinator.variables.session_roles import RoleName, check_role
from coordinator.variables.special_checks import split_search_path
from coordinator.variables.table import VARIABLES_BY_NAME
from coordinator.variables.variables import Variables
from sql.errors import SqlError


@pytest.fixture
def variables() -> Variables:
    return Variables(user="alice", defaults={})


@pytest.mark.parametrize(
    ("name", "given", "shown"),
    [
        ("statement_timeout", "1500", "1500ms"),
        ("statement_timeout", "5s", "5s"),
        ("statement_timeout", "60000", "1min"),
        ("statement_timeout", "0.5 min", "30s"),
        ("work_mem", "65536", "64MB"),
        ("client_encoding", "'utf-8'", "UTF8"),
        ("client_encoding", "UNICODE", "UTF8"),
        ("client_min_messages", "WARNING", "warning"),
        ("jit", "of", "off"),
        ("jit", "T", "on"),
        ("timezone", "europe/berlin", "Europe/Berlin"),
        ("TimeZone", "utc", "UTC"),
        ("timezone", "2", "<+02>-02"),
        ("timezone", "-03:00", "-03:00"),
        ("timezone", "-3.5", "<-03:30>+03:30"),
        ("datestyle", "iso", "ISO, MDY"),
        ("datestyle", "German", "German, DMY"),
        ("bytea_output", "ESCAPE", "escape"),
        ("intervalstyle", "ISO_8601", "iso_8601"),
        ("default_transaction_isolation", "Read Committed", "read committed"),
        ("default_transaction_isolation", "read uncommitted", "read uncommitted"),
        ("default_transaction_isolation", "serializable", "serializable"),
        ("consistency", "Strict", "strict"),
        ("consistency", "bounded  staleness 5s", "bounded staleness 5s"),
        ("consistency", "bounded staleness '2 minutes'", "bounded staleness 2min"),
        ("consistency", "bounded staleness 1500", "bounded staleness 1500ms"),
        ("transaction_read_only", "true", "on"),
        ("search_path", '"A b", public', '"A b", public'),
        ("application_name", "caf\u00e9", "caf\\xc3\\xa9"),
        ("extra_float_digits", "3", "3"),
    ],
)
def test_values_are_shown_as_postgresql_spells_them(
    variables: Variables, name: str, given: str, shown: str
) -> None:
    variables.set(name, given, local=False)
    assert variables.get(name) == shown


@pytest.mark.parametrize(
    ("name", "given", "sqlstate", "message"),
    [
        ("nonsense", "1", "42704", 'unrecognized configuration parameter "nonsense"'),
        ("jit", "maybe", "22023", 'parameter "jit" requires a Boolean value'),
        ("jit", "o", "22023", 'parameter "jit" requires a Boolean value'),
        (
            "client_encoding",
            "SJIS",
            "0A000",
            '"SJIS" for parameter "client_encoding" is not supported',
        ),
        (
            "timezone",
            "Mars/Olympus",
            "22023",
            'invalid value for parameter "TimeZone": "Mars/Olympus"',
        ),
        (
            "timezone",
            "../../etc/passwd",
            "22023",
            'invalid value for parameter "TimeZone": "../../etc/passwd"',
        ),
        (
            "statement_timeout",
            "-5",
            "22023",
            '-5 ms is outside the valid range for parameter "statement_timeout"'
            " (0 ms .. 2147483647 ms)",
        ),
        (
            "statement_timeout",
            "5 parsecs",
            "22023",
            'invalid value for parameter "statement_timeout": "5 parsecs"',
        ),
        ("fsync", "off", "55P02", 'parameter "fsync" cannot be changed now'),
        (
            "port",
            "1",
            "55P02",
            'parameter "port" cannot be changed without restarting the server',
        ),
        (
            "log_connections",
            "on",
            "55P02",
            'parameter "log_connections" cannot be set after connection start',
        ),
        (
            "zero_damaged_pages",
            "on",
            "0A000",
            '"on" for parameter "zero_damaged_pages" is not supported',
        ),
        (
            "random_page_cost",
            "-1",
            "22023",
            '-1 is outside the valid range for parameter "random_page_cost" (0 .. 1.79769e+308)',
        ),
        ("server_version", "1", "55P02", 'parameter "server_version" cannot be changed'),
        ("datestyle", "ISO, SQL", "22023", 'invalid value for parameter "DateStyle": "ISO, SQL"'),
        ("search_path", "a,,b", "22023", 'invalid value for parameter "search_path": "a,,b"'),
        (
            "standard_conforming_strings",
            "off",
            "0A000",
            '"off" for parameter "standard_conforming_strings" is not supported',
        ),
    ],
)
def test_what_is_refused(
    variables: Variables, name: str, given: str, sqlstate: str, message: str
) -> None:
    with pytest.raises(SqlError) as refused:
        variables.set(name, given, local=False)
    assert (refused.value.sqlstate, refused.value.message) == (sqlstate, message)


def test_set_is_undone_by_rollback_and_kept_by_commit(variables: Variables) -> None:
    variables.set("work_mem", "1MB", local=False)
    variables.rolled_back()
    assert variables.get("work_mem") == "4MB"
    variables.set("work_mem", "1MB", local=False)
    variables.committed()
    variables.rolled_back()
    assert variables.get("work_mem") == "1MB"


def test_set_local_ends_with_its_transaction(variables: Variables) -> None:
    variables.set("work_mem", "1MB", local=False)
    variables.set("work_mem", "2MB", local=True)
    assert variables.get("work_mem") == "2MB"
    variables.committed()
    assert variables.get("work_mem") == "1MB"


def test_custom_variables_are_free_but_must_exist_to_be_shown(variables: Variables) -> None:
    variables.set("app.user", "7", local=False)
    assert variables.get("app.user") == "7"
    with pytest.raises(SqlError) as refused:
        variables.get("app.other")
    assert refused.value.sqlstate == "42704"


def test_reported_variables_are_told_once_and_again_when_they_change(variables: Variables) -> None:
    first = dict(variables.unreported())
    assert first["TimeZone"] == "UTC"
    assert first["session_authorization"] == "alice"
    assert first["server_version"].startswith("18.0 ")
    assert "work_mem" not in first
    assert not variables.unreported()
    variables.set("timezone", "Europe/Berlin", local=False)
    assert variables.unreported() == [("TimeZone", "Europe/Berlin")]
    variables.rolled_back()
    assert variables.unreported() == [("TimeZone", "UTC")]


def test_startup_parameters_are_the_defaults_of_reset() -> None:
    variables = Variables.started(
        user="alice", parameters={"TimeZone": "Europe/Berlin"}, defaults={"timezone": "UTC"}
    )
    variables.set("timezone", "Asia/Tokyo", local=False)
    variables.set("timezone", None, local=False)
    assert variables.get("timezone") == "Europe/Berlin"


def test_search_path_knows_the_user_and_quotes(variables: Variables) -> None:
    assert variables.search_path == ("alice", "public")
    variables.set("search_path", '"Mixed ""Case", PUBLIC', local=False)
    assert variables.search_path == ('Mixed "Case', "public")
    assert split_search_path("") == []


def test_nobodys_own_schema_is_one_of_the_system() -> None:
    started = Variables.started(user="meridian", parameters={}, defaults={})
    assert started.search_path == ("public",)
    started.set("search_path", '"$user", meridian', local=False)
    assert started.search_path == ("meridian",)


def test_show_all_is_sorted_and_leaves_custom_ones_out(variables: Variables) -> None:
    variables.set("app.x", "1", local=False)
    names = [row.name.lower() for row in variables.all()]
    assert names == sorted(names)
    assert "app.x" not in names


def test_only_superusers_set_what_is_theirs() -> None:
    joe = Variables(user="joe", defaults={}, connected=RoleName("joe", 20_000, is_superuser=False))
    for name in ("log_min_messages", "deadlock_timeout"):
        with pytest.raises(SqlError) as refused:
            joe.set(name, None, local=False)
        assert refused.value.message == f'permission denied to set parameter "{name}"'
    with pytest.raises(SqlError, match="permission denied to examine"):
        joe.show("data_directory")
    assert "data_directory" not in [row.name for row in joe.all()]


def test_every_default_is_a_value_that_set_takes() -> None:
    for item in VARIABLES_BY_NAME.values():
        if item.check is not check_role:
            assert item.check(item.name, item.default) == item.default, item.name


def test_sources_tell_who_has_set_a_value() -> None:
    made = Variables.started(
        user="joe",
        parameters={"work_mem": "1MB"},
        defaults={"temp_buffers": "1MB"},
        facts={"port": "7000"},
    )
    made.set("geqo", "off", local=True)
    made.set("jit", "on", local=False)
    rows = {row.setting.name: (row.value, row.source, row.reset) for row in made.rows()}
    assert rows["work_mem"] == ("1024", "client", "1024")
    assert rows["temp_buffers"] == ("128", "configuration file", "128")
    assert rows["port"] == ("7000", "override", "7000")
    assert rows["geqo"] == ("off", "session", "on")
    assert rows["jit"] == ("on", "session", "off")
    assert rows["fsync"] == ("on", "default", "on")
    made.committed()
    made.set("jit", None, local=False)
    rows = {row.setting.name: (row.value, row.source, row.reset) for row in made.rows()}
    assert rows["geqo"] == ("on", "default", "on")
    assert rows["jit"] == ("off", "default", "off")
