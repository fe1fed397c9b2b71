"""The page in a real Chromium: by keyboard, in a narrow window, in dark; nothing is complained of.

`make visible`: Debian's `chromium`, which `.ci/run` installs. `PICTURES=DIR` keeps what it draws.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import psycopg
import pytest

from tests.session.monitoring.test_page import NO_JVM, PASSWORD
from tests.support.browser import Browser, browsing, chromium
from tests.support.servers import Meridian, free_port, meridian

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium() is None, reason="install Debian's package chromium"),
]

LOOKS = [(1280, False), (1280, True), (360, False), (360, True)]


@contextlib.asynccontextmanager
async def _window(place: Path, port: int) -> AsyncIterator[Browser]:
    async with browsing(place) as browser:
        await browser.look(width=1280)
        await browser.open(f"http://127.0.0.1:{port}/")
        yield browser


def _on_the_page(
    place: Path, work: Callable[[Browser, Meridian], Awaitable[None]], password: str | None
) -> None:
    port = free_port()
    environment = {} if password is None else {"MERIDIAN_PASSWORD": password}
    options = [*NO_JVM, "--set", f"http_listen=127.0.0.1:{port}"]

    async def run(server: Meridian) -> None:
        async with _window(place, port) as browser:
            await work(browser, server)

    with meridian(place, options, environment) as server:
        with _connect(server) as connection:
            connection.execute("create extension pg_stat_statements")
            connection.execute("create table drawn (id int primary key, what text)")
            connection.execute("insert into drawn select g, 'x' from generate_series(1, 2000) g")
        asyncio.run(run(server))


def _connect(server: Meridian, name: str = "") -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(server.dsn, password=PASSWORD, autocommit=True, application_name=name)


async def _log_in(browser: Browser) -> None:
    """By keyboard: the focus is where a name goes."""
    await browser.wait_for("document.activeElement.id === 'user'")
    await browser.type("meridian")
    await browser.press("Tab")
    await browser.type(PASSWORD)
    await browser.press("Enter")
    await browser.wait_for("document.querySelector('#engines')")


def test_by_keyboard(tmp_path: Path) -> None:
    async def work(browser: Browser, server: Meridian) -> None:
        await browser.wait_for("document.activeElement.id === 'user'")
        await browser.type("meridian")
        await browser.press("Tab")
        await browser.type("wrong")
        await browser.press("Enter")
        await browser.wait_for("document.querySelector('#message').textContent.includes('failed')")
        assert await browser.run("document.activeElement.id") == "password"
        # What is refused is a line of the console, too.
        assert len(browser.problems) <= 3
        await browser.run("document.querySelector('#password').select()")
        await browser.type(PASSWORD)
        await browser.press("Enter")
        await browser.wait_for("document.querySelector('#engines')")
        with _connect(server, "victim") as victim:
            key = f"terminate-{victim.info.backend_pid}"
            await browser.wait_for(f"document.querySelector('[data-key={key}]')")
            while await browser.run("document.activeElement.dataset.key ?? ''") != key:
                await browser.press("Tab")
            await browser.press("Enter")
            assert await browser.run("document.querySelector('#confirm').open")
            assert await browser.run("document.activeElement.id") == "no"
            await browser.press("Escape")
            assert not await browser.run("document.querySelector('#confirm').open")
            victim.execute("select 1")
            assert await browser.run("document.activeElement.dataset.key ?? ''") == key
            await browser.press("Enter")
            await browser.press("Tab")
            await browser.press("Enter")
            said = "document.querySelector('#message').textContent.includes('was ended')"
            await browser.wait_for(said)
            with pytest.raises(psycopg.errors.AdminShutdown):
                victim.execute("select 1")
        await browser.wait_for(f"!document.querySelector('[data-key={key}]')")
        cookie = await browser.run("document.cookie")
        assert cookie == "", "scripts do not see it"
        await browser.run("document.querySelector('#logout').click()")
        await browser.wait_for("!document.querySelector('#login').hidden")
        await browser.wait_for("!document.querySelector('section')")

    _on_the_page(tmp_path, work, PASSWORD)


def test_it_fits_in_light_and_dark(tmp_path: Path) -> None:
    async def work(browser: Browser, server: Meridian) -> None:
        await _log_in(browser)
        grounds = set[str]()
        with _connect(server, "pays") as holder, _connect(server, "<b>not bold</b>") as other:
            holder.execute("begin")
            holder.execute("update drawn set what = 'y' where id = 1")
            other.execute("select '<img src=x onerror=alert(1)>', repeat('long ', 100)")
            await browser.wait_for("document.body.textContent.includes('not bold')")
            assert not await browser.run("document.querySelector('section b, section img')")
            for width, dark in LOOKS:
                await browser.look(width=width, dark=dark)
                assert await browser.run("document.documentElement.scrollWidth") <= width
                grounds.add(await browser.run("getComputedStyle(document.body).backgroundColor"))
                if kept := os.environ.get("PICTURES"):
                    name = f"{width}-{'dark' if dark else 'light'}.png"
                    drawn = await browser.picture()
                    await asyncio.to_thread((Path(kept) / name).write_bytes, drawn)
            holder.execute("rollback")
        assert len(grounds) == 2
        own = await browser.run("location.origin")
        assert not [url for url in browser.requested if not url.startswith(f"{own}/")]
        assert not [one for one in browser.problems if "favicon" not in one]

    _on_the_page(tmp_path, work, PASSWORD)


def test_under_trust_there_is_nothing_to_press(tmp_path: Path) -> None:
    async def work(browser: Browser, server: Meridian) -> None:
        await browser.wait_for("document.querySelector('#engines')")
        assert "to look only" in await browser.run("document.querySelector('#who').textContent")
        assert not await browser.run("document.querySelector('section button')")

    _on_the_page(tmp_path, work, None)


def test_another_site_reaches_nothing(tmp_path: Path) -> None:
    """A page of another origin asks, with the browser's cookies, in all ways that it has."""

    async def work(browser: Browser, server: Meridian) -> None:
        await _log_in(browser)
        page = await browser.run("location.origin")
        with _connect(server, "victim") as victim:
            pid = victim.info.backend_pid
            await browser.open(f"{page.replace('127.0.0.1', 'localhost')}/healthz")
            tried = f"""(async () => {{
              const told = [];
              for (const options of [
                {{}}, {{credentials: 'include'}}, {{mode: 'no-cors', credentials: 'include'}},
                {{method: 'POST', body: '{{"pid": {pid}}}', credentials: 'include'}},
                {{method: 'POST', body: '{{"pid": {pid}}}', mode: 'no-cors',
                  credentials: 'include', headers: {{'Content-Type': 'text/plain'}}}},
              ]) for (const path of ['data', 'state', 'terminate']) {{
                try {{
                  const answer = await fetch('{page}/page/' + path, options);
                  told.push(await answer.text());
                }} catch {{ told.push(''); }}
              }}
              return told.join('');
            }})()"""
            assert await browser.run(tried) == ""
            victim.execute("select 1")

    _on_the_page(tmp_path, work, PASSWORD)
