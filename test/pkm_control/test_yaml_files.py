# SPDX-License-Identifier: Apache-2.0
"""Files in YAML that are nonsense: one error soon, with file, line and key, whoever reads them."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pkm_control.controllers.force_task import read_force_file
from pkm_control.conveyor.conveyor import read_conveyors
from pkm_control.keep_out import read_keep_outs
from pkm_control.tool import read_tools
from pkm_description import PkmError, load_mechanism
from pkm_hardware.machine_file import homing_of, read_machine_file, scale_of
from pkm_runtime.errors import ConfigurationError

SOON = 5.0  # s, on a busy computer

MACHINE = """
machine: servos
rate: 50
port: /dev/ttyUSB0
defaults: {sign: 1, offset: 0.1, lower: -1.0, upper: 1.0, velocity: 2, acceleration: 1e2}
actuators:
  left: {id: 1, homing: {method: switch, direction: 1, speed: 0.1, at: 0.0, order: 1}}
  right: {id: 2, offset: -0.1}
"""
FORCE = """
task: {rpy: [0, 0, 0.1], stiffness: 1000, contact_stiffness: 1e5, force_axes: [z], wrench: [0, 0, 1, 0, 0, 0]}
sensor: {frame: tool, rpy: [0, 0, 0], xyz: [0, 0, 0.1], noise: 0.1}
surroundings:
  points: [[0, 0, 0], [0, 0.1, 0]]
  peg: {radius: 0.01, length: 0.1, tip: [0, 0, -0.1], axis: [0, 0, -1]}
  planes:
    table: {point: [0, 0, -1], normal: [0, 0, 1], stiffness: 1e5, damping: 10, friction: 0.1, creep: 0.001,
            hole: {mouth: [0, 0, -1], radius: 0.02, depth: 0.1}}
"""
KEEP_OUT = """
margin: 0.01
keep_outs:
  box: {center: [0, 0, -1], size: [0.1, 0.1, 0.1], rpy: [0, 0, 0], radius: 0.01}
  rod: {from: [0, 0, -1], to: [0, 0, -2], radius: 0.01}
tool: {tip: {center: [0, 0, 0], size: [0.1, 0.1, 0.1]}}
"""
TOOLS = "tools: {gripper: {xyz: [0, 0, -0.1], rpy: [0, 0, 0], mass: 0.2, com: [0, 0, 0]}}\n"
CONVEYORS = """
conveyors:
  belt: {direction: [0, 1, 0], window: [-0.1, 0.1], metres_per_unit: 1e-4, origin: [0, 0, 0], topic: t, joint: j,
         offset: 0, latency: 0, smoothing: 0.1, max_speed: 1, max_acceleration: 1, drift: 0.01, jump: 0.01,
         deviation: 0.01, silence: 0.1, simulated: {speed: 0.1, rate: 100, jitter: 0}}
"""


def read_machine(path: str) -> None:
    file = read_machine_file(path)
    sections = list(file.actuators.values())
    five_bar = load_mechanism("five_bar")  # two drives
    scale_of(sections, five_bar, [1.0] * len(sections), [0.0] * len(sections))
    homing_of(sections, five_bar)


READERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "machine": (read_machine, MACHINE),
    "force": (read_force_file, FORCE),
    "keep-out": (read_keep_outs, KEEP_OUT),
    "tools": (read_tools, TOOLS),
    "conveyors": (read_conveyors, CONVEYORS),
}
every_reader = pytest.mark.parametrize(("read", "text"), READERS.values(), ids=READERS)


def written(tmp_path: Path, text: str | bytes) -> str:
    path = tmp_path / "file.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode(errors="surrogatepass"))
    return str(path)


@every_reader
def test_a_file_with_numbers_as_everybody_writes_them_is_read(read: Any, text: str, tmp_path: Path) -> None:
    read(written(tmp_path, text))


@every_reader
def test_a_file_that_has_changed_is_read_again(read: Any, text: str, tmp_path: Path) -> None:
    read(written(tmp_path, text))
    with pytest.raises(ConfigurationError):
        read(written(tmp_path, "nonsense: 1"))


BAD = {
    "a key twice": ("rate: 1\nother: 2\nrate: 3\n", 3, "the key 'rate' appears twice"),
    "brackets": ("a:\n  " + "[" * 20_000, 2, "nests deeper"),
    "braces": ("{" * 20_000, 1, "nests deeper"),
    "dashes": ("- " * 20_000, 1, "nests deeper"),
    "a program": ("machine: !!python/object/apply:os.system [touch mellon]\n", 1, "the tag"),
    "a merge": ("a: &a {b: 1}\nc: {<<: *a}\n", 2, "'<<'"),
    "an open bracket": ("a: 1\nb: [1, 2\n", 3, "expected"),
    "a control character": ("a: 1\nb: \x1b[2J\n", 2, "0x1b"),
    "a list as a key": ("[a]: 1\n", 1, "a key that is not text"),
    "two documents": ("a: 1\n---\nb: 1\n", 2, "another document"),
    "a huge file": ("a: " + "x" * 1_000_000, 0, "more than"),
    "no text": (b"\xff\xfe\x00", 0, "UTF-8"),
    "an empty file": ("", 0, "is empty; write"),
    "a number alone": ("17", 0, "is not a mapping"),
}


@every_reader
@pytest.mark.parametrize("case", BAD)
def test_what_is_no_such_file_is_refused_soon_with_its_line(
    read: Any, text: str, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    content, line, problem = BAD[case]
    path, began = written(tmp_path, content), time.monotonic()
    with pytest.raises(ConfigurationError, match=problem) as caught:
        read(path)
    assert time.monotonic() - began < SOON
    assert caught.value.line == line
    assert Path(path).name in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000
    assert not (tmp_path / "mellon").exists()


@every_reader
def test_what_is_no_file_is_refused_soon(read: Any, text: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path), "/dev/zero", str(tmp_path / "pipe"), str(tmp_path / "none"), "x" * 5000, "a\0b"):
        began = time.monotonic()
        with pytest.raises(ConfigurationError):
            read(path)
        assert time.monotonic() - began < SOON


def leaves(values: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where values stand that hold no others, and mappings and lists themselves."""
    if path:
        yield path
    items = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    for key, value in items:
        yield from leaves(value, (*path, key))


