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
