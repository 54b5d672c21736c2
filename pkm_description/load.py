# SPDX-License-Identifier: Apache-2.0
"""From a name, a file or a text to a checked, immutable `Mechanism`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pkm_description import graph, urdf_plus, xacro_expansion
from pkm_description.closure import ClosureModel
from pkm_description.errors import DescriptionError
from pkm_description.gallery import robot_path
from pkm_description.home import HomeRequest, find_home
from pkm_description.mechanism import Mechanism, frozen
from pkm_description.mjcf_import import import_mjcf, is_mjcf
from pkm_description.mobility import check_moves_mass, full_coordinates, mobility


def load_mechanism(source: str | os.PathLike[str], xacro_args: Mapping[str, str] | None = None) -> Mechanism:
    """Load a parallel robot.

    Parameters
    ----------
    source
        A robot of the gallery (`"delta"`), the path of a URDF+ file (`.xacro` is expanded), or URDF+ text. Where the
        root element is `<mujoco>`, it is imported from MJCF.
    xacro_args
        Values of `<xacro:arg>` arguments, by name; for MJCF the bodies `platform` and `base`.

    Raises `DescriptionError` with the element at fault, the problem and the remedy.
    """
    text, origin = expand(source, xacro_args)
    return mechanism_from_text(text, origin)


def expand(source: str | os.PathLike[str], xacro_args: Mapping[str, str] | None = None) -> tuple[str, str]:
    """Plain URDF+ text of a robot (see `load_mechanism`), and where it came from."""
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"):
        if is_mjcf(source):
            return import_mjcf(source, **_named_bodies(xacro_args)), ""
        if xacro_expansion.needs_expansion(source):
            return xacro_expansion.expand_text(source.strip(), xacro_args), ""
        return source, ""
    path = Path(source)
    if isinstance(source, str) and len(path.parts) == 1 and not path.suffix and not path.is_file():
        path = robot_path(source)
    if not path.is_file():
        raise DescriptionError(f"file {path}", "it does not exist", "give the path of a .urdf or .xacro file")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DescriptionError(f"file {path}", f"it cannot be read: {error}", "give a UTF-8 text file") from error
    if is_mjcf(text):
        return import_mjcf(path, **_named_bodies(xacro_args)), str(path)
    if path.suffix == ".xacro" or xacro_expansion.needs_expansion(text):
        text = xacro_expansion.expand_file(path, xacro_args)
    return text, str(path)


def _named_bodies(arguments: Mapping[str, str] | None) -> dict[str, str]:
    """The arguments that MJCF takes."""
    given = dict(arguments or {})
    unknown = given.keys() - {"platform", "base"}
    if unknown:
        raise DescriptionError(
            "<mujoco>", f"unknown argument(s) {', '.join(sorted(unknown))}", "MJCF takes platform and base"
        )
    return given


def mechanism_from_text(text: str, source: str = "") -> Mechanism:
    """Build a `Mechanism` from plain URDF+ text; `source` is where it came from, for messages."""
    said = urdf_plus.parse(text, source)
    joints = graph.ordered_tree(said.links, said.joints, said.base_link)
    chain = graph.platform_chain(said.links, joints, said.loops, said.platform_link)
    limbs = graph.limbs(said.links, joints, said.loops, said.base_link, said.platform_link, chain)
    path = tuple(joint.name for joint in graph.path_from_base(joints, said.platform_link))
    model = ClosureModel(said.links, joints, said.loops, said.base_link)
    home = find_home(
        model, HomeRequest(said.home, said.home_joints, said.platform_link, tuple(said.actuated), path, limbs)
    )
    counted = mobility(model, home, said.platform_link, said.actuated, chain, said.accept_singular)
    if not said.kinematics_only:
        check_moves_mass(model, home, said.platform_link, said.actuated)
    return Mechanism(
        name=said.name,
        base_link=said.base_link,
        platform_link=said.platform_link,
        gravity=said.gravity,
        links=tuple(said.links),
        joints=joints,
        loops=tuple(said.loops),
        platform_chain=chain,
        limbs=limbs,
        actuated_joints=tuple(said.actuated),
        home=frozen(model.pose_of(said.platform_link, home)),
        home_joints=frozen(full_coordinates(model, home)),
        mobility=counted,
        urdf=text,
        source=source,
    )
