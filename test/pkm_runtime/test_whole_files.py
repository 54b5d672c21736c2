# SPDX-License-Identifier: Apache-2.0
"""Files are there whole or not at all, whatever ends the process that writes them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from pkm_runtime.whole_files import whole, write_whole

WRITER = """
import sys, time
from pkm_runtime.whole_files import whole
with whole(sys.argv[1]) as part, part.open("w") as file:
    file.write("half")
    file.flush()
    print("half", flush=True)
    for _ in range(600):  # one long sleep may begin just after the signal has come, and sleep on
        time.sleep(0.1)
"""


def test_a_file_is_written_in_the_modes_of_others(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_whole(tmp_path / "text", "größe")
    finally:
        os.umask(old)
    assert (tmp_path / "text").read_text(encoding="utf-8") == "größe"
    assert (tmp_path / "text").stat().st_mode & 0o777 == 0o640
    (tmp_path / "text").chmod(0o604)
    write_whole(tmp_path / "text", b"bytes")
    assert (tmp_path / "text").read_bytes() == b"bytes"
    assert (tmp_path / "text").stat().st_mode & 0o777 == 0o604


def test_errors_of_a_disk_name_the_file(tmp_path: Path) -> None:
    for error in (OSError(28, "No space left on device"), OSError(2, "No such file", "other")):
        with pytest.raises(OSError, match=error.strerror) as found, whole(tmp_path / "page.png"):
            raise error
        assert found.value.filename in (str(tmp_path / "page.png"), "other")
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError) as found, whole(tmp_path / "none" / "page.png"):
        pass
    assert found.value.filename == str(tmp_path / "none" / "page.png")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("before", ["old", None])
def test_who_is_ended_meanwhile_leaves_no_half_of_a_file(tmp_path: Path, number: signal.Signals, before: str) -> None:
    file = tmp_path / "page.png"
    if before:
        file.write_text(before)
    interrupted = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # which a shell's background job ignores
    command = [sys.executable, "-c", WRITER, str(file)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=interrupted)
    assert process.stdout is not None
    assert process.stdout.readline() == "half\n"
    process.send_signal(number)
    process.communicate(timeout=10.0)
    assert (file.read_text() if file.exists() else None) == before


def test_an_error_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail() -> None:
        with whole(tmp_path / "page.png") as part:
            part.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not [*tmp_path.iterdir()]


def test_the_file_that_a_link_leads_to_is_written_and_a_pipe_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"
    os.mkfifo(tmp_path / "pipe")
    heard: list[str] = []
    reader = threading.Thread(target=lambda: heard.append((tmp_path / "pipe").read_text()), daemon=True)
    reader.start()
    time.sleep(0.1)
    write_whole(tmp_path / "pipe", "told")
    reader.join(10.0)
    assert heard == ["told"]
    assert (tmp_path / "pipe").is_fifo()
