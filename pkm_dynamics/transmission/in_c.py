# SPDX-License-Identifier: Apache-2.0
"""A transmission as C99: from joints to motors in a control loop, without allocation, `math.h` alone."""

from __future__ import annotations

import numpy as np

from pkm_description.load import contents_of, digest_of
from pkm_description.mechanism import Array
from pkm_dynamics.transmission.transmission import Transmission
from pkm_kinematics.kernels.path.fixed_steps import CORRECTIONS, LOST, SHORTEST, SQUARED, TRIES
from pkm_kinematics.kernels.regularity import SINGULAR_BELOW
from pkm_kinematics.linkage.recorded_linkage import record_lean, state_at
from pkm_runtime.codegen.c_code import KEEPS_NAN, CCode, Part, harmless, identifier, quoted

HEADER = """\
/* {title}

   Joints, in order: {joints}.
   Actuators, in order: {actuators}.
   SI units; positions in rad or m. Written by pkm transmission. */
#ifndef {NAME}_H
#define {NAME}_H

#define {NAME}_DIGEST "{digest}"
#define {NAME}_CONTENTS ""
#define {NAME}_JOINTS {n}
#define {NAME}_ACTUATORS {m}
#define {NAME}_STATE {whole}

enum {{ {NAME}_OK = 0, {NAME}_FOLDED = 3, {NAME}_INVALID = 5, {NAME}_TOO_FAR = 8 }};

extern const char *const {name}_joint_names[{NAME}_JOINTS];
extern const char *const {name}_actuator_names[{NAME}_ACTUATORS];
extern const double {name}_home_joints[{NAME}_JOINTS]; /* positions of the joints at home */

/* Where the linkage is at home: what `state` begins with. */
void {name}_home(double state[{NAME}_STATE]);

/* Positions of the actuators for positions of the joints, and efforts of the actuators that make efforts at the joints.
   `state` is where the linkage was, and is led on; `margin` (may be NULL) nears zero before the linkage folds.
   A way too long for one step is gone in up to {parts} equal parts: {tries} steps of {corrections} corrections at most.
   Where no straight way leads on from `state`, one from home is tried, in as many.
   {NAME}_TOO_FAR: neither arrives. The joints are beyond a fold, or farther from both than {parts} parts lead. The next
   call whose joints are in reach works again, without {name}_home.
   {NAME}_INVALID: what is given is not finite, or the efforts overflow.
   With any status but {NAME}_OK actuators and efforts are NaN, and so is the margin where it is not known. After
   {NAME}_TOO_FAR and numbers that are not finite `state` stays as it was. */
int {name}_to_actuators(const double joints[{NAME}_JOINTS], const double joint_effort[{NAME}_JOINTS],
                        double state[{NAME}_STATE], double actuators[{NAME}_ACTUATORS],
                        double actuator_effort[{NAME}_ACTUATORS], double *margin);

#endif
"""
SOURCE = """\
{keeps_nan}#include "{name}.h"

#include <math.h>
#include <stddef.h>

enum {{ N = {n}, M = {m}, S = {states} }};

const char *const {name}_joint_names[N] = {{{joint_names}}};
const char *const {name}_actuator_names[M] = {{{actuator_names}}};
const double {name}_home_joints[N] = {{{home_joints}}};

static inline double larger(double a, double b) {{ return a > b ? a : b; }}
static inline double smaller(double a, double b) {{ return a < b ? a : b; }}
static inline double worse(double a, double b) {{ return a != a || b <= a ? a : b; }}

/* The linkage where its rates lead along a way of the joints, one of Newton's steps of each part of it, then positions,
   rates, efforts. 1: it has no derivative here. */
static int lead(const double joint[N], const double was[S], const double effort[N], const double way[N],
                double out[S + 2 + 2 * M])
{{
    (void)larger;
    (void)smaller;
    (void)worse;
{lines}
    return 0;
}}

void {name}_home(double state[S + N]) /* the linkage, then the joints */
{{
    static const double home[S] = {{ /* its rates are not known yet: zero */
        {home}
    }};
    for (int k = 0; k < S; k++)
        state[k] = home[k];
    for (int k = 0; k < N; k++)
        state[S + k] = {name}_home_joints[k];
}}

/* Leads `at` on along a way, which is used up, if it is short; `out` as `lead` writes it. */
static int one_part(const double joints[N], const double effort[N], double way[N], double at[S],
                    double out[S + 2 + 2 * M])
{{
    double was[S];
    for (int k = 0; k < S; k++)
        was[k] = at[k];
    for (int correction = 0; correction < {corrections}; correction++) {{
        if (lead(joints, at, effort, way, out) || !(out[S] < {lost!r}))
            break;
        for (int k = 0; k < S; k++)
            at[k] = out[k];
        for (int k = 0; k < N; k++)
            way[k] = 0.0;
        if (out[S] < {solved!r})
            return out[S + 1] > {singular!r} ? {NAME}_OK : {NAME}_FOLDED;
    }}
    for (int k = 0; k < S; k++)
        at[k] = was[k];
    return {NAME}_TOO_FAR;
}}

/* Leads from `begin`, a state, straight to the joints, in as many parts as it takes. */
static int in_parts(const double begin[S + N], const double joints[N], const double effort[N], double at[S],
                    double out[S + 2 + 2 * M])
{{
    double done = 0.0, part = 1.0, aim[N], way[N];
    for (int k = 0; k < S; k++)
        at[k] = begin[k];
    for (int tried = 0; tried < {tries}; tried++) {{
        const double next = done + part;
        for (int k = 0; k < N; k++) {{
            aim[k] = next >= 1.0 ? joints[k] : begin[S + k] + next * (joints[k] - begin[S + k]);
            way[k] = aim[k] - begin[S + k] - done * (joints[k] - begin[S + k]);
        }}
        const int status = one_part(aim, effort, way, at, out);
        if (status != {NAME}_TOO_FAR) {{
            done = next;
            if (done >= 1.0)
                return status;
        }} else {{
            part *= 0.5;
            if (part < {shortest!r})
                break;
        }}
    }}
    return {NAME}_TOO_FAR;
}}

static int solve(const double joints[N], const double effort[N], const double state[S + N], double at[S],
                 double out[S + 2 + 2 * M])
{{
    double home[S + N], total = 0.0;
    for (int k = 0; k < N; k++)
        total += 0.0 * joints[k] + 0.0 * effort[k];
    if (!isfinite(total))
        return {NAME}_INVALID;
    int status = in_parts(state, joints, effort, at, out);
    if (status == {NAME}_TOO_FAR) {{
        {name}_home(home);
        status = in_parts(home, joints, effort, at, out);
    }}
    if (status != {NAME}_OK) /* then `out` may not have been written */
        return status;
    for (int k = 0; k < 2 * M; k++)
        total += 0.0 * out[S + 2 + k];
    return isfinite(total) ? {NAME}_OK : {NAME}_INVALID;
}}

int {name}_to_actuators(const double joints[N], const double joint_effort[N], double state[S + N],
                        double actuators[M], double actuator_effort[M], double *margin)
{{
    double at[S], out[S + 2 + 2 * M];
    out[S + 1] = (double)NAN;
    const int status = solve(joints, joint_effort, state, at, out);
    if (status != {NAME}_TOO_FAR && !isnan(out[S + 1])) {{ /* it was solved */
        for (int k = 0; k < S; k++)
            state[k] = at[k];
        for (int k = 0; k < N; k++)
            state[S + k] = joints[k];
    }}
    for (int k = 0; k < M; k++) {{
        actuators[k] = status == {NAME}_OK ? out[S + 2 + k] : (double)NAN;
        actuator_effort[k] = status == {NAME}_OK ? out[S + 2 + M + k] : (double)NAN;
    }}
    if (margin != NULL)
        *margin = status == {NAME}_TOO_FAR ? (double)NAN : out[S + 1];
    return status;
}}
"""


