# SPDX-License-Identifier: Apache-2.0
"""Who may command from the page, and which messages are accepted from a browser.

viser applies whatever a browser sends: a message may set any field of an input, on behalf of anybody. So messages are
read here first. From everybody the page takes the pose of their camera; from those who may command, values that the
inputs on their own page can have, keys that stand for a command, and gizmo motions. Everything else is dropped.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Callable
from typing import Any

import msgspec

_LONGEST = 4096  # bytes of a message: a camera takes two hundred
_FAR = 1e9  # no number of a camera or a gizmo is larger
_INPUT, _COMMAND = "GuiUpdateMessage", "CommandTriggerMessage"
_FIELDS: dict[str, dict[str, int]] = {  # kind of message: how many numbers each field has, 0 for a single one
    "ViewerCameraMessage": {
        "wxyz": 4,
        "position": 3,
        "look_at": 3,
        "up_direction": 3,
        "fov": 0,
        "near": 0,
        "far": 0,
        "image_height": 0,
        "image_width": 0,
    },
    "TransformControlsUpdateMessage": {"wxyz": 4, "position": 3},
    "TransformControlsDragStartMessage": {},
    "TransformControlsDragEndMessage": {},
}
_TEXTS = {"type", "name", "owner"}  # the other fields of these messages
_EVERYBODY = {"ViewerCameraMessage"}


def may_operate(policy: str, remote: str, local: str) -> bool:
    """Whether a browser may command under a policy: local (browsers on this computer), everyone, or nobody.
    `remote` is the browser's address, `local` the address of this computer that it reached.
    """
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
        """All else of the connection."""
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
    """Whether a value is a finite number, or a list of `length` of them."""
    if length:
        return isinstance(value, list) and len(value) == length and all(_finite(one, 0) for one in value)
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _FAR


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address as a number; IPv4 that is written as IPv6 is IPv4."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address
