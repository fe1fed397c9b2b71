"""A headless Chromium that does what a test tells it, by its DevTools protocol.

    Chromium ◀── one web socket ── Browser.tell(method, ..) ─▶ answers, and events by name

Debian's package `chromium` has it. Without it `chromium()` is None, and tests are skipped.
"""

import asyncio
import base64
import contextlib
import itertools
import json
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

PATIENCE_S = 60
"""Only against hanging for ever."""

_LISTENING = re.compile(r"DevTools listening on (ws://\S+)")
_WHEN = """new Promise((done) => {
  const look = () => { if (%s) { observer.disconnect(); done(true); } };
  const observer = new MutationObserver(look);
  const all = {subtree: true, childList: true, attributes: true, characterData: true};
  observer.observe(document, all);
  look();
})"""


def chromium() -> str | None:
    """The path of the program."""
    return shutil.which("chromium")


class Browser:
    """One window. `problems`: what the console has complained about, and requests elsewhere."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._session: str | None = None
        self._loaded = asyncio.Event()
        self.problems: list[str] = []
        self.requested: list[str] = []

    async def listen(self) -> None:
        """Take answers and events, until it is closed."""
        async for message in self._socket:
            told = json.loads(message.data)
            if "id" in told:
                self._answers.pop(told["id"]).set_result(told)
            elif told["method"] == "Page.loadEventFired":
                self._loaded.set()
            elif told["method"] == "Network.requestWillBeSent":
                self.requested.append(told["params"]["request"]["url"])
            elif told["method"] in ("Log.entryAdded", "Runtime.exceptionThrown"):
                self.problems.append(json.dumps(told["params"]))

    async def tell(self, method: str, **parameters: object) -> dict[str, Any]:
        """Do it; the result."""
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        message: dict[str, object] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        await self._socket.send_json(message)
        async with asyncio.timeout(PATIENCE_S):
            told = await answer
        assert "error" not in told, f"{method}: {told['error']}"
        found: dict[str, Any] = told["result"]
        return found

    async def begin(self) -> None:
        """Open the window."""
        target = await self.tell("Target.createTarget", url="about:blank")
        attached = await self.tell(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.tell(f"{domain}.enable")

    async def look(self, *, width: int, dark: bool = False) -> None:
        """How the window is."""
        await self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=800, deviceScaleFactor=1, mobile=width < 500,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.tell("Emulation.setEmulatedMedia", features=[scheme])

    async def open(self, address: str) -> None:
        """Go there, and wait until it is loaded."""
        self._loaded.clear()
        await self.tell("Page.navigate", url=address)
        async with asyncio.timeout(PATIENCE_S):
            await self._loaded.wait()

    async def run(self, script: str) -> Any:
        """The value of an expression, or of what it promises."""
        told = await self.tell(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    async def wait_for(self, condition: str) -> None:
        """Until an expression is true; it is looked at whenever the document changes."""
        assert await self.run(_WHEN % condition)

    async def press(self, key: str, *, shift: bool = False) -> None:
        """A key that has a name, or one character."""
        names = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32}
        shown = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        parameters: dict[str, object] = {"key": key, "modifiers": 8 if shift else 0}
        if key in names:
            parameters["windowsVirtualKeyCode"] = names[key]
        text = {"text": shown} if shown else {}
        await self.tell("Input.dispatchKeyEvent", type="keyDown", **parameters, **text)
        await self.tell("Input.dispatchKeyEvent", type="keyUp", **parameters)

    async def type(self, text: str) -> None:
        """Text, where the focus is."""
        await self.tell("Input.insertText", text=text)

    async def picture(self) -> bytes:
        """The whole page, as PNG."""
        size = (await self.tell("Page.getLayoutMetrics"))["cssContentSize"]
        told = await self.tell(
            "Page.captureScreenshot", captureBeyondViewport=True, clip={**size, "scale": 1}
        )
        return base64.b64decode(told["data"])


@contextlib.asynccontextmanager
async def browsing(place: Path) -> AsyncIterator[Browser]:
    """A window of a browser of its own, gone at the end. `place`: for its files."""
    program = chromium()
    assert program is not None, "the package chromium is not there"
    command = [
        program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--no-first-run", "--remote-debugging-port=0", f"--user-data-dir={place / 'profile'}",
        "--ignore-certificate-errors", "about:blank",
    ]  # fmt: skip
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    try:
        assert process.stderr is not None, "stderr is a pipe"
        found = None
        while found is None:
            line = await process.stderr.readline()
            assert line, "it has ended"
            found = _LISTENING.search(line.decode())
        async with aiohttp.ClientSession() as client, asyncio.TaskGroup() as group:
            async with client.ws_connect(found[1], max_msg_size=0) as socket:
                browser = Browser(socket)
                listening = group.create_task(browser.listen())
                await browser.begin()
                yield browser
            listening.cancel()
    finally:
        process.kill()
        await process.wait()
