# SPDX-License-Identifier: Apache-2.0
"""Services that must not wait, of a robot on this computer: asked through a socket (`LocalService` of `node_parts.py`),
without ROS and with few imports. To connect is to ask; the answer is one packet. Sockets have the services' names in
Linux' abstract namespace, without files, and both ends ask the kernel whether the other is this user's, or root's.
"""

from __future__ import annotations

import _socket
import os
import sys

# services by the commands `pkm WORD`
AT_ONCE = {"stop": "stop", "pause": "pause", "disable": "hardware/disable", "estop": "hardware/emergency_stop"}
LONGEST = 1 << 16  # bytes of an answer

_PATIENCE = 1.0  # s, for an answer, after which ROS is asked
_INT = 4  # bytes, of three in struct ucred of linux/socket.h: process, user, group


def asked_at_once(words: list[str]) -> int | None:
    """Run `pkm WORD [--namespace NAME]`; its exit status. None: no answer here, or it has other options."""
    word, *options = words or [""]
    if word not in AT_ONCE or options[:1] not in ([], ["--namespace"]) or len(options) not in (0, 2):
        return None
    namespace = options[-1].strip("/") if options else ""
    answer = _ask(f"/{namespace}/{AT_ONCE[word]}" if namespace else f"/{AT_ONCE[word]}")
    if not answer:
        return None
    done, text = answer[:1] == b"1", answer[1:].decode(errors="replace")
    if text:
        print(text if done else f"pkm {word}: {text}", file=sys.stdout if done else sys.stderr)
    return 0 if done else 1


def _ask(service: str) -> bytes:
    try:
        line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        line.settimeout(_PATIENCE)
        line.connect(address(service))
        return line.recv(LONGEST) if is_trusted(line) else b""
    except (OSError, AttributeError):  # of other systems than Linux
        return b""


def address(service: str) -> str:
    """Of the socket of a service, by its whole name, of this user's robot in this ROS domain."""
    return f"\0pkm {os.getuid()} {os.environ.get('ROS_DOMAIN_ID') or '0'} {service}"


def elsewhere(namespace: str) -> str:
    """In which namespaces this user's robots run here, if not in this one; empty where there are none."""
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
            names = [line.rstrip("\n").partition("@")[2] for line in file]
    except OSError:  # other systems than Linux
        return ""
    start, end = address("")[1:], f"/{AT_ONCE['estop']}"
    found = {name[len(start) : -len(end)] or "/" for name in names if name.startswith(start) and name.endswith(end)}
    if not found or f"/{namespace.strip('/')}" in found:
        return ""
    return f"here, robots run in namespace {' and '.join(repr(name) for name in sorted(found))}"


def is_trusted(line: _socket.socket) -> bool:
    """Whether the process at the other end is this user's, or root's."""
    peer = line.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 3 * _INT)
    return int.from_bytes(peer[_INT : 2 * _INT], sys.byteorder) in (0, os.getuid())
