# SPDX-License-Identifier: Apache-2.0
"""The page in a browser: pressed, typed into and looked at as by a person."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .chromium import Chromium

SLOW = 60.0  # s: a software renderer on a busy computer
FIND = """(() => {
  const shown = e => e.getClientRects().length > 0;
  const text = e => [...e.childNodes].filter(n => n.nodeType === 3).map(n => n.textContent).join('').trim();
  const label = %s, wanted = %s;
  for (const e of document.querySelectorAll('label, div, span, button, legend, p')) {
    if (text(e) !== label || !shown(e)) continue;
    for (let row = e; row && row !== document.body; row = row.parentElement) {
      const found = row.matches(wanted) ? row : [...row.querySelectorAll(wanted)].filter(shown).pop();
      if (!found) continue;
      found.scrollIntoView({block: 'center'});
      const box = found.getBoundingClientRect();
      return [box.x + box.width / 2, box.y + box.height / 2];
    }
  }
  return null;
})()"""
_NO_NOTES = """document.head.insertAdjacentHTML('beforeend',
  '<style>.mantine-Notifications-root {display: none !important}</style>')"""  # viser's own, which come and go


class PageDriver:
    """Opens a page, and acts on it.

    Args:
        browser: that shows it.
        url: of the page.
        wait: waits until a condition holds, and returns its value.
    """

    def __init__(self, browser: Chromium, url: str, wait: Callable[[Callable[[], Any]], Any]) -> None:
        self.browser, self._wait = browser, wait
        browser.open("about:blank")  # the page before shall not look for its server
        browser.events.clear()
        browser.open(url)
        wait(lambda: browser.run("document.querySelector('canvas') !== null"))
        browser.run(_NO_NOTES)

    def find(self, label: str, kind: str) -> tuple[float, float] | None:
        """Where the control with a label is, after scrolling to it; None where there is none."""
        return self.browser.run(FIND % (json.dumps(label), json.dumps(kind)))

    def press(self, label: str, kind: str = "button") -> None:
        """Press a button, or what is one without being called so."""
        self.browser.click(*self._wait(lambda: self.at_rest(label, kind)))

    def at_rest(self, label: str, kind: str) -> tuple[float, float] | None:
        """Where a control is, once it stays there and nothing lies over it: folders take time to unfold."""
        place = self.find(label, kind)
        time.sleep(0.1)
        if place is None or self.find(label, kind) != place:
            return None
        x, y = place
        on_top = f"document.elementFromPoint({x}, {y})?.closest({json.dumps(kind)}) != null"
        return place if self.browser.run(on_top) else None

    def type(self, label: str, text: str) -> None:
        """Type into the field of a control, and leave it."""
        self._wait(lambda: self._clicked(label, "input[type=text], input:not([type])"))
        self.browser.run("document.activeElement.select()")
        self.browser.call("Input.insertText", text=text)
        self.browser.key("Enter")
        self.browser.run("document.activeElement.blur()")

    def choose(self, label: str, option: str) -> None:
        place = f"""(() => {{
          const one = [...document.querySelectorAll('[role=option]')].find(e => e.textContent.trim() === {option!r});
          if (!one || !one.getClientRects().length) return null;
          one.scrollIntoView({{block: 'nearest'}});
          const box = one.getBoundingClientRect();
          return [box.x + box.width / 2, box.y + box.height / 2];
        }})()"""

        def listed() -> Any:
            return self._clicked(label, "input") and self.browser.run(place)

        self.browser.click(*self._wait(listed))

    def _clicked(self, label: str, kind: str) -> bool:
        """Click into a field; False where the page has moved under the pointer."""
        place = self.find(label, kind)
        if place is None:
            return False
        self.browser.click(*place)
        time.sleep(0.2)
        return bool(self.browser.run("document.activeElement.tagName === 'INPUT'"))

    def tick(self, label: str) -> None:
        self.browser.click(*self._wait(lambda: self.at_rest(label, "input[type=checkbox]")))

    def open_folder(self, label: str, control: str, kind: str = "button") -> None:
        """Open a folder that holds a control of a kind, if it is closed."""
        if self.find(control, kind) is not None:
            return
        place = f"""(() => {{
          const one = [...document.querySelectorAll('*')].find(e => [...e.childNodes].some(
            n => n.nodeType === 3 && n.textContent.trim() === {label!r}));
          if (!one) return null;
          one.scrollIntoView({{block: 'center'}});
          const box = one.getBoundingClientRect();
          return [box.x + box.width / 2, box.y + box.height / 2];
        }})()"""
        self.browser.click(*self._wait(lambda: self.browser.run(place)))
        self._wait(lambda: self.find(control, kind))
        time.sleep(0.6)  # it unfolds

    def text(self) -> str:
        return str(self.browser.run("document.body.innerText"))

    def answer(self) -> str:
        """What the last request was answered, where that is shown."""
        return str(self.browser.run("[...document.querySelectorAll('[data-answer]')].map(e => e.textContent).join('')"))

    def canvas(self) -> tuple[int, int, int, int]:
        """The part of the screen that the picture takes: left, top, right, bottom."""
        return tuple(  # type: ignore[return-value]
            round(value)
            for value in self.browser.run("""(() => {
              const box = document.querySelector('canvas').getBoundingClientRect();
              return [box.left, box.top, box.right, box.bottom];
            })()""")
        )

    def still(self) -> np.ndarray:
        """The picture, when it has come to rest; the robot stands still meanwhile."""
        last, deadline = self.browser.picture(), time.monotonic() + SLOW
        while time.monotonic() < deadline:
            time.sleep(0.4)
            now = self.browser.picture()
            if now.shape == last.shape and np.mean(np.abs(now.astype(int) - last) > 8) < 1e-4:
                return now
            last = now
        raise AssertionError("the picture does not come to rest")