NONSENSE = (
    "-1", "1e308", ".nan", "9" * 5000, "yes", "~", "text", "[[]]", "{a: 1}", "[0, 0, 0]", "[1e200, 1e200, 1e200]",
    '"\\e[2J"', "&a [*a]",
)  # fmt: skip


def error_of(read: Any, path: str) -> str:
    """What a reader says against a file; empty where it takes it."""
    try:
        read(path)
    except PkmError as error:
        return str(error)
    return ""


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
@every_reader
def test_no_nonsense_at_any_key_is_more_than_an_error(read: Any, text: str, step: int, tmp_path: Path) -> None:
    """Each nonsense at a quarter of the keys by day, at all of them at night."""
    values = yaml.safe_load(text)
    refused = 0
    for k, path in enumerate(leaves(values)):
        for nonsense in NONSENSE[k % step :: step]:
            changed = copy.deepcopy(values)
            at = changed
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = "PUT_HERE"
            content = yaml.safe_dump(changed, default_flow_style=None).replace("PUT_HERE", nonsense)
            file, began = written(tmp_path, content), time.monotonic()
            said = error_of(read, file)
            refused += bool(said)
            assert not said or Path(file).name in said, (path, nonsense)
            assert said.isprintable()
            assert len(said) < 2000
            assert time.monotonic() - began < SOON
            os.unlink(file)
    assert refused > 50 // step


@pytest.mark.parametrize(
    ("read", "text", "old", "new", "line", "key"),
    [
        (read_machine, MACHINE, "rate: 50", "rate: fast", 3, "rate"),
        (read_machine, MACHINE, "offset: -0.1", "offset: a", 8, "actuators.right.offset"),
        (read_machine, MACHINE, "offset: 0.1,", "offset: a,", 5, "actuators.left.offset"),
        (read_machine, MACHINE, "offset: 0.1,", "offset: 1e308,", 5, "actuators.left.offset"),
        (read_machine, MACHINE, "speed: 0.1", "speed: -1", 7, "actuators.left.homing.speed"),
        (read_force_file, FORCE, "stiffness: 1000", "stiffness: -1", 2, "task"),
        (read_force_file, FORCE, "creep: 0.001", "creep: -1", 8, "surroundings.planes.table.creep"),
        (read_force_file, FORCE, "force_axes: [z]", "force_axes: [w]", 2, "task.force_axes"),
        (read_keep_outs, KEEP_OUT, "size: [0.1, 0.1, 0.1], rpy", "size: [-1, 0.1, 0.1], rpy", 4, "keep_outs.box"),
        (read_tools, TOOLS, "mass: 0.2", "mass: -1", 1, "tools.gripper.mass"),
        (read_conveyors, CONVEYORS, "window: [-0.1, 0.1]", "window: [1, 0]", 3, "conveyors.belt.window"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line_and_key(
    read: Any, text: str, old: str, new: str, line: int, key: str, tmp_path: Path
) -> None:
    assert old in text
    path = written(tmp_path, text.replace(old, new))
    with pytest.raises(ConfigurationError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{Path(path).name}, line {line}, {key}: ")
