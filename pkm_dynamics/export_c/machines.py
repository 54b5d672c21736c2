# SPDX-License-Identifier: Apache-2.0
"""A robot in C for machines: a library for Arduino with a sketch, a component for LinuxCNC with its INI file."""

from __future__ import annotations

import re

import numpy as np

from pkm_description.mechanism import Array
from pkm_description.rotations import rotation_from_quaternion, rpy_from_rotation
from pkm_dynamics.export_c.c_files import CFiles
from pkm_dynamics.export_c.recorded_function import ExportError
from pkm_runtime.codegen.c_code import harmless
from pkm_runtime.optional import release


def arduino_library(files: CFiles) -> dict[str, str]:
    """Text of each file of the library, by its path in the library's folder."""
    name, upper, texts = files.name, files.name.upper(), files.files
    number = re.match(r"\d+\.\d+\.\d+", release())
    words = {"NAME": name, "UPPER": upper, "VERSION": number[0] if number else "0.0.0"}
    words |= {"ROBOT": harmless(files.kinematics.mechanism.name), "REAL": files.scalar.real}
    found = {
        "library.properties": PROPERTIES,
        f"examples/{name}_at_home/{name}_at_home.ino": SKETCH,
    }
    found = {path: re.sub("|".join(words), lambda word: words[word[0]], text) for path, text in found.items()}
    found["README.md"] = texts["README.md"].replace(f"    {files.build_line}", TRIED.replace("NAME", name))
    found |= {f"src/{file}": texts[file] for file in (f"{name}.h", f"{name}.hpp", f"{name}.c")}
    return found | {f"extras/{name}_test.c": texts[f"{name}_test.c"]}


PROPERTIES = """\
name=pkm_NAME
version=VERSION
author=The pkm_control project
maintainer=The pkm_control project <maintainers@pkm-control.invalid>
sentence=Kinematics and dynamics of the robot ROBOT.
paragraph=Made from its description: inverse and forward kinematics, Jacobian, efforts, accelerations, margins.
category=Device Control
url=https://pkm-control.invalid
architectures=*
includes=NAME.h
"""
TRIED = "    gcc -std=c99 -O2 -Isrc src/NAME.c extras/NAME_test.c -o NAME_test -lm && ./NAME_test"
SKETCH = """\
/* Where the drives of ROBOT are at home, the efforts that hold it there, and how long both take. */
#include <NAME.h>

void setup()
{
    Serial.begin(115200);
}

void loop()
{
    REAL actuated[UPPER_N_ACTUATED], effort[UPPER_N_ACTUATED];
    const unsigned long begun = micros();
    int status = NAME_inverse(NAME_home, 0, actuated, 0);
    if (status == PKM_OK)
        status = NAME_gravity(NAME_home, 0, effort);
    const unsigned long spent = micros() - begun;
    Serial.print("status ");
    Serial.print(status);
    Serial.print(", microseconds ");
    Serial.println(spent);
    for (int k = 0; k < UPPER_N_ACTUATED && status == PKM_OK; k++) {
        Serial.print(actuated[k], 6);
        Serial.print(" held by ");
        Serial.println(effort[k], 6);
    }
    delay(1000);
}
"""


AXES = "XYZABC"


def linuxcnc_files(files: CFiles) -> dict[str, str]:
    """Text of the files that go beside the C, by name; refuses robots that do not move along LinuxCNC's axes."""
    k, space = files.kinematics, files.robot.subspace
    axes = [i for i in range(6) if np.abs(space @ (space.T @ np.eye(6)[i]) - np.eye(6)[i]).max() < 1e-9]
    if files.single:
        raise ExportError(f"{k.mechanism.name}: LinuxCNC uses doubles: remove --scalar")
    if files.robot.turning or len(axes) != space.shape[1]:
        raise ExportError(f"{k.mechanism.name}: its motion is not along and about the axes of LinuxCNC")
    units = np.where(files.engine.actuated_turning, np.rad2deg(1.0), 1000.0)
    turned = rpy_from_rotation(rotation_from_quaternion(k.home[3:]))
    home = np.concatenate([1000.0 * k.home[:3], np.rad2deg(turned)]) + 0.0
    words = {
        "ROBOT": files.name,
        "UPPER": files.name.upper(),
        "RELEASE": release(),
        "UNITS": files.scalar.numbers(units).strip(),
        "HOME": files.scalar.numbers(home).strip(),
        "MOVES": ", ".join(str(int(i in axes)) for i in range(6)),
    }
    component = COMPONENT
    for word, value in words.items():
        component = component.replace(f"@{word}@", value)
    return {f"{files.name}kins.comp": component, f"{files.name}.ini": _ini(files, axes, units, home)}


def _ini(files: CFiles, axes: list[int], units: Array, home: Array) -> str:
    """Ranges, speeds and home of joints and axes; an axis is as fast as the drives are with the robot at home."""
    k = files.kinematics
    limits = [k.mechanism.joint_named[name].limits for name in k.actuated_names]
    text = INI.format(
        robot=k.mechanism.name,
        release=release(),
        name=files.name,
        joints=len(limits),
        axes="".join(AXES[i] for i in axes),
        home=" ".join(f"{p:.6f}" for p in home),
    )
    for i, (one, unit, at_home) in enumerate(
        zip(limits, units, (k.inverse(k.home).actuated * units).round(6) + 0.0, strict=True)
    ):
        text += JOINT.format(
            i=i,
            name=k.actuated_names[i],
            type="LINEAR" if unit == 1000.0 else "ANGULAR",
            lower=one.lower * unit,
            upper=one.upper * unit,
            rate=one.velocity * unit,
            acceleration=5.0 * one.velocity * unit,
            home=at_home,
        )
    rates = np.abs(k.at(k.home).inverse_jacobian)
    for i in axes:
        fastest = min(one.velocity / rate for one, rate in zip(limits, rates[:, i], strict=True) if rate > 1e-9)
        fastest *= 1000.0 if i < 3 else np.rad2deg(1.0)
        text += AXIS.format(letter=AXES[i], rate=fastest, acceleration=5.0 * fastest)
    return re.sub(r"^(\w+ =) -?inf$", r"# yours: \1", text, flags=re.MULTILINE)


