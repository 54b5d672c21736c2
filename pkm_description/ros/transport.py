# SPDX-License-Identifier: Apache-2.0
"""Transport between the nodes of a robot: over UDP, never through shared memory.

A process that is killed, or stands still, while it holds its port's lock in shared memory blocks every writer to that
port for a second: Fast DDS gives up after 1000 ms, which no setting changes. A publishing loop, and with it the
machine, would stand as long. Over UDP nobody waits for a reader, at the same speed.

ROS 2's discovery range LOCALHOST adds shared memory to any profile. So where discovery stays on this computer, the
range is left to the profile (SYSTEM_DEFAULT), which does the same without it. A command that joins is told of every
topic and service at once: buffers of the system's usual size dropped some of that.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from pkm_runtime.whole_files import safe_folder

RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
PROFILES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")  # in older and in newer releases
_HERE, _NETWORK, _PROFILE = "LOCALHOST", "SUBNET", "SYSTEM_DEFAULT"
_FAST_DDS = ("", "rmw_fastrtps_cpp", "rmw_fastrtps_dynamic_cpp")  # the first: the one that ROS 2 has by default
_AFTER_ALL = 2**31  # s since 1970: 32 bits of a stamp
_SAYS_OTHERWISE = (*PROFILES, "ROS_STATIC_PEERS", "ROS_LOCALHOST_ONLY", "FASTDDS_BUILTIN_TRANSPORTS")


def transport_environment(environment: Mapping[str, str], default: str = _HERE) -> dict[str, str]:
    """Variables to add to an environment for nodes that never wait for each other.

    A profile, peers, transports or other middleware already set stay. `default` is the discovery range where none is
    set, LOCALHOST or SUBNET.
    """
    asked = environment.get(RANGE) or default
    if environment.get("RMW_IMPLEMENTATION", "") not in _FAST_DDS or any(environment.get(k) for k in _SAYS_OTHERWISE):
        return {RANGE: asked}
    if asked == _HERE:
        return {RANGE: _PROFILE, **_profile("fastdds_this_computer.xml")}
    if asked == _NETWORK:
        return {RANGE: asked, **_profile("fastdds_network.xml")}
    return {RANGE: asked}


def log_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The same for ROS's own logs: no node starts where their folder cannot be made, as without a home."""
    home = environment.get("HOME")
    if environment.get("ROS_LOG_DIR") or environment.get("ROS_HOME"):
        return {}
    with contextlib.suppress(OSError):
        if home:
            folder = Path(home) / ".ros" / "log"
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return {}
    with contextlib.suppress(OSError):
        return {"ROS_LOG_DIR": str(safe_folder(Path(tempfile.gettempdir()) / f"pkm_{os.getuid()}") / "log")}
    return {}


def clock_problem() -> str:
    """Why no message can be sent now; empty where one can."""
    if (now := time.time()) < _AFTER_ALL:
        return ""
    today, last = (time.strftime("%d %B %Y", time.gmtime(at)) for at in (now, _AFTER_ALL))
    return f"this computer's clock says {today}: ROS 2 has no times after {last}; set it"


def _profile(name: str) -> dict[str, str]:
    return dict.fromkeys(PROFILES, str(Path(__file__).with_name(name)))
