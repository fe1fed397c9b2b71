"""pgjdbc logs in: its own SCRAM, over TLS, with the server's certificate checked."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from py4j.protocol import Py4JJavaError

from tests.clients.drivers.jdbc import fetch_driver, java_sql
from tests.security.doors.conftest import LOCAL, PASSWORD, Certificates
from tests.support.servers import Meridian, meridian

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    jar = fetch_driver()
    if jar is None:
        pytest.fail("the pgjdbc JAR is not cached and cannot be fetched")
    with java_sql(jar) as view:
        yield view


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[Meridian]:
    place = tmp_path_factory.mktemp("pgjdbc")
    (place / "hba").write_text("hostssl all all all scram-sha-256\n")
    options = [*LOCAL, *certificates.options, "--set", f"hba_file={place / 'hba'}"]
    with meridian(place, options, {"MERIDIAN_PASSWORD": PASSWORD}) as started:
        yield started


def _url(server: Meridian, **more: str) -> str:
    options = "&".join(f"{name}={text}" for name, text in {"user": "meridian", **more}.items())
    return f"jdbc:postgresql://127.0.0.1:{urlsplit(server.dsn).port}/meridian?{options}"


def test_a_password_over_tls(jvm: Any, server: Meridian, certificates: Certificates) -> None:
    secure = {"sslmode": "verify-full", "sslrootcert": str(certificates.authority)}
    url = _url(server, password=PASSWORD, **secure)
    connection = jvm.java.sql.DriverManager.getConnection(url)
    found = connection.createStatement().executeQuery("select current_user")
    assert found.next()
    assert found.getString(1) == "meridian"
    connection.close()
    for wrong in (_url(server, password="wrong", **secure), _url(server, sslmode="disable")):
        with pytest.raises(Py4JJavaError) as refused:
            jvm.java.sql.DriverManager.getConnection(wrong)
        assert refused.value.java_exception.getSQLState() in ("28P01", "28000")
