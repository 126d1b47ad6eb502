"""The explorer's server: this machine alone, one browser tab, a token in the address that works once.

The page itself is empty. Its script takes the token from the address, behind ``#``, where no log sees it, and gets the
secret of the session for it, which every further request must have in a header. Requests for another host's name, or
from another page, are refused.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable
from contextvars import Context, copy_context
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from os.path import basename
from typing import Any

from dpmask.engine.guard import safe_error
from dpmask.errors import JobError
from dpmask.explore.everything import FullRun
from dpmask.explore.page import FOLDER, controls_html, views_html
from dpmask.explore.session import Explorer

LOOPBACK = "127.0.0.1"
_LARGEST = 1 << 16
_FILES = {
    "/": ("page.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class ExplorerServer(ThreadingHTTPServer):
    """Serves one explorer on loopback until it is stopped."""

    daemon_threads = True

    def __init__(self, explorer: Explorer, port: int = 0) -> None:
        self.explorer, self.full_run = explorer, FullRun(explorer)
        self.token: str | None = secrets.token_urlsafe(24)
        self.secret = secrets.token_urlsafe(32)
        self.context: Context = copy_context()  # of the thread that is connected to the cluster
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError:
            raise JobError(f"--port {port}: is taken, or not allowed. Give another, or none.") from None

    @property
    def address(self) -> str:
        """What to open in a browser, once."""
        return f"http://{LOOPBACK}:{self.server_port}/#{self.token}"

    @property
    def hosts(self) -> set[str]:
        """How a browser on this machine names the server."""
        return {f"{LOOPBACK}:{self.server_port}", f"localhost:{self.server_port}"}

    def opened(self, token: Any) -> str | None:
        """The secret of the session for the token, which is gone then; None for any other."""
        if self.token is None or not isinstance(token, str) or not _same(token, self.token):
            return None
        self.token = None
        return self.secret

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away is no error worth a traceback."""


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: ExplorerServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "dpmask", ""
    timeout = 60

    def do_GET(self) -> None:
        """The empty page, its script and its style."""
        path = self.path.partition("?")[0]
        if not self._allowed() or path not in _FILES:
            self._refuse()
            return
        name, kind = _FILES[path]
        self._send((FOLDER / name).read_bytes(), f"{kind}; charset=utf-8")

    def do_POST(self) -> None:
        """Everything else: JSON in, JSON out."""
        content = self._content()
        if not self._allowed() or content is None:
            self._refuse()
            return
        if self.path == "/session":
            secret = self.server.opened(content.get("token"))
            self._send_json({"secret": secret} if secret else {"error": _USED}, secret is not None)
            return
        action = _ACTIONS.get(self.path)
        if action is None or not _same(self.headers.get("X-Session", ""), self.server.secret):
            self._refuse()
            return
        self._send_json(self.server.context.copy().run(_answer, action, self.server, content))

    def _allowed(self) -> bool:
        """Whether the request names this server, and comes from its own page."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        own = origin is None or origin in {f"http://{one}" for one in self.server.hosts}
        return (
            host in self.server.hosts and own and self.headers.get("Sec-Fetch-Site", "none") in {"none", "same-origin"}
        )

    def _content(self) -> dict[str, Any] | None:
        try:
            length = int(self.headers.get("Content-Length", "0"))
            if not 0 <= length <= _LARGEST:
                self.close_connection = True
                return None
            found = json.loads(self.rfile.read(length) or b"{}")
        except ValueError:
            return None
        return found if isinstance(found, dict) else None

    def _refuse(self) -> None:
        self._send_json({"error": "Refused: this is not a request of the explorer's own page."}, False)

    def _send_json(self, content: dict[str, Any], fine: bool = True) -> None:
        status = HTTPStatus.OK if fine else HTTPStatus.FORBIDDEN
        self._send(json.dumps(content).encode(), "application/json", status)

    def _send(self, data: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: requests are the data holder's own."""


_USED = "This address was used before, and works once. Start dpmask explore again for another."


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _answer(action: Callable[[ExplorerServer, dict[str, Any]], Any], server: ExplorerServer, content: Any) -> Any:
    """What an action came to, or the error that it ended with; never a value of a record."""
    try:
        return action(server, content)
    except Exception as error:
        return {"error": str(safe_error(error))}


def _state(server: ExplorerServer, status: str = "") -> dict[str, Any]:
    explorer = server.explorer
    views = views_html(explorer, server.full_run)
    found = explorer.current()
    text = f"{'Holds' if found.held else 'Refused'}: {found.risk.name} {found.risk.value:.4g}, "
    return {
        "controls": controls_html(explorer),
        "views": views,
        "can_undo": explorer.can_undo,
        "can_redo": explorer.can_redo,
        "running": server.full_run.running,
        "status": status or f"{text}{found.loss.name} {found.loss.value:.4g}.",
    }


def _move(server: ExplorerServer, content: dict[str, Any]) -> dict[str, Any]:
    server.explorer.move(str(content.get("name")), content.get("value"))
    return _state(server)


def _undo(server: ExplorerServer, content: dict[str, Any]) -> dict[str, Any]:
    server.explorer.undo()
    return _state(server)


def _redo(server: ExplorerServer, content: dict[str, Any]) -> dict[str, Any]:
    server.explorer.redo()
    return _state(server)


def _point(server: ExplorerServer, content: dict[str, Any]) -> dict[str, Any]:
    tried, number = list(server.explorer.tried.values()), content.get("number")
    if not isinstance(number, int) or not 1 <= number <= len(tried):
        raise JobError("There is no such point.")
    server.explorer.go(tried[number - 1].changes)
    return _state(server)


def _everything(server: ExplorerServer, content: dict[str, Any]) -> dict[str, Any]:
    server.full_run.start()
    return _state(server, "Running on everything in the background.")


def _progress(server: ExplorerServer, content: dict[str, Any]) -> dict[str, Any]:
    return {"running": server.full_run.running, "progress": server.full_run.progress}


def _save(server: ExplorerServer, content: dict[str, Any]) -> dict[str, Any]:
    url = server.explorer.save(str(content.get("name", "")))
    return _state(server, f"Saved {basename(url)}.")


_ACTIONS: dict[str, Callable[[ExplorerServer, dict[str, Any]], dict[str, Any]]] = {
    "/state": lambda server, content: _state(server),
    "/move": _move,
    "/undo": _undo,
    "/redo": _redo,
    "/point": _point,
    "/everything": _everything,
    "/progress": _progress,
    "/save": _save,
}
