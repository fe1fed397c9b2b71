"""Download the source distributions with pip, and unpack them: `python fetch.py CACHE`.

Two things are changed in what is unpacked. asyncpg's package is renamed, so that its tests import
the installed one. SQLAlchemy's provisioning looks into `pg_stat_activity` before it drops tables,
only to warn, and creates the extensions citext and hstore; without them no test would run at all
(FORGIVING). The fixture of SQLAlchemy's largest class makes materialized views, which are a feature
of another issue; `NO_MATERIALIZED_VIEWS` has it made without them, on both servers.
"""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

SOURCES = ("sqlalchemy==2.1.9", "asyncpg==0.32.0")
NO_MATERIALIZED_VIEWS = (
    "    def materialized_views(self):",
    "    def materialized_views(self):\n        return exclusions.closed()\n\n"
    "    def _materialized_views(self):",
)
FORGIVING = """

def _create_extensions_there_are(url, engine, follower_ident):
    from sqlalchemy.exc import DBAPIError

    for extension in ("citext", "hstore"):
        try:
            with engine.begin() as conn:
                conn.execute(text(f"CREATE EXTENSION IF NOT EXISTS {extension}"))
        except DBAPIError:
            pass


post_configure_engine.fns["postgresql"] = _create_extensions_there_are
prepare_for_drop_tables.fns["postgresql"] = lambda config, connection: None
"""


def main(cache: Path) -> None:
    """Put both below `cache/sources`."""
    place = cache / "sources"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    options = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", "-q", "-d", str(place)]
    for source in SOURCES:
        subprocess.run([sys.executable, "-m", "pip", "download", *options, source], check=True)
    for archive in place.glob("*.tar.gz"):
        with tarfile.open(archive) as packed:
            packed.extractall(place, filter="data")
    (asyncpg,) = place.glob("asyncpg-*/asyncpg")
    asyncpg.rename(asyncpg.with_name("asyncpg_source"))
    (provision,) = place.glob("sqlalchemy-*/lib/sqlalchemy/dialects/postgresql/provision.py")
    provision.write_text(provision.read_text() + FORGIVING)
    (requirements,) = place.glob("sqlalchemy-*/test/requirements.py")
    text = requirements.read_text()
    assert NO_MATERIALIZED_VIEWS[0] in text, "the requirement has another name"
    requirements.write_text(text.replace(*NO_MATERIALIZED_VIEWS))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
