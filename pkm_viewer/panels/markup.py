# SPDX-License-Identifier: Apache-2.0
"""Pieces of HTML that the panels share. Texts are escaped here: they come from files, nodes and people."""

from __future__ import annotations

import html

RED, AMBER, GREEN, BLUE, GREY = "#c62828", "#e08600", "#2e7d32", "#1565c0", "#607d8b"
_ROW = "display:flex;align-items:center;gap:0.5em;margin:0.15em 0"
_LEAST = 0.6  # %, of a bar: that much is always seen


def escaped(text: object) -> str:
    """A text for a page."""
    return html.escape(str(text))


def block(content: str) -> str:
    """HTML in the size and with the margins that the panels have; on the right, clear of a scroll bar."""
    style = "margin:0.4em 1.6em 0.4em 0.8em;font-size:0.82em;line-height:1.35;overflow-wrap:anywhere"
    return f'<div style="{style}">{content}</div>'


def heading(text: str) -> str:
    """A line above rows."""
    return f'<div style="font-weight:600;margin:0.5em 0 0.15em;color:#37474f">{escaped(text)}</div>'


def banner(text: str) -> str:
    """A text on a red ground."""
    return (
        f'<div style="background:{RED};color:white;padding:0.45em 0.6em;margin:0.3em 0;border-radius:4px;'
        f'font-weight:600">{escaped(text)}</div>'
    )


def badge(word: str, colour: str, text: str) -> str:
    """A word on a coloured ground, and a text behind it."""
    return (
        f'<div style="margin:0.15em 0"><span style="background:{colour};color:white;border-radius:4px;'
        f'padding:0.1em 0.6em;font-weight:600">{escaped(word)}</span> {escaped(text)}</div>'
    )


def table(rows: dict[str, str]) -> str:
    """Names and values in two columns."""
    cells = (
        f'<tr><td style="color:#546e7a;padding-right:0.8em;white-space:nowrap">{escaped(name)}</td>'
        f'<td style="font-variant-numeric:tabular-nums"><b>{escaped(value)}</b></td></tr>'
        for name, value in rows.items()
    )
    return f'<table style="border-collapse:collapse">{"".join(cells)}</table>'


def bar_row(name: str, share: float, colour: str, text: str, marker: bool = False) -> str:
    """A row with a bar filled by `share` (0 to 1), a name before and a value behind; `marker`: a mark at the share."""
    percent = 100.0 * min(max(share, 0.0), 1.0)
    if marker:
        inner = f"left:calc({percent:.1f}% - 3px);width:6px;background:{colour}"
    else:
        inner = f"left:0;width:{max(percent, _LEAST):.1f}%;background:{colour}"
    return (
        f'<div style="{_ROW}"><span style="flex:0 0 38%;overflow:hidden;text-overflow:ellipsis;white-space:nowrap" '
        f'title="{escaped(name)}">{escaped(name)}</span>'
        f'<span style="flex:1 1 auto;position:relative;height:0.75em;background:#dfe5ea;border-radius:3px;'
        f'overflow:hidden"><span style="position:absolute;top:0;bottom:0;{inner}"></span></span>'
        f'<span style="flex:0 0 5.6em;text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums;color:'
        f'{RED if colour == RED else "inherit"}">{escaped(text)}</span></div>'
    )
