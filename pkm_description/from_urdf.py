# SPDX-License-Identifier: Apache-2.0
"""From plain URDF+ text to a checked robot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from pkm_description import graph
from pkm_description.description_error import DescriptionError
from pkm_description.loops.closure import ClosureModel
from pkm_description.loops.home import HomeRequest, find_home
from pkm_description.loops.limb_partition import LimbGraph
from pkm_description.loops.mobility import check_moves_mass, mobility
from pkm_description.loops.redundancy import followed, home_at_rest, redundant_joints
from pkm_description.mechanism import Array, Mechanism, frozen, is_built
from pkm_description.urdf import urdf_plus
from pkm_description.urdf.elements import ZERO_LENGTH, spring_label
from pkm_description.urdf.unit_slips import Suspect, suspects
from pkm_description.urdf.xml_text import read_xml


def mechanism_from_urdf(text: str, source: str = "") -> Mechanism:
    """Build a checked `Mechanism` from plain URDF+ text, such as text from the ROS graph.

    The text is pure data: never a name or a path, no xacro, no MJCF, and no file is opened. `source` is its file, for
    messages and meshes.
    DescriptionError: the robot is unusable, or the text too large (see `pkm_description.urdf.xml_text`).
    """
    description = urdf_plus.parse(text, source)
    try:
        return _checked(description, text, source)
    except DescriptionError as error:
        found = suspects(description, read_xml(text, "text"))
        if not found:
            raise
        raise _with_units_first(error, found) from error


def _with_units_first(error: DescriptionError, found: Sequence[Suspect]) -> DescriptionError:
    """The same error preceded by numbers that look like another unit's: these may be its only cause."""
    worst = max(found, key=lambda one: abs(one.value))
    return DescriptionError(
        error.element,
        f"{error.problem}. Some numbers look like {worst.slip.value}: {worst.about} is {worst.value:g} {worst.slip.si}",
        f"first correct the units (`pkm check` names the number in the file); otherwise: {error.remedy}",
    )


def _checked(description: urdf_plus.Description, text: str, source: str) -> Mechanism:
    for coupling in description.couplings:
        problem, remedy = "a robot with a platform has no such thing", "load it as a tree: load_model, pkm transmission"
        raise DescriptionError(f'<coupling name="{coupling.name}">', problem, remedy)
    joints = graph.ordered_tree(description.links, description.joints, description.base_link)
    platform, actuated = description.platform_link, description.actuated
    graph.check_leaders(joints, description.loops, platform)
    chain = graph.platform_chain(description.links, joints, description.loops, platform)
    virtual = () if is_built([joint for joint in joints if joint.name in chain], description.links) else chain
    structure = LimbGraph(description.links, joints, description.loops, description.base_link, platform, virtual)
    path = tuple(joint.name for joint in graph.path_from_base(joints, platform))
    model = ClosureModel(description.links, joints, description.loops, description.base_link)
    home = find_home(
        model,
        HomeRequest(description.home, description.home_joints, platform, tuple(actuated), path, structure.connected()),
    )
    counted = mobility(model, home, platform, actuated, virtual, description.accept_singular)
    redundant = redundant_joints(
        model, home, counted, platform, actuated, virtual, tuple(description.redundant), structure
    )
    if redundant and set(redundant) <= set(actuated):
        home = home_at_rest(model, home, platform, redundant, description.home_joints)
    graph.check_determined(joints, description.loops, platform)
    if not description.kinematics_only:
        check_moves_mass(model, home, platform, actuated)
    structure.stand_on(redundant, joints)
    limbs, articulated_platform = structure.limbs(model, home)
    _check_springs(description, model, home, virtual)
    return Mechanism(
        name=description.name,
        base_link=description.base_link,
        platform_link=platform,
        gravity=description.gravity,
        links=tuple(description.links),
        joints=joints,
        loops=tuple(description.loops),
        platform_chain=chain,
        limbs=limbs,
        articulated_platform=articulated_platform,
        actuated_joints=tuple(actuated),
        home=frozen(model.pose_of(platform, home)),
        home_joints=frozen(model.positions(home)),
        mobility=counted,
        urdf=text,
        source=source,
        springs=tuple(description.springs),
        redundant_joints=redundant,
        redundant_follow=frozen(np.reshape([followed(description.redundant, name) for name in redundant], (-1, 3))),
    )


def _check_springs(
    description: urdf_plus.Description, model: ClosureModel, home: Array, virtual: Sequence[str]
) -> None:
    """Refuse springs on what is no body of the robot, and those without a direction at home."""
    between = {joint.child for joint in description.joints if joint.name in virtual} - {description.platform_link}
    for joint in description.joints:
        if joint.spring_stiffness > 0.0 and joint.name in virtual:
            problem = "it is a coordinate of the platform; such joints cannot have a spring"
            raise DescriptionError(f'<joint name="{joint.name}">', problem, "write a <spring> between links")
    for spring in description.springs:
        label = spring_label(spring)
        for link in (spring.from_link, spring.to_link):
            if link in between:
                problem = f"{link!r} is between coordinates of the platform and is not a body"
                raise DescriptionError(label, problem, "name the platform, or a body of a limb")
        first, second = (
            model.pose_of(link, home) @ np.append(point, 1.0)
            for link, point in ((spring.from_link, spring.from_point), (spring.to_link, spring.to_point))
        )
        if np.linalg.norm(second - first) < ZERO_LENGTH and (spring.preload != spring.stiffness * spring.rest_length):
            problem = "its ends coincide at home, so its force has no direction"
            raise DescriptionError(label, problem, "move an end, or remove rest_length and preload")


@lru_cache(maxsize=2)
def shared_mechanism(text: str) -> Mechanism:
    """`mechanism_from_urdf` cached, so that processes forked afterwards have the robot."""
    return mechanism_from_urdf(text)
