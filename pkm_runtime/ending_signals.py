# SPDX-License-Identifier: Apache-2.0
"""Signals that end a process which does not handle them: each path out has to disable the drives."""

from __future__ import annotations

import signal

_NAMES = ("HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "ALRM", "VTALRM", "PROF", "IO", "PWR", "STKFLT", "XCPU")
ENDING = (
    *(getattr(signal, f"SIG{name}") for name in _NAMES if hasattr(signal, f"SIG{name}")),
    *(range(signal.SIGRTMIN, signal.SIGRTMAX + 1) if hasattr(signal, "SIGRTMIN") else ()),
)
"""Not among them: those that cannot be heard, those of a program's own errors, and those that Python ignores."""
