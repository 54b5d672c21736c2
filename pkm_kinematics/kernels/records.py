# SPDX-License-Identifier: Apache-2.0
"""Record layouts of the tables (constant per robot) and of the workspace (scratch of one call).

A *body* is a rigid link with the joint of one degree of freedom that carries it. Body 0 is the base and body 1 the
platform, which is free: its pose is given. A body frame has its origin on the joint and its z axis along the joint
axis, the third column of the body's rotation. A *closure* is a cut joint. A *block* is the smallest set of bodies that
a set of closures determines once the blocks before it are known; blocks are in solving order, the bodies and closures
of a block are consecutive, and a body's parent lies in the same or an earlier block.

All state is in the axes of the base frame. The base accelerates with minus gravity, so that weights are inertia forces.
"""

import numpy as np

BASE = 0
PLATFORM = 1
WIDEST = 12  # degrees of freedom that a robot may have, its redundant joints included

f, i = np.float64, np.int64

BODY = np.dtype(
    [
        ("parent", i),
        ("prismatic", i),  # 1 where the joint slides along z, 0 where it turns about z
        ("rotation", f, (3, 3)),  # joint frame at position zero, in the parent's body frame
        ("translation", f, (3,)),
        ("mass", f),  # kg
        ("moment", f, (3,)),  # mass times centre of mass, body frame, kg m
        ("inertia", f, (6,)),  # xx xy xz yy yz zz about the body origin, body frame, kg m^2
        ("massless", i),
        ("armature", f),  # rotor inertia felt at the joint, kg m^2 or kg
        ("viscous", f),  # N m s/rad or N s/m
        ("coulomb", f),  # N m or N
        ("actuator", i),  # index of the actuator, -1 for a passive joint
        ("held", i),  # 1 where solvers must leave the joint where it is
        ("lower", f),
        ("upper", f),
        ("velocity", f),
        ("effort", f),
        ("home", f),
        ("column", i),  # of its joint in arrays of all joints, -1 where it has none
    ],
    align=True,
)

# The platform's own branch as a whole, and what else is one number per robot.
TASK = np.dtype(
    [
        ("sliding", i),  # sliding joints of the branch, which come first
        ("spread", f, (3, 3)),  # pseudo-inverse of their directions
        ("tail", f, (3, 3)),  # platform frame in the last body of the branch
        ("tail_point", f, (3,)),
        ("constant", i),  # 1 where the branch allows the same twists at every pose
        ("actuators", i),
        ("square", i),  # 1 where there are as many as degrees of freedom, in a constant motion space
        ("mixed", i),  # 1 where some actuators slide and some turn
        ("iterated", i),  # 1 where a limb is solved by iteration, so that its mode depends on where that starts
        ("turning", i),  # 1 where the motion space is configuration-dependent: a straight path leaves it
        ("divided", i),  # 1 where a block may be singular that its limb is not: see `Engine.divided`
        ("length", f),  # m; makes rotations comparable with translations
        ("size", f),  # m; greatest distance of a limb's joint from the platform at home
    ],
    align=True,
)

# Kinds of closure.
SPHERICAL, UNIVERSAL, REVOLUTE, CYLINDRICAL, PRISMATIC, PLANAR, FIXED = range(7)

CLOSURE = np.dtype(
    [
        ("kind", i),
        ("predecessor", i),  # body
        ("successor", i),  # body
        ("predecessor_anchor", i),  # nearest ancestor of the predecessor that lies outside the block
        ("successor_anchor", i),
        ("predecessor_rotation", f, (3, 3)),  # loop frame in the body frame; its z axis is the joint's axis
        ("predecessor_point", f, (3,)),
        ("successor_rotation", f, (3, 3)),
        ("successor_point", f, (3,)),
        ("rows", i),  # scalar equations
        ("rows_at", i),  # first of them in the workspace's table of rows
    ],
    align=True,
)

# How a block finds its positions: by Newton's method, or by the closed form of a driven joint, a pointing joint and an
# extension (see position/closed_form.py). A missing member has body -1. A block of a redundant joint, without closures,
# is given its position: Newton's method finds nothing to do in it.
NEWTON, CLOSED_FORM, GIVEN = range(3)