INI = """\
# Made for {robot} by pkm export {release}. Copy it into your INI file.
# Correct what is called yours: it is not in the description.
[KINS]
KINEMATICS = {name}kins
JOINTS = {joints}

[TRAJ]
COORDINATES = {axes}
LINEAR_UNITS = mm
ANGULAR_UNITS = degree
HOME = {home}
"""
JOINT = """
# {name}; yours: the acceleration, here a fifth of a second to full speed, and the offset, where its switch is
[JOINT_{i}]
TYPE = {type}
MIN_LIMIT = {lower:.6f}
MAX_LIMIT = {upper:.6f}
MAX_VELOCITY = {rate:.6f}
MAX_ACCELERATION = {acceleration:.6f}
HOME = {home:.6f}
HOME_OFFSET = {home:.6f}
HOME_SEQUENCE = 0
"""
AXIS = """
# as fast as the drives are at home; yours: the acceleration
[AXIS_{letter}]
MAX_VELOCITY = {rate:.6f}
MAX_ACCELERATION = {acceleration:.6f}
"""
COMPONENT = """\
component @ROBOT@kins "Kinematics of the robot @ROBOT@, made by pkm export @RELEASE@";
description \"\"\"
Joints are the drives in the order of @ROBOT@.h, in mm or degrees. Poses are of the platform in the base frame: X, Y,
Z in mm, and roll A, pitch B and yaw C in degrees, turned in the order C, B, A about axes that turn along.\"\"\";
pin out bit unused;
function unused_function nofp;
license "Apache-2.0";
author "pkm export";
;;
#include <math.h>
#include <string.h>
#include <kinematics.h>
#include "@ROBOT@.c"

static const double units[@UPPER@_N_ACTUATED] = {@UNITS@}; /* mm per m, degrees per rad */
static const double degree = 57.29577951308232;
static const double home[6] = {@HOME@}; /* mm, degrees */
static const int moves[6] = {@MOVES@};  /* which axes the robot has; the others stay at home */

static void pose_of(const EmcPose *world, double pose[7])
{
    const double given[6] = {world->tran.x, world->tran.y, world->tran.z, world->a, world->b, world->c};
    double at[6];
    for (int k = 0; k < 6; k++)
        at[k] = (moves[k] ? given[k] : home[k]) * (k < 3 ? 0.001 : 0.5 / degree);
    const double ca = cos(at[3]), sa = sin(at[3]), cb = cos(at[4]), sb = sin(at[4]), cc = cos(at[5]), sc = sin(at[5]);
    memcpy(pose, at, 3 * sizeof *at);
    pose[3] = sa * cb * cc - ca * sb * sc;
    pose[4] = ca * sb * cc + sa * cb * sc;
    pose[5] = ca * cb * sc - sa * sb * cc;
    pose[6] = ca * cb * cc + sa * sb * sc;
}

KINEMATICS_TYPE kinematicsType(void) { return KINEMATICS_BOTH; }

/* The drives at a pose. A joint out of its range, also of one without a drive, is no answer. */
int kinematicsInverse(const EmcPose *world, double *joints, const KINEMATICS_INVERSE_FLAGS *iflags,
                      KINEMATICS_FORWARD_FLAGS *fflags)
{
    double pose[7], actuated[@UPPER@_N_ACTUATED];
    (void)iflags;
    (void)fflags;
    pose_of(world, pose);
    if (@ROBOT@_inverse(pose, 0, actuated, 0) != PKM_OK)
        return -1;
    for (int i = 0; i < @UPPER@_N_ACTUATED; i++)
        joints[i] = units[i] * actuated[i];
    return 0;
}

/* The pose that continues the one given, which LinuxCNC leaves from the last call, or else home. */
int kinematicsForward(const double *joints, EmcPose *world, const KINEMATICS_FORWARD_FLAGS *fflags,
                      KINEMATICS_INVERSE_FLAGS *iflags)
{
    double near[7], pose[7], actuated[@UPPER@_N_ACTUATED];
    (void)fflags;
    (void)iflags;
    for (int i = 0; i < @UPPER@_N_ACTUATED; i++)
        actuated[i] = joints[i] / units[i];
    pose_of(world, near);
    if (@ROBOT@_forward(actuated, near, pose) != PKM_OK && @ROBOT@_forward(actuated, @ROBOT@_home, pose) != PKM_OK)
        return -1;
    const double x = pose[3], y = pose[4], z = pose[5], w = pose[6], up = 2.0 * (w * y - z * x);
    world->tran.x = 1000.0 * pose[0];
    world->tran.y = 1000.0 * pose[1];
    world->tran.z = 1000.0 * pose[2];
    world->a = degree * atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y));
    world->b = degree * asin(up > 1.0 ? 1.0 : up < -1.0 ? -1.0 : up);
    world->c = degree * atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z));
    world->u = world->v = world->w = 0.0;
    return 0;
}

FUNCTION(unused_function) {}

KINS_NOT_SWITCHABLE
EXPORT_SYMBOL(kinematicsType);
EXPORT_SYMBOL(kinematicsInverse);
EXPORT_SYMBOL(kinematicsForward);
"""
