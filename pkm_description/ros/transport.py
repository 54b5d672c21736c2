# SPDX-License-Identifier: Apache-2.0
"""How the nodes of a robot reach each other: over UDP, never through shared memory.

A process that is killed, or stands still, while it holds the lock of its port in shared memory keeps every writer to
that port for a second: Fast DDS gives up the lock after 1000 ms, and no setting changes that. A loop that publishes
would stand for as long, and with it the machine. Over UDP nobody waits for a reader, and messages take no longer.

The discovery range LOCALHOST of ROS 2 adds shared memory to whatever a profile says. So where discovery stays on this
computer, the range is left to the profile (SYSTEM_DEFAULT), which does the same without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
PROFILES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")  # in older and in newer releases
_HERE, _NETWORK, _PROFILE = "LOCALHOST", "SUBNET", "SYSTEM_DEFAULT"
_FAST_DDS = ("", "rmw_fastrtps_cpp", "rmw_fastrtps_dynamic_cpp")  # the first: the one that ROS 2 has by default
_SAYS_OTHERWISE = (*PROFILES, "ROS_STATIC_PEERS", "ROS_LOCALHOST_ONLY", "FASTDDS_BUILTIN_TRANSPORTS")


def transport_environment(environment: Mapping[str, str], default: str = _HERE) -> dict[str, str]:
    """Variables for nodes that shall not wait for each other, to add to an environment.

    Where the environment has a profile, peers or transports of its own, or another middleware, these stay.

    Args:
        environment: what is set.
        default: the discovery range where none is set, LOCALHOST or SUBNET.

    Returns:
        What to add or to replace.
    """
    asked = environment.get(RANGE) or default
    if environment.get("RMW_IMPLEMENTATION", "") not in _FAST_DDS or any(environment.get(k) for k in _SAYS_OTHERWISE):
        return {RANGE: asked}
    if asked == _HERE:
        return {RANGE: _PROFILE, **_profile("fastdds_this_computer.xml")}
    if asked == _NETWORK:
        return {RANGE: asked, **_profile("fastdds_network.xml")}
    return {RANGE: asked}


def _profile(name: str) -> dict[str, str]:
    return dict.fromkeys(PROFILES, str(Path(__file__).with_name(name)))
