# SPDX-License-Identifier: Apache-2.0
"""The runner as launch files start it, which also handles Ctrl-C while libraries are imported.

Python answers Ctrl-C during imports with an error. Nothing runs yet, so nothing needs cleaning up.
"""

import os
import signal


def main() -> int:
    """Entry point."""
    before = [(number, signal.signal(number, lambda *_: os._exit(0))) for number in (signal.SIGINT, signal.SIGTERM)]
    from pkm_control.run.runner import main as run

    for number, handler in before:
        signal.signal(number, handler)
    try:
        return run()
    finally:
        for number, _ in before:  # Python itself would take them as its default from here on
            signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    raise SystemExit(main())
