"""A real Chromium without a window, asked through its DevTools: what it drew, fetched and complained of."""

import asyncio
import base64
import contextlib
import json
import shutil
import subprocess
import time
import urllib.request
from typing import NamedTuple

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_OPTIONS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-extensions --disable-background-networking "
    "--disable-component-update --disable-sync --proxy-server=127.0.0.1:9 --remote-debugging-port=0 "
    "--hide-scrollbars --disable-dev-shm-usage about:blank"
)


class Seen(NamedTuple):
    """What came of opening a page."""

    fetched: list[str]
    complaints: list[str]
    values: dict
    seconds: float
    picture: bytes


class Browser:
    """One Chromium, ended by its own process id."""

    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        command = [CHROMIUM, f"--user-data-dir={self.folder}", *_OPTIONS.split()]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        said = self.folder / "DevToolsActivePort"
        for _ in range(300):
            if said.exists() and said.read_text().strip():
                self.port = said.read_text().split()[0]
                return self
            assert self.process.poll() is None, "chromium died"
            time.sleep(0.1)
        raise TimeoutError("chromium opened no port")

    def __exit__(self, *_):
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()
        self.process.wait(10)

    def look(self, path, *, width=1200, scheme="light", media="", **expressions):
        """Open a file at this width; the expressions are evaluated in the page."""
        return asyncio.run(self._look(path.as_uri(), width, scheme, media, expressions))

    def drive(self, url, steps, *, width=1200, scheme="light"):
        """Open an address and take steps there: ``steps`` is a coroutine function of a Tab."""
        return asyncio.run(self._drive(url, steps, width, scheme))

    async def _drive(self, url, steps, width, scheme):
        tab = await Tab.opened(self.port)
        try:
            await tab.prepare(width, scheme)
            await tab.ask("Page.navigate", url=url)
            return await steps(tab)
        finally:
            await tab.ask("Page.close")

    async def _look(self, url, width, scheme, media, expressions):
        from tornado.websocket import websocket_connect

        new = urllib.request.Request(f"http://127.0.0.1:{self.port}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(new, timeout=20) as answer:
            page = json.load(answer)
        events = []
        socket = await websocket_connect(page["webSocketDebuggerUrl"], max_message_size=1 << 28)

        async def ask(method, **parameters):
            ask.number += 1
            await socket.write_message(json.dumps({"id": ask.number, "method": method, "params": parameters}))
            while True:
                answer = json.loads(await asyncio.wait_for(socket.read_message(), 60))
                if answer.get("id") == ask.number:
                    assert "error" not in answer, answer
                    return answer["result"]
                events.append(answer)

        ask.number = 0
        for domain in ("Network", "Log", "Runtime", "Page"):
            await ask(f"{domain}.enable")
        await ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        await ask(
            "Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}]
        )
        start = time.perf_counter()
        await ask("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in events):
            events.append(json.loads(await asyncio.wait_for(socket.read_message(), 60)))
        picture = await ask("Page.captureScreenshot", captureBeyondViewport=False)  # which waits until it is painted
        seconds = time.perf_counter() - start
        values = {}
        for name, expression in expressions.items():
            answer = await ask("Runtime.evaluate", expression=expression, returnByValue=True)
            assert "exceptionDetails" not in answer, answer
            values[name] = answer["result"].get("value")
        socket.close()
        by_kind = {"Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"}
        return Seen(
            [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"],
            [json.dumps(e["params"]) for e in events if e["method"] in by_kind],
            values,
            seconds,
            base64.b64decode(picture["data"]),
        )


class Tab:
    """A tab that stays open: what a test types, presses and sees there."""

    def __init__(self, socket):
        self.socket, self.number, self.events = socket, 0, []

    @classmethod
    async def opened(cls, port):
        from tornado.websocket import websocket_connect

        new = urllib.request.Request(f"http://127.0.0.1:{port}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(new, timeout=20) as answer:
            page = json.load(answer)
        return cls(await websocket_connect(page["webSocketDebuggerUrl"], max_message_size=1 << 28))

    async def prepare(self, width, scheme):
        for domain in ("Network", "Log", "Runtime", "Page"):
            await self.ask(f"{domain}.enable")
        await self.resize(width)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        await self.ask("Emulation.setEmulatedMedia", media="", features=[feature])

    async def resize(self, width, height=900):
        await self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    async def ask(self, method, **parameters):
        self.number += 1
        await self.socket.write_message(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(await asyncio.wait_for(self.socket.read_message(), 60))
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    async def value(self, expression):
        """What an expression is in the page."""
        answer = await self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def until(self, expression, seconds=60):
        """Wait until an expression is true in the page."""
        for _ in range(seconds * 20):
            found = await self.value(expression)
            if found:
                return found
            await asyncio.sleep(0.05)
        raise TimeoutError(f"{expression}: {await self.value('document.body.innerText')}")

    async def press(self, key, code=0, text=""):
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            await self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)

    async def type(self, text):
        """Type a text where the keyboard is."""
        await self.ask("Input.insertText", text=text)

    async def picture(self, path, *, whole=False):
        """Keep a picture of what is seen, or of the whole page."""
        found = await self.ask("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    @property
    def complaints(self):
        by_kind = {"Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"}
        return [json.dumps(event["params"]) for event in self.events if event["method"] in by_kind]

    @property
    def fetched(self):
        return [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]
