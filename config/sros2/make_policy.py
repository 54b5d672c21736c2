# SPDX-License-Identifier: Apache-2.0
"""Write `policy.xml`: what each process of a robot may publish, hear, serve and ask, as SROS 2 takes it.

    ./pkm python config/sros2/make_policy.py

Every node is run, and asked for the topics, services and actions that it has; so nothing is forgotten that a node comes
to use, and nothing is allowed that none uses. A process has one enclave, with a profile for each node in it: machine
and controller are in one, and each in its own where the other is somebody else's. A client of a robot (who sends
motions, jogs, asks services) has an enclave too, with the other ends of what the nodes offer to people.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from xml.dom import minidom
from xml.etree import ElementTree

import rclpy
from rclpy.node import Node, NodeNameNonExistentError
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState

from pkm_bringup import bringup
from pkm_description.ros.transport import transport_environment

FILE = Path(__file__).with_name("policy.xml")
CLIENT = "client"
OFFERED = {  # to people: what a client may publish or ask of these nodes
    "controller": ("topics", "services", "actions"),
    "hardware": ("topics",),
    "kinematics": ("services",),
    "dynamics": ("services", "topics"),
    "joystick": ("topics",),
    "motion_player": ("services",),
}
POWER = {f"/hardware/{name}" for name in ("enable", "disable", "emergency_stop", "reset")}  # every client may ask for
FOR_PEOPLE = ("page", "joystick", "motion_player")  # nodes that publish what a client may, too
RUNS = (  # options, and the processes that are looked at
    (("--motion=circle",), None),
    (("--controller=none", "--page=false"), ("hardware",)),
    (("--hardware=none", "--page=false", "--motion=none"), ("controller",)),
)
_OWN = ("describe_parameters", "get_parameter", "get_type_description", "list_parameters", "set_parameters")
_GROUPS = (
    ("topics", "topic", ("publish", "subscribe")),
    ("services", "service", ("reply", "request")),
    ("actions", "action", ("execute", "call")),
)
_ACTION = "/_action/"
_DOMAIN = "73"
_PATIENCE = 60.0  # s
_AT_REST = 8.0  # s in which nothing comes to the graph
Found = dict[str, dict[str, set[str]]]  # of each node: names by what it does with them
Enclaves = dict[str, Found]  # by process


@contextmanager
def robot(*more: str) -> Iterator[None]:
    """Nodes of the Delta at work, in a domain that nobody else is in."""
    options = [
        "delta",
        "--cycles=100000",
        "--stay=true",
        "--rate=200",
        "--report=",
        "--browser=false",
        "--joystick",
        "--realtime-priority=0",
        *more,
    ]
    command = [sys.executable, "-m", "pkm_bringup.runner", *options]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        yield
    finally:
        running.terminate()
        running.wait(20.0)


def look(wanted: set[str], expected: Found | None = None) -> Found:
    """What each node of the running robot has had, when all are there and nothing new comes, or all is as expected."""
    rclpy.init()
    observer = Node("observer")
    # heard, so that dynamics makes them, and hears for that what it does not hear otherwise
    observer.create_subscription(JointState, "reference_efforts", lambda _: None, qos_profile_sensor_data)
    deadline, since, before = time.monotonic() + _PATIENCE, time.monotonic(), Found()
    try:
        while time.monotonic() < deadline:
            rclpy.spin_once(observer, timeout_sec=0.1)
            now = dict(before)
            for name in sorted(wanted & set(observer.get_node_names())):
                with suppress(NodeNameNonExistentError):  # its name came before what it has
                    now[name] = _joined(_of(observer, name), before.get(name, {}))
            if now != before:
                before, since = now, time.monotonic()
            at_rest = time.monotonic() - since > _AT_REST
            if set(now) == wanted and (at_rest if expected is None else now == expected):
                return now
        if set(now) == wanted:
            return now
        raise SystemExit(f"these nodes did not come: {', '.join(sorted(wanted - set(before)))}")
    finally:
        observer.destroy_node()
        rclpy.shutdown()


def _of(observer: Node, name: str) -> dict[str, set[str]]:
    kinds = {"publish": "publisher", "subscribe": "subscriber", "reply": "service", "request": "client"}
    found: dict[str, set[str]] = {"execute": set(), "call": set()}
    for use, kind in kinds.items():
        pairs = getattr(observer, f"get_{kind}_names_and_types_by_node")(name, "/")
        found[use] = {topic for topic, _ in pairs}
    for use, action in (("reply", "execute"), ("request", "call")):
        found[action] = {topic.split(_ACTION)[0] for topic in found[use] if _ACTION in topic}
    return {use: {topic for topic in topics if _ACTION not in topic} for use, topics in found.items()}


def _joined(one: dict[str, set[str]], other: dict[str, set[str]]) -> dict[str, set[str]]:
    """What is in either: the player hears the machine only while a motion runs."""
    return {use: names | other.get(use, set()) for use, names in one.items()}


def client_of(found: Found) -> dict[str, set[str]]:
    """What somebody may do who uses a robot: the other ends of what its nodes offer, and hearing all they publish."""
    mine: dict[str, set[str]] = {use: set() for use in ("publish", "subscribe", "reply", "request", "execute", "call")}
    others = {topic for name, uses in found.items() for topic in uses["publish"] if name not in FOR_PEOPLE}
    mine["publish"] |= {"/rosout", "/parameter_events"}
    mine["subscribe"] |= {topic for uses in found.values() for topic in uses["publish"]}
    mine["request"] |= POWER & found["hardware"]["reply"]
    for name, offers in OFFERED.items():
        uses = found[name]
        if "services" in offers:
            own = tuple(f"/{name}/{service}" for service in _OWN)
            mine["request"] |= {service for service in uses["reply"] if not service.startswith(own)}
        if "topics" in offers:
            mine["publish"] |= uses["subscribe"] - others
        if "actions" in offers:
            mine["call"] |= uses["execute"]
    return mine


def policy(enclaves: Enclaves) -> str:
    """The policy of processes as a text (XML, SROS 2 policy schema 0.2.0)."""
    root = ElementTree.Element("policy", version="0.2.0")
    all_of_them = ElementTree.SubElement(root, "enclaves")
    for process, nodes in sorted(enclaves.items()):
        enclave = ElementTree.SubElement(all_of_them, "enclave", path=f"{bringup.ENCLAVES}/{process}")
        profiles = ElementTree.SubElement(enclave, "profiles")
        for name, uses in sorted(nodes.items()):
            profile = ElementTree.SubElement(profiles, "profile", ns="/", node=name)
            for group, entry, kinds in _GROUPS:
                for use in kinds:
                    if uses[use]:
                        allowed = ElementTree.SubElement(profile, group, {use: "ALLOW"})
                        for topic in sorted(uses[use]):
                            ElementTree.SubElement(allowed, entry).text = topic.lstrip("/")
    text = minidom.parseString(ElementTree.tostring(root)).toprettyxml(indent="  ")
    return text.replace('<?xml version="1.0" ?>', '<?xml version="1.0" encoding="UTF-8"?>')


def read(text: str) -> Enclaves:
    """What a policy says."""
    found: Enclaves = {}
    for enclave in ElementTree.fromstring(text.encode()).iter("enclave"):
        nodes = found.setdefault(enclave.get("path", "").rpartition("/")[2], {})
        for profile in enclave.iter("profile"):
            nodes[profile.get("node", "")] = {
                use: {f"/{one.text}" for one in profile.iterfind(f"{group}[@{use}='ALLOW']/{entry}")}
                for group, entry, kinds in _GROUPS
                for use in kinds
            }
    return found


def made(expected: str = "") -> str:
    """The policy of the nodes as they are now; where one is expected, they get a minute to be so."""
    os.environ.update(ROS_DOMAIN_ID=_DOMAIN, ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST")
    os.environ.update(transport_environment(os.environ))
    wanted = read(expected) if expected else {}
    enclaves: Enclaves = {}
    for options, processes in RUNS:
        names = bringup.defaults(joystick="true", **dict(one.strip("-").split("=") for one in options))
        specs = [*bringup.nodes(names), bringup.DESCRIPTION]
        of = {spec.name: spec.nodes for spec in specs if processes is None or spec.name in processes}
        nodes = {name for held in of.values() for name in held}
        known = {name: uses for process in of for name, uses in wanted.get(process, {}).items()}
        with robot(*options):
            found = look(nodes, known if expected else None)
        enclaves |= {process: {name: found[name] for name in held} for process, held in of.items()}
        if processes is None:
            enclaves[CLIENT] = {CLIENT: client_of(found)}
    return policy(enclaves)


def main() -> int:
    """Write the file."""
    text = made()
    FILE.write_text(text, encoding="utf-8")
    print(f"{FILE}: {len(text.splitlines())} lines")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
