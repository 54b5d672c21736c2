# SPDX-License-Identifier: Apache-2.0
"""The web server of the page: it listens on one address, and answers browsers that came to this very address.

A browser lets any web page open a connection to this computer. So a request whose `Host` is a foreign name, or whose
`Origin` is another page than the one served here, is refused (cross-site requests and DNS rebinding). There is no
password: whoever reaches the address sees the robot. `operate` says who may command it; see `admission.py`.
"""

from __future__ import annotations

import contextlib
import http
import io
import ipaddress
import socket
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import viser
import websockets.asyncio.server

from pkm_runtime.errors import PkmError
from pkm_viewer.admission import Admitted, may_operate

THIS_COMPUTER = "127.0.0.1"  # the default: no other computer gets in
_PORTS = 100  # tried, one after the other


class PageServer(viser.ViserServer):
    """A viser server on the first free port from `port` on, with a `url`; PkmError: no such host, no free port.

    `operate` says who may command: `local` browsers on this computer, `everyone`, or `nobody`. PkmError also where the
    viser version is not the one that is guarded here.
    """

    def __init__(self, host: str, port: int, label: str, operate: str = "nobody") -> None:
        self._operate = operate
        free = free_port(host, port)
        with (
            self._guarded(host) as guards,
            contextlib.redirect_stdout(io.StringIO()),
        ):  # the program that starts it prints its address
            super().__init__(host=host, port=free, label=label, verbose=False)
        if not guards:  # viser no longer serves in the manner that is guarded here
            self.stop()
            raise PkmError("the page cannot be served: this version of viser has another web server")
        self.host = host

    @property
    def url(self) -> str:
        """Address of the page: on this computer, or on all of its networks by its name."""
        host = self.host
        if _is(host, "is_unspecified"):
            host = socket.gethostname()
        return f"http://[{host}]:{self.get_port()}" if ":" in host else f"http://{host}:{self.get_port()}"

    def may_operate(self, client_id: int | None) -> bool:
        """Whether a browser may command; False for one that is gone, and for None, which is not a browser."""
        connection = self._websock_server._live_connections.get(-1 if client_id is None else client_id)
        return connection is not None and self._lets(connection)

    def _lets(self, connection: Any) -> bool:
        remote, local = connection.remote_address, connection.local_address
        return bool(remote and local) and may_operate(self._operate, remote[0], local[0])

    def _handle(self, kind: str, number: str) -> Any:
        """The handle of an input or of a command that a key stands for, of the page or of a browser's part of it."""
        for gui in (self.gui, *(client.gui for client in self.get_clients().values())):
            handle = getattr(gui, kind).get(number)
            if handle is not None:
                return handle
        return None

    @contextlib.contextmanager
    def _guarded(self, host: str) -> Iterator[list[str]]:
        """Guard the web servers that are started inside against unadmitted requests; yields their list."""
        serve = websockets.asyncio.server.serve
        started: list[str] = []

        def guarded_serve(handler: Any, *arguments: Any, process_request: Any = None, **options: Any) -> Any:
            def guarded(connection: Any, request: Any) -> Any:
                try:
                    problem = refusal(request.headers, host)
                except ValueError:  # a header that is there twice, or no address
                    problem = "the request cannot be read"
                if problem:
                    return connection.respond(http.HTTPStatus.FORBIDDEN, problem)
                return process_request(connection, request)

            async def admitted(connection: Any) -> None:
                handles = (partial(self._handle, f"_{kind}_handle_from_uuid") for kind in ("gui_input", "command"))
                await handler(Admitted(connection, self._lets(connection), *handles))

            started.append(host)
            return serve(admitted, *arguments, process_request=guarded, **options)

        websockets.asyncio.server.serve = guarded_serve  # type: ignore[assignment,misc]
        try:
            yield started
        finally:
            websockets.asyncio.server.serve = serve  # type: ignore[misc]

    def request_share_url(self, verbose: bool = True) -> str | None:
        """Refuse: a browser may ask for a tunnel to the internet, which would go unnoticed at this computer."""
        return None


def free_port(host: str, first: int) -> int:
    """The first free port of a host, from `first` on; PkmError: there is none, or no such host."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, first, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise PkmError(f"the page cannot listen on {host!r}: {error}") from error
    problem = "no port is left"
    for port in range(first, min(first + _PORTS, 65536)):
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address[0], port, *address[2:]))
            except OSError as error:
                problem = str(error)
            else:
                return port
    raise PkmError(f"the page cannot listen on {host!r}, port {first} or one of the next: {problem}")


def refusal(headers: Any, host: str) -> str:
    """Why a server that listens on `host` refuses a request with these headers; empty where it does not."""
    asked = headers.get("Host", "")
    name = urlsplit(f"//{asked}").hostname or ""
    own = {"localhost", host.lower(), socket.gethostname().lower(), socket.getfqdn().lower()}
    own |= {f"{socket.gethostname().lower()}.local"}
    if name not in own and not _is(name, "is_loopback" if _is(host, "is_loopback") else "version"):
        return "this page has another name"
    origin = headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != asked:
        return "another page asks"
    return ""


def _is(host: str, kind: str) -> bool:
    """Whether a host is a number (not a name), and one of that kind."""
    try:
        return bool(getattr(ipaddress.ip_address(host), kind))
    except ValueError:
        return False