def name_in_c(transmission: Transmission) -> str:
    """What the functions of a linkage begin with: the file's name and the first joint."""
    return identifier(f"{transmission.tree.name}_{transmission.joints[0]}")


def transmission_in_c(transmission: Transmission, name: str) -> dict[str, str]:
    """Text of a header and a source by file name; functions begin with `name`."""
    name, t = identifier(name), transmission
    system = t.linkage.system
    recording, dependent = record_lean(system, t.actuators)
    n, m, states = len(t.joints), len(t.actuators), (2 + len(t.joints)) * len(dependent)
    inputs = {(0, k): f"joint[{k}]" for k in range(n)}
    inputs |= {(0, n + k): f"was[{k}]" for k in range(states)} | {(0, n + states + k): f"effort[{k}]" for k in range(n)}
    inputs |= {(0, 2 * n + states + k): f"way[{k}]" for k in range(n)}
    results = [(f"out[{k}]", number) for k, number in enumerate(recording.results)]
    tape = recording.tape
    part = Part("the linkage", len(tape.order), len(tape.conditions), "return 1;", results)
    lines = CCode(tape, [part], inputs, {}, {}).lines({})
    given = {
        "name": name, "NAME": name.upper(), "n": n, "m": m, "states": states, "whole": states + n,
        "title": harmless(t.tree.name),
        "joints": harmless(", ".join(t.joints)), "actuators": harmless(", ".join(t.actuators)),
        "joint_names": ", ".join(map(quoted, t.joints)), "actuator_names": ", ".join(map(quoted, t.actuators)),
        "home_joints": ", ".join(repr(float(x)) for x in t.home), "lines": "\n".join(lines),
        "home": _numbers(state_at(system, system.home, dependent)),
        "parts": round(1.0 / SHORTEST), "tries": TRIES, "shortest": SHORTEST,
        "corrections": CORRECTIONS, "lost": LOST, "solved": SQUARED, "singular": SINGULAR_BELOW,
        "digest": digest_of(t.tree),
    }  # fmt: skip
    header, source = HEADER.format(**given), SOURCE.format(keeps_nan=KEEPS_NAN, **given)
    contents = f'_CONTENTS "{contents_of(header, source)}" /* digests of .h and .c */'
    return {f"{name}.h": header.replace('_CONTENTS ""', contents), f"{name}.c": source}


def _numbers(values: Array) -> str:
    return ",\n        ".join(", ".join(repr(float(x)) for x in row) for row in np.reshape(values, (-1, 2)))
