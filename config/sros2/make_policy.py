# SPDX-License-Identifier: Apache-2.0
"""Write `policy.xml`: what each node of a robot may publish, hear, serve and ask, as SROS 2 takes it.

    ./pkm python config/sros2/make_policy.py

Every node is run once, and asked for the topics, services and actions that it has; so nothing is forgotten that a node
comes to use, and nothing is allowed that none uses. A client of a robot (who sends motions, jogs, asks services) has an
enclave of its own, with the other ends of what the nodes offer to people.
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

from pkm_control.run import bringup

FILE = Path(__file__).with_name("policy.xml")
CLIENT = "client"
OFFERED = {  # to people: what a client may publish or ask of these nodes
    "controller": ("topics", "services", "actions"),
    "kinematics": ("services",),
    "dynamics": ("services", "topics"),
    "joystick": ("topics",),
    "motion_player": ("services",),
}
SAFETY = {"/hardware/emergency_stop", "/hardware/reset"}  # may be asked for by every client
_OWN = ("describe_parameters", "get_parameter", "get_type_description", "list_parameters", "set_parameters")
_ACTION = "/_action/"
_DOMAIN = "73"
_PATIENCE = 60.0  # s
_AT_REST = 8.0  # s in which nothing comes to the graph
Found = dict[str, dict[str, set[str]]]  # of each node: names by what it does with them


@contextmanager
def robot() -> Iterator[None]:
    """All nodes of the Delta at work, in a domain that nobody else is in."""
    options = [
        "delta",
        "--motion=circle",
        "--cycles=100000",
        "--stay=true",
        "--rate=200",
        "--report=",
        "--browser=false",
        "--joystick",
    ]
    command = [sys.executable, "-m", "pkm_control.run.runner", *options]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        yield
    finally:
        running.terminate()
        running.wait(20.0)


def look(expected: str = "") -> Found:
    """What each node of the running robot has had, when all are there and nothing new comes, or all is as expected."""
    wanted = {spec.name for spec in (*bringup.NODES, bringup.DESCRIPTION)}
    rclpy.init()
    observer = Node("observer")
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
            if set(now) == wanted and (at_rest if not expected else policy(now) == expected):
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
    others = {topic for name, uses in found.items() for topic in uses["publish"] if name != CLIENT}
    mine["publish"] |= {"/rosout", "/parameter_events"}
    mine["subscribe"] |= {topic for uses in found.values() for topic in uses["publish"]}
    mine["request"] |= SAFETY & found["hardware"]["reply"]
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


def policy(found: Found) -> str:
    """The policy of nodes as a text (XML, SROS 2 policy schema 0.2.0)."""
    root = ElementTree.Element("policy", version="0.2.0")
    enclaves = ElementTree.SubElement(root, "enclaves")
    for name, uses in sorted({**found, CLIENT: client_of(found)}.items()):
        enclave = ElementTree.SubElement(enclaves, "enclave", path=f"{bringup.ENCLAVES}/{name}")
        profile = ElementTree.SubElement(ElementTree.SubElement(enclave, "profiles"), "profile", ns="/", node=name)
        for group, entry, kinds in (
            ("topics", "topic", ("publish", "subscribe")),
            ("services", "service", ("reply", "request")),
            ("actions", "action", ("execute", "call")),
        ):
            for use in kinds:
                if uses[use]:
                    allowed = ElementTree.SubElement(profile, group, {use: "ALLOW"})
                    for topic in sorted(uses[use]):
                        ElementTree.SubElement(allowed, entry).text = topic.lstrip("/")
    text = minidom.parseString(ElementTree.tostring(root)).toprettyxml(indent="  ")
    return text.replace('<?xml version="1.0" ?>', '<?xml version="1.0" encoding="UTF-8"?>')


def made(expected: str = "") -> str:
    """The policy of the nodes as they are now; where one is expected, they get a minute to be so."""
    os.environ.update(ROS_DOMAIN_ID=_DOMAIN, ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST")
    with robot():
        return policy(look(expected))


def main() -> int:
    """Write the file."""
    text = made()
    FILE.write_text(text, encoding="utf-8")
    print(f"{FILE}: {len(text.splitlines())} lines")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
