# SPDX-License-Identifier: Apache-2.0
"""The runner as launch files start it: who ends it while it still loads its libraries ends it well.

Python answers Ctrl-C during imports with an error. Nothing runs yet, so there is nothing to be put in order.
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
