# SPDX-License-Identifier: Apache-2.0
"""The web server of the page: it listens on one address, answers browsers that came to it, and says who may command.

A browser lets any web page open a connection to this computer. So a request whose `Host` is a foreign name, or whose
`Origin` is another page than the one served here, is refused (cross-site requests and DNS rebinding). There is no
password: whoever reaches the address sees the robot.

viser applies whatever a browser sends: a message may set any field of an input, on behalf of anybody. So messages are
read here first. From everybody the page takes the pose of their camera; from those who may command, values that the
inputs on their own page can have, keys that stand for a command, and gizmo motions. Everything else is dropped.
"""

from __future__ import annotations

import contextlib
import http
import io
import ipaddress
import math
import socket
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import msgspec
import viser
import websockets.asyncio.server

from pkm_runtime.errors import PkmError

_LONGEST = 4096  # bytes of a message: a camera takes two hundred
_FAR = 1e9  # no number of a camera or a gizmo is larger
_INPUT, _COMMAND = "GuiUpdateMessage", "CommandTriggerMessage"
_FIELDS: dict[str, dict[str, int]] = {  # kind of message: how many numbers each field has, 0 for a single one
    "ViewerCameraMessage": {
        **{"wxyz": 4, "position": 3, "look_at": 3, "up_direction": 3},
        **dict.fromkeys(("fov", "near", "far", "image_height", "image_width"), 0),
    },
    "TransformControlsUpdateMessage": {"wxyz": 4, "position": 3},
    "TransformControlsDragStartMessage": {},
    "TransformControlsDragEndMessage": {},
}
_TEXTS = {"type", "name", "owner"}  # the other fields of these messages
_EVERYBODY = {"ViewerCameraMessage"}

THIS_COMPUTER = "127.0.0.1"  # the default: no other computer gets in
_PORTS = 100  # tried, one after the other


def may_operate(policy: str, remote: str, local: str) -> bool:
    """Whether a browser at `remote`, which reached this computer at `local`, may command: local, everyone, nobody."""
    if policy != "local":
        return policy == "everyone"
    there, here = _address(remote), _address(local)
    return there is not None and (there.is_loopback or there == here)


class Admitted:
    """A browser's web socket `connection` that receives only admitted messages; arguments as in `is_admitted`."""

    def __init__(
        self, connection: Any, operates: bool, input_of: Callable[[str], Any], command_of: Callable[[str], Any]
    ) -> None:
        self._connection = connection
        self._operates = operates
        self._input_of, self._command_of = input_of, command_of

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def recv(self, *arguments: Any, **options: Any) -> bytes:
        """Receive the next message that is admitted."""
        while True:
            raw = await self._connection.recv(*arguments, **options)
            if isinstance(raw, bytes) and is_admitted(raw, self._operates, self._input_of, self._command_of):
                return raw


def is_admitted(
    raw: bytes, operates: bool, input_of: Callable[[str], Any], command_of: Callable[[str], Any] = lambda _: None
) -> bool:
    """Whether a raw message may be given to viser; `operates`: the browser may command.
    `input_of` and `command_of` give the handle of an input, or of a key's command, by its number; None for no such.
    """
    if len(raw) > _LONGEST:
        return False
    try:
        message = msgspec.msgpack.decode(raw)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
    if not isinstance(message, dict):
        return False
    kind = message.pop("type", None)
    if not isinstance(kind, str) or not (operates or kind in _EVERYBODY):
        return False
    fields = _FIELDS.get(kind)
    if fields is not None:
        texts = message.keys() - fields.keys()
        return (
            fields.keys() <= message.keys()
            and texts <= _TEXTS
            and all(isinstance(message[name], str) for name in texts)
            and all(_finite(message[name], length) for name, length in fields.items())
        )
    updates, number = message.get("updates"), message.get("uuid")
    if kind == _COMMAND:
        command = command_of(number) if isinstance(number, str) and message.keys() == {"uuid"} else None
        return command is not None and not command.disabled
    if kind != _INPUT or not isinstance(updates, dict) or list(updates) != ["value"] or not isinstance(number, str):
        return False
    handle = input_of(number)
    return message.keys() == {"updates", "uuid"} and handle is not None and fits(handle, updates["value"])


def fits(handle: Any, value: Any) -> bool:
    """Whether a viser input can have a browser's value: of its type, within its bounds, one of its options."""
    props = handle._impl.props
    if getattr(props, "disabled", False) or not getattr(props, "visible", True):
        return False
    options = getattr(props, "options", None)
    if options is not None:
        return isinstance(value, str) and value in options
    if isinstance(handle._impl.value, bool):
        return isinstance(value, bool)
    if isinstance(handle._impl.value, int | float):
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return False
        low, high = getattr(props, "min", None), getattr(props, "max", None)
        return (low is None or value >= low) and (high is None or value <= high)
    return False


def _finite(value: Any, length: int) -> bool:
    if length:
        return isinstance(value, list) and len(value) == length and all(_finite(one, 0) for one in value)
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _FAR


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address


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
    try:
        return bool(getattr(ipaddress.ip_address(host), kind))
    except ValueError:
        return False