BLOCK = np.dtype(
    [
        ("limb_first", i),  # first block of the limb
        ("start", i),  # first body
        ("count", i),
        ("closure_start", i),
        ("closure_count", i),
        ("rows", i),
        ("rows_at", i),
        ("size", f),  # m, of the robot: what counts as closed, and how far a step may go, is measured against it
        ("inverse_at", i),  # where the block's pseudo-inverse (count, rows) lies in the workspace
        ("scratch_at", i),  # where rows * count + count**2 further values of it may be overwritten
        ("side_at", i),  # where a block of more equations than joints keeps its Jacobian
        ("idle", i),  # joints that the closures leave free by design, such as the spin of a rod between two balls
        ("solver", i),
        ("driver", i),  # body whose position the distance equation gives, -1 if none
        ("pointing", i),  # first body of the one or two joints that aim at the target
        ("pointing_count", i),
        ("extension", i),  # body that slides along the aimed line, -1 if none
        ("lift", i),  # body that slides or turns until the rest of the chain and the target are in one plane, or -1
        ("offset", f),  # how far along the axes the tip then is from the lift's origin
        ("normal", f, (3,)),  # the axes behind the lift, in its body frame
        ("wrist", i),  # last body, which turns the closure's axis without moving the tip, -1 if none
        ("tip", f, (3,)),  # what comes to the target, in the body frame of the last joint but the wrist; m or direction
        ("target", f, (3,)),  # on the successor, in its body frame
        ("elbow", f, (3,)),  # what the driver swings: where the pointing axes meet, in the body frame before them
        ("rise", f),  # where that is on the first one's axis
        ("planar", i),  # 1 where distances count in the plane across the joint axes only
        ("spherical", i),  # 1 where all axes meet and the target is a direction, the closure's axis
        ("flip", f),  # which of the two ways a universal joint aims, or a lift turns, +1 or -1
        ("reach", f),  # sign of the extension
        ("home_sign", f),  # sign of the driver's branch 0, the one that holds at home
        ("bend", f),  # rad, from the target's direction to a turning driver at home in branch 0; NaN without one
        ("branches", i),  # number of working modes of the block
        ("stride", i),  # branch = (mode // stride) % branches
        ("actuators", i),  # number of actuated joints in the block
        ("direct", i),  # 1 where it leads from base to platform and its driver or extension alone is actuated
    ],
    align=True,
)

# Kinds of spring: straight between points of two bodies, or of the joint that carries the second body on the first.
STRAIGHT_SPRING, JOINT_SPRING = range(2)

SPRING = np.dtype(
    [
        ("kind", i),
        ("first", i),  # body
        ("second", i),
        ("first_point", f, (3,)),  # in the body frame
        ("second_point", f, (3,)),
        ("stiffness", f),  # N/m, or N m/rad of a turning joint
        ("rest", f),  # m or rad
        ("preload", f),  # N at the rest length
        ("home", f),  # rad, of the joint; its angle is at most half a turn from it
    ],
    align=True,
)

STATE = np.dtype(
    [
        ("R", f, (3, 3)),  # body frame to base axes
        ("p", f, (3,)),  # body origin
        ("w", f, (3,)),  # angular velocity
        ("v", f, (3,)),  # velocity of the body origin
        ("dw", f, (3,)),  # angular acceleration
        ("dv", f, (3,)),  # acceleration of the body origin, minus gravity
        ("extra_dw", f, (3,)),  # what the joint accelerations of the own block add to dw and dv
        ("extra_dv", f, (3,)),
        ("force", f, (3,)),  # accumulated wrench at the body origin
        ("torque", f, (3,)),
        ("inertia", f, (6,)),  # about the body origin, base axes
        ("moment", f, (3,)),  # mass times (centre of mass - origin), base axes
        ("mass", f),  # carried by the joint, where composite inertias are computed
        ("c", f),  # cosine and sine of a turning joint
        ("s", f),
        ("q", f),  # joint position, velocity, acceleration, generalised force
        ("qd", f),
        ("qdd", f),
        ("effort", f),
        ("column", f, (WIDEST,)),  # joint rate per independent platform velocity: the joint's row of K
        ("weighted", f, (WIDEST,)),  # the same row of M K
        ("side", f),  # of a block's first body: sign of the determinant of its equations where a path began, 0: unknown
        ("kept", f, (6,)),  # q, c and s put aside, to be put back where a step fails, and where the whole path does
    ],
    align=True,
)

ROW = np.dtype(
    [
        ("force", f, (3,)),  # the scalar equation holds force . v_rel(point) + moment . w_rel = 0
        ("moment", f, (3,)),
        ("point", f, (3,)),  # on the successor, base axes: kept in the first equation of each closure
        ("gap", f),  # position error of the equation
    ],
    align=True,
)
