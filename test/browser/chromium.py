# SPDX-License-Identifier: Apache-2.0
"""A Chromium without a screen, driven over its debugging protocol (Chrome DevTools Protocol) through a web socket.

Only what the tests of the page need: open an address at a size, see it, run a script in it, use its mouse and touch.
"""

from __future__ import annotations

import base64
import io
import itertools
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from websockets.sync.client import connect

_CODES = {"Enter": 13, "Escape": 27}
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
    "--remote-debugging-port=0",
)

# a second download is asked about, unless it follows a click within seconds, which a slow picture may not let it
_PREFERENCES = {"profile": {"default_content_setting_values": {"automatic_downloads": 1}}}


def program() -> str | None:
    """The browser's program; None where there is none."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


_FRAMES = "(async () => { for (let k = 0; k < 3; k++) await new Promise(requestAnimationFrame); })()"


class Chromium:
    """A browser process with one page.

    Args:
        width, height: of the page, in pixels.
        touch: whether it is a phone's.
    """

    def __init__(self, width: int = 1280, height: int = 800, touch: bool = False) -> None:
        found = program()
        assert found is not None
        self._profile = tempfile.TemporaryDirectory(prefix="pkm_browser_", ignore_cleanup_errors=True)
        folder = Path(self._profile.name)
        (folder / "Default").mkdir()
        (folder / "Default" / "Preferences").write_text(json.dumps(_PREFERENCES))
        options = (*_OPTIONS, f"--user-data-dir={folder}", f"--window-size={width},{height}")
        self._process = subprocess.Popen(
            [found, *options, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        port = int(_wait(lambda: _first_line(folder / "DevToolsActivePort"), 30.0))
        pages = json.loads(urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=10).read())
        page = next(one for one in pages if one["type"] == "page")
        self._socket = connect(page["webSocketDebuggerUrl"], max_size=None, ping_interval=None)
        self._numbers = itertools.count(1)
        self.events: list[dict[str, Any]] = []
        self.downloads = folder / "downloads"
        self.downloads.mkdir()
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))
        self.size(width, height, touch)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask the browser for something, and return its answer."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=60.0))
            if message.get("id") == number:
                assert "error" not in message, f"{method}: {message['error']}"
                return dict(message["result"])
            self.events.append(message)

    def size(self, width: int, height: int, touch: bool = False) -> None:
        """Give the page a size in pixels."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1.0, mobile=touch)

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def run(self, script: str) -> Any:
        """The value of an expression of JavaScript in the page; promises are waited for."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, script: str, patience: float = 30.0) -> Any:
        """Wait until an expression is true in the page, and return its value."""
        return _wait(lambda: self.run(script), patience, script)

    def picture(self) -> np.ndarray:
        """What is seen once three more frames are drawn: (height, width, 3), 0 to 255."""
        self.run(_FRAMES)
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))

    def mouse(self, kind: str, x: float, y: float, buttons: int = 0) -> None:
        """Move (`mouseMoved`), press (`mousePressed`) or let go (`mouseReleased`)."""
        button = "left" if kind != "mouseMoved" or buttons else "none"
        self.call(
            "Input.dispatchMouseEvent",
            type=kind,
            x=x,
            y=y,
            button=button,
            buttons=buttons,
            clickCount=int(bool(buttons)),
        )

    def key(self, name: str) -> None:
        """Press a key that writes nothing."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=_CODES[name])

    def click(self, x: float, y: float) -> None:
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, 1)
        self.mouse("mouseReleased", x, y)

    def drag(self, start: tuple[float, float], end: tuple[float, float], steps: int = 12) -> None:
        self.mouse("mouseMoved", *start)
        time.sleep(0.1)
        self.mouse("mouseMoved", start[0] + 0.5, start[1])
        self.mouse("mousePressed", *start, buttons=1)
        for share in np.linspace(0.0, 1.0, steps + 1)[1:]:
            self.mouse("mouseMoved", *(s + share * (e - s) for s, e in zip(start, end, strict=True)), buttons=1)
            time.sleep(0.03)
        self.mouse("mouseReleased", *end)

    def close(self) -> None:
        self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._profile.cleanup()


def _first_line(file: Path) -> str:
    return file.read_text().partition("\n")[0] if file.is_file() else ""


def _wait(condition: Callable[[], Any], patience: float, what: str = "the browser") -> Any:
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)
    return value
