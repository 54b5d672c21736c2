# SPDX-License-Identifier: Apache-2.0
"""The plugin of examples/grblhal: places to steps and back, lines in pieces, what is out of reach; with stand-ins of
grblHAL's headers, and with its own where PKM_GRBLHAL names a folder with github.com/grblHAL/core."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.export_c.c_files import CFiles
from pkm_kinematics import Kinematics

PLUGIN = Path(__file__).resolve().parents[2] / "examples" / "grblhal" / "pkm_kinematics.c"
CORE = os.environ.get("PKM_GRBLHAL", "")
N = 600

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="no C compiler (gcc)")

# what the plugin uses of grblHAL's headers
STAND_INS = """
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#define N_AXIS 3
#define bit(n) (1UL << (n))
#define On (1)
#define ASCII_EOL "\\r\\n"
typedef union { float values[N_AXIS]; struct { float x, y, z; }; } coord_data_t;
typedef union { int32_t values[N_AXIS]; struct { int32_t x, y, z; }; } mpos_t;
typedef union { uint8_t mask; } axes_signals_t;
typedef struct { coord_data_t min, max; } work_envelope_t;
typedef uint32_t sys_state_t;
typedef int homing_mode_t;
typedef struct {
    float feed_rate, rate_multiplier;
    struct { uint16_t rapid_motion :1, target_validated :1, target_valid :1; } condition;
} plan_line_data_t;
typedef void (*on_homing_completed_ptr)(axes_signals_t, bool);
typedef void (*on_report_options_ptr)(bool);
typedef struct {
    bool (*check_travel_limits)(float *, axes_signals_t, bool, work_envelope_t *);
    bool (*check_arc_travel_limits)(void);
    void (*apply_travel_limits)(float *, float *, work_envelope_t *);
    void (*on_jog_cancel)(sys_state_t);
    on_homing_completed_ptr on_homing_completed;
    on_report_options_ptr on_report_options;
} grbl_t;
typedef struct { struct { void (*write)(const char *); } stream; } grbl_hal_t;
typedef struct { struct { float steps_per_mm; } axis[N_AXIS]; } settings_t;
typedef struct { int32_t position[N_AXIS]; } system_t;
typedef struct {
    coord_data_t *(*transform_steps_to_cartesian)(coord_data_t *, mpos_t *);
    coord_data_t *(*transform_from_cartesian)(coord_data_t *, coord_data_t *);
    coord_data_t *(*segment_line)(coord_data_t *, coord_data_t *, plan_line_data_t *, bool);
    uint_fast8_t (*limits_get_axis_mask)(uint_fast8_t);
    void (*limits_set_target_pos)(uint_fast8_t);
    void (*limits_set_machine_positions)(axes_signals_t);
    bool (*homing_cycle_validate)(axes_signals_t);
    float (*homing_cycle_get_feedrate)(axes_signals_t, float, homing_mode_t);
} kinematics_t;
extern grbl_t grbl;
extern grbl_hal_t hal;
extern settings_t settings;
extern system_t sys;
extern kinematics_t kinematics;
"""
HEADERS = ("grbl.h", "hal.h", "planner.h", "settings.h", "system.h", "kinematics/interface.h")

# for each place that is read: whether it is allowed, its steps, the place of these steps; and the line to it from the
# last, in pieces: how many, the largest way of a piece off the line and along it, and off its end
JUDGE = """
#include "grbl.h"
#include "hal.h"
#include "planner.h"
#include "settings.h"
#include "system.h"
#include "kinematics/interface.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
grbl_t grbl;
grbl_hal_t hal;
settings_t settings;
system_t sys;
kinematics_t kinematics;
void my_plugin_init(void);
static coord_data_t place_of(const coord_data_t *drives)
{
    coord_data_t place;
    mpos_t steps;
    for (int k = 0; k < 3; k++)
        steps.values[k] = (int32_t)lround((double)drives->values[k] * settings.axis[k].steps_per_mm);
    kinematics.transform_steps_to_cartesian(&place, &steps);
    return place;
}
static double off(const float *a, const float *b)
{
    return sqrt(pow(a[0] - b[0], 2) + pow(a[1] - b[1], 2) + pow(a[2] - b[2], 2));
}
int main(int argc, char **argv)
{
    float given[3], per_unit, ratio = 0.0f;
    coord_data_t at = {0}, drives;
    if (argc != 2 || sscanf(argv[1], "%f", &per_unit) != 1)
        return 2;
    for (int k = 0; k < 3; k++)
        settings.axis[k].steps_per_mm = per_unit;
    my_plugin_init();
    at = place_of(&at); /* all drives at zero */
    while (fread(given, sizeof given, 1, stdin)) {
        coord_data_t to = {0};
        memcpy(to.values, given, sizeof given);
        const bool allowed = grbl.check_travel_limits(to.values, (axes_signals_t){.mask = 7}, true, NULL);
        coord_data_t back = to, start, piece, before = at, jog = to;
        kinematics.transform_from_cartesian(&start, &at);
        plan_line_data_t plan;
        memset(&plan, 0, sizeof plan);
        coord_data_t *next = kinematics.segment_line(&to, &start, &plan, true);
        double aside = 0.0, longest = 0.0, far = allowed ? off(to.values, at.values) : 0.0;
        int pieces = 0;
        for (; plan.feed_rate = 1.0f, kinematics.segment_line(NULL, NULL, &plan, false); pieces++) {
            piece = place_of(next);
            const double a = off(piece.values, at.values), b = off(piece.values, to.values);
            aside = fmax(aside, a + b - far);
            longest = fmax(longest, off(piece.values, before.values));
            ratio = plan.feed_rate * plan.rate_multiplier;
            before = piece;
        }
        kinematics.transform_from_cartesian(&drives, &to);
        if (allowed)
            back = place_of(&drives);
        grbl.apply_travel_limits(jog.values, at.values, NULL);
        const bool jogged = grbl.check_travel_limits(jog.values, (axes_signals_t){.mask = 7}, true, NULL);
        printf("%d %.6g %.6g %.6g %.6g %d %.6g %.6g %.6g %d %.6g %d\\n", allowed, back.values[0], back.values[1],
               back.values[2], off(before.values, to.values), pieces, aside, longest, far, plan.condition.target_valid,
               ratio, jogged);
        if (allowed)
            at = to;
    }
    sys.position[0] = sys.position[1] = sys.position[2] = 7;
    kinematics.limits_set_machine_positions((axes_signals_t){.mask = 7});
    printf("# %d %d %d\\n", (int)sys.position[0], (int)sys.position[1], (int)sys.position[2]);
    return 0;
}
"""


def built(robot: str, kinematics: Kinematics, headers: str, folder: Path) -> Path:
    for name, text in CFiles(Dynamics(kinematics.mechanism), single=True).files.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "judge.c").write_text(JUDGE)
    if not headers:
        (folder / "kinematics").mkdir()
        for name in HEADERS:
            (folder / name).write_text(STAND_INS if name == "grbl.h" else '#include "grbl.h"\n')
    slides = ["-DPER_DRIVE=1000.0f"] if robot == "linear_delta" else []
    options = ["-std=gnu11", "-O0", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", *slides]
    defined = ["-DKINEMATICS_API", "-DADD_MY_PLUGIN", f"-DROBOT={robot}"]
    sources = [str(PLUGIN), "judge.c", f"{robot}.c"]
    includes = ["-I.", f"-I{headers or folder}"]
    command = ["gcc", *options, *defined, *includes, *sources, "-lm", "-o", "judge"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
    return folder / "judge"


@pytest.mark.every_combination
@pytest.mark.parametrize(
    "headers",
    ["", pytest.param(CORE, marks=pytest.mark.skipif(not CORE, reason="PKM_GRBLHAL does not name grblHAL's core"))],
    ids=["stand-ins", "grblHAL"],
)
@pytest.mark.parametrize("robot", ["delta", pytest.param("linear_delta", marks=pytest.mark.slow)])
def test_places_come_back_and_lines_are_straight(robot: str, headers: str, tmp_path: Path) -> None:
    kinematics = Kinematics(load_mechanism(robot))
    program = built(robot, kinematics, headers, tmp_path)
    rng = np.random.default_rng(3)
    places = 1000.0 * kinematics.home[:3] + rng.uniform(-1.0, 1.0, (N, 3)) * [250.0, 250.0, 150.0]
    places[::50] += [3000.0, 0.0, 0.0]  # far out of reach
    places = places.astype(np.float32)
    per_unit = 20000.0 if robot == "delta" else 400.0  # steps per rad, or per mm
    done = subprocess.run([program, str(per_unit)], input=places.tobytes(), capture_output=True, check=True)
    *lines, homed = done.stdout.decode().splitlines()
    rows = np.array([line.split() for line in lines], dtype=float)
    assert len(rows) == N
    poses = np.tile(kinematics.home, (N, 1))
    poses[:, :3] = places.astype(float) / 1000.0
    reached, allowed = kinematics.inverse(poses).ok, rows[:, 0] == 1.0
    regularity = kinematics.at(poses).solved(jacobian=True).regularity
    margin = np.where(reached, np.minimum(regularity, Dynamics(kinematics.mechanism).inverse(poses).condition), 0.0)
    assert (margin[allowed] > 0.018).all()  # the plugin asks for 0.02, in floats
    at_an_end = np.mean((margin > 0.022) & ~allowed)  # the last digits of a joint's range
    assert at_an_end < 1e-3
    assert 0.3 < allowed.mean() < 0.999
    # a step, and seven digits of a metre, come back larger where the robot is near an end of its reach
    error = np.linalg.norm(rows[:, 1:4] - places, axis=1)[allowed]
    print(f"{robot}: {allowed.sum()} round trips, off by at most {error.max():.4f} mm, {np.median(error):.4f} by half")
    assert np.median(error) < 0.02
    assert error.max() < 0.5
    went = allowed & (rows[:, 5] > 0)
    assert went.sum() > 0.9 * allowed.sum()
    assert np.median(rows[went, 4]) < 0.03
    assert np.quantile(rows[went, 6], 0.99) < 0.1  # mm of detour
    assert np.quantile(rows[went, 7], 0.99) < 1.1  # mm: a piece
    assert (np.abs(rows[went, 5] - 1.0 - np.floor(rows[went, 8])) <= 1.0).all()
    np.testing.assert_allclose(rows[went, 10], 1.0, rtol=1e-5)  # the rate along the line stays what was asked for
    assert (rows[~allowed, 5] == 0).all()  # nothing is done on the way to where it does not reach
    assert ((rows[:, 9] == 1.0) == allowed).all()
    inside = np.logical_or.accumulate(np.append(robot == "delta", allowed[:-1]))  # a linear Delta's zeros are an end
    assert (rows[inside, 11] == 1.0).all()  # a jog is cut off where it can go
    assert inside.sum() > 0.9 * N
    limits = kinematics.mechanism.joint_named[kinematics.actuated_names[0]].limits
    lowest = limits.lower * per_unit * (1.0 if robot == "delta" else 1000.0)
    np.testing.assert_allclose([float(x) for x in homed.split()[1:]], lowest, atol=1.0)
