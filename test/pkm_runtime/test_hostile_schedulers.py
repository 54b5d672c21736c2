# SPDX-License-Identifier: Apache-2.0
"""What listens at the address of a scheduler and is none is refused in time, in one error."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from pkm_runtime import sweeps
from pkm_runtime.errors import UsageError
from pkm_runtime.sweeps import Sweeps

PATIENCE = 1.0  # s


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """Before a test has its clock: it takes long on a busy computer."""
    pytest.importorskip("distributed")


@contextlib.contextmanager
def listening(says: Callable[[socket.socket], None]) -> Iterator[str]:
    """The address of a server that says something to whoever comes."""

    def serve() -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                there, _ = server.accept()
                threading.Thread(target=answer, args=(there,), daemon=True).start()

    def answer(there: socket.socket) -> None:
        with there, contextlib.suppress(OSError):
            says(there)
            over.wait()

    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        try:
            yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        finally:
            over.set()
            server.shutdown(socket.SHUT_RDWR)


def noise(there: socket.socket) -> None:
    while True:
        there.sendall(os.urandom(65536))


def page(there: socket.socket) -> None:
    there.recv(4096)
    there.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def drip(there: socket.socket) -> None:
    there.sendall((4096).to_bytes(8, "little"))
    while True:
        there.sendall(b"x")
        time.sleep(0.1)


@pytest.mark.parametrize(
    "says",
    [
        pytest.param(lambda there: None, id="nothing"),
        pytest.param(lambda there: there.close(), id="goodbye"),
        pytest.param(lambda there: there.sendall((2**62).to_bytes(8, "little")), id="a huge message"),
        pytest.param(noise, id="noise"),
        pytest.param(page, id="a web server"),
        pytest.param(drip, id="one byte at a time"),
    ],
)
def test_what_is_no_scheduler_is_refused_in_time(
    says: Callable[[socket.socket], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps, "_ANSWERS_WITHIN", PATIENCE)
    began = time.monotonic()
    with listening(says) as address, pytest.raises(UsageError, match="is not a Dask scheduler"):
        Sweeps(scheduler=address)
    assert time.monotonic() - began < PATIENCE + 10.0


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:1", "tcp://127.0.0.1", "tcp://127.0.0.1:99999999", "http://127.0.0.1:1", "", "\0"]
)
def test_where_nobody_listens(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "_ANSWERS_WITHIN", PATIENCE)
    with pytest.raises(UsageError, match="there is no answer that a Dask scheduler gives"):
        Sweeps(scheduler=address)


def greeting() -> bytes:
    """What a scheduler says first."""
    from distributed.comm.utils import to_frames

    says = asyncio.run(to_frames({"compression": None, "python": (3, 11), "pickle-protocol": 5}))
    sizes = [len(says), *(len(frame) for frame in says)]
    body = struct.pack(f"<{len(sizes)}Q", *sizes) + b"".join(map(bytes, says))
    return struct.pack("<Q", len(body)) + body


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(lambda there: None, id="nothing"),
        pytest.param(lambda there: there.sendall((2**62).to_bytes(8, "little")), id="a huge message"),
        pytest.param(noise, id="noise"),
    ],
)
def test_what_greets_as_a_scheduler_and_then_fails_is_one_error(
    after: Callable[[socket.socket], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the client is thrown away: closing it would wait again, and show a traceback."""
    monkeypatch.setattr(sweeps, "_ANSWERS_WITHIN", PATIENCE)
    hello = greeting()

    def says(there: socket.socket) -> None:
        there.sendall(hello)
        after(there)

    began = time.monotonic()
    with listening(says) as address:
        with pytest.raises(UsageError, match="there is no answer that a Dask scheduler gives"):
            Sweeps(scheduler=address)
        gc.collect()
    assert time.monotonic() - began < PATIENCE + 5.0
