/* SPDX-License-Identifier: Apache-2.0 */
/* Classical washout (Reid and Nahon, 1985) over a robot's exported kinematics, in floats. */
#include "motion_platform.h"

#include <math.h>
#include <string.h>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define PKM(name) JOIN(ROBOT, name)
#include TEXT(ROBOT.h)

static const float weight = 9.80665f;

static float within(float x, float most) { return x > most ? most : x < -most ? -most : x; }

/* -- rotations: quaternions are x y z w -------------------------------------------------------------------------- */

static void product(const float a[4], const float b[4], float out[4])
{
    out[0] = a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1];
    out[1] = a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0];
    out[2] = a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3];
    out[3] = a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2];
}

/* Yaw, then pitch, then roll, each about the axes rotated by the previous ones. */
static void of_angles(const float rpy[3], float q[4])
{
    const float cr = cosf(0.5f * rpy[0]), sr = sinf(0.5f * rpy[0]);
    const float cp = cosf(0.5f * rpy[1]), sp = sinf(0.5f * rpy[1]);
    const float cy = cosf(0.5f * rpy[2]), sy = sinf(0.5f * rpy[2]);
    q[0] = sr * cp * cy - cr * sp * sy;
    q[1] = cr * sp * cy + sr * cp * sy;
    q[2] = cr * cp * sy - sr * sp * cy;
    q[3] = cr * cp * cy + sr * sp * sy;
}

/* A vector of the platform in base axes; `way` -1: the other way. */
static void turned(const float q[4], float way, const float v[3], float out[3])
{
    const float x = way * q[0], y = way * q[1], z = way * q[2], w = q[3];
    const float a = 2.0f * (y * v[2] - z * v[1]), b = 2.0f * (z * v[0] - x * v[2]), c = 2.0f * (x * v[1] - y * v[0]);
    out[0] = v[0] + w * a + y * c - z * b;
    out[1] = v[1] + w * b + z * a - x * c;
    out[2] = v[2] + w * c + x * b - y * a;
}

/* The small rotation from one attitude to another, as a vector in base axes. */
static void turn_between(const float from[4], const float to[4], float out[3])
{
    const float back[4] = {-from[0], -from[1], -from[2], from[3]};
    float q[4];
    product(to, back, q);
    for (int k = 0; k < 3; k++)
        out[k] = q[3] < 0.0f ? -2.0f * q[k] : 2.0f * q[k];
}

/* -- the platform ------------------------------------------------------------------------------------------------ */

/* Whether the pose is possible: within all ranges, and far enough from singularities. */
static int stands(const struct settings *s, const float pose[7], float drives[DRIVES])
{
    float margins[2];
    return PKM(inverse)(pose, 0, drives, 0) == PKM_OK && PKM(margins)(pose, 0, margins) == PKM_OK &&
           margins[0] >= s->least_margin && margins[1] >= s->least_margin;
}

/* The pose with the seat displaced from home, and rotated. */
static void pose_of(const struct settings *s, const float place[3], const float rpy[3], float pose[7])
{
    float q[4], arm[3];
    of_angles(rpy, q);
    turned(q, 1.0f, s->seat, arm);
    for (int k = 0; k < 3; k++)
        pose[k] = PKM(home)[k] + place[k] + s->seat[k] - arm[k];
    product(q, &PKM(home)[3], &pose[3]);
}

int platform_start(struct platform *p, const struct settings *settings)
{
    memset(p, 0, sizeof *p);
    p->settings = settings;
    memcpy(p->pose, PKM(home), sizeof p->pose);
    const int good = stands(settings, p->pose, p->drives);
    memcpy(p->home, p->drives, sizeof p->home);
    return good;
}

/* The vehicle's motion as rates: of the speed, of tilts and of rotations. */
static void washout(struct platform *p, const struct vehicle *vehicle, float tilting[3], float turning[3])
{
    const struct settings *s = p->settings;
    for (int k = 0; k < 3; k++) {
        const float a = within(s->gain * vehicle->acceleration[k], s->largest), w = s->washout;
        p->low[k] += s->period * s->split * (a - p->low[k]);
        p->speed[k] += s->period * (a - p->low[k] - 2.0f * w * p->speed[k] - w * w * p->place[k]);
        turning[k] = s->gain * vehicle->rate[k] - w * p->turn[k];
    }
    /* leaning back feels like acceleration forward, leaning right like acceleration to the left */
    const float wanted[3] = {asinf(within(p->low[1] / weight, 0.5f)), -asinf(within(p->low[0] / weight, 0.5f)), 0.0f};
    for (int k = 0; k < 3; k++)
        tilting[k] = within(s->tilting * (wanted[k] - p->tilt[k]), s->tilt_rate);
}

/* The feasible part of a step: within the drives' rate, and slow enough to brake before their ends. */
static float possible(const struct platform *p, const float next[7])
{
    float jacobian[DRIVES * 6], step[6], part = 1.0f;
    if (PKM(jacobian)(p->pose, 0, jacobian) != PKM_OK)
        return 0.0f;
    for (int k = 0; k < 3; k++)
        step[k] = next[k] - p->pose[k];
    turn_between(&p->pose[3], &next[3], &step[3]);
    for (int i = 0; i < DRIVES; i++) {
        float rate = 0.0f;
        for (int k = 0; k < 6; k++)
            rate += jacobian[6 * i + k] * step[k] / p->settings->period;
        const int joint = PKM(actuated_joint)[i];
        const float room = rate > 0.0f ? PKM(upper)[joint] - p->drives[i] : p->drives[i] - PKM(lower)[joint];
        const float braking = sqrtf(2.0f * p->settings->drive_acceleration * (room > 0.0f ? room : 0.0f));
        const float most = braking < PKM(largest_rate)[i] ? braking : PKM(largest_rate)[i];
        if (fabsf(rate) * part > most)
            part = most / fabsf(rate);
    }
    return part;
}

void platform_step(struct platform *p, const struct vehicle *vehicle, long pulses[DRIVES])
{
    const struct settings *s = p->settings;
    float tilting[3], turning[3], place[3], tilt[3], turn[3], rpy[3], next[7], drives[DRIVES], part = 1.0f;
    washout(p, vehicle, tilting, turning);
    for (int attempt = 0; attempt < 2; attempt++) { /* the whole step, then the feasible part */
        for (int k = 0; k < 3; k++) {
            place[k] = p->place[k] + part * s->period * p->speed[k];
            tilt[k] = p->tilt[k] + part * s->period * tilting[k];
            turn[k] = p->turn[k] + part * s->period * turning[k];
            rpy[k] = tilt[k] + turn[k];
        }
        pose_of(s, place, rpy, next);
        if (attempt == 1 || (part = possible(p, next)) == 1.0f)
            break;
    }
    const int goes = stands(s, next, drives);
    p->limited += part < 1.0f;
    p->refused += !goes;
    for (int k = 0; k < 3; k++) {
        p->speed[k] *= goes ? part : 0.0f; /* omitted motion is not made up for later */
        if (!goes)
            continue;
        p->place[k] = place[k];
        p->tilt[k] = tilt[k];
        p->turn[k] = turn[k];
    }
    for (int i = 0; i < DRIVES; i++) {
        if (goes)
            p->drives[i] = drives[i];
        const long counts = lroundf((p->drives[i] - p->home[i]) * s->counts_per_unit);
        pulses[i] = counts - p->counts[i];
        p->counts[i] = counts;
    }
    if (goes)
        memcpy(p->pose, next, sizeof next);
}

float platform_room(const struct platform *p, int axis, int side)
{
    float pose[7], arm[3], moved[3], drives[DRIVES], reached = 0.0f, step = 0.02f;
    while (step > 1e-5f && reached < 3.0f) {
        const float way = (float)side * (reached + step);
        float rpy[3] = {0}, q[4];
        memcpy(pose, p->pose, sizeof pose);
        if (axis < 3)
            pose[axis] += way;
        else { /* about the seat */
            rpy[axis - 3] = way;
            of_angles(rpy, q);
            turned(&p->pose[3], 1.0f, p->settings->seat, arm);
            turned(q, 1.0f, arm, moved);
            for (int k = 0; k < 3; k++)
                pose[k] += arm[k] - moved[k];
            product(q, &p->pose[3], &pose[3]);
        }
        if (stands(p->settings, pose, drives))
            reached += step;
        else
            step *= 0.5f;
    }
    return reached;
}

int seat_feels(struct platform *p, float spacing, float force[3], float rate[3])
{
    float drives[DRIVES], *now = p->seen[2], arm[3], at[3][3], pull[3], turn[3];
    memmove(p->seen[0], p->seen[1], 2 * sizeof p->seen[0]);
    for (int i = 0; i < DRIVES; i++)
        drives[i] = p->home[i] + (float)p->counts[i] / p->settings->counts_per_unit;
    if (PKM(forward)(drives, p->n_seen ? p->seen[1] : PKM(home), now) != PKM_OK) {
        p->n_seen = 0;
        return 0;
    }
    if (p->n_seen < 3 && ++p->n_seen < 3)
        return 0;
    for (int i = 0; i < 3; i++) {
        turned(&p->seen[i][3], 1.0f, p->settings->seat, arm);
        for (int k = 0; k < 3; k++)
            at[i][k] = p->seen[i][k] + arm[k];
    }
    for (int k = 0; k < 3; k++)
        pull[k] = (at[0][k] - 2.0f * at[1][k] + at[2][k]) / (spacing * spacing);
    pull[2] += weight;
    turn_between(&p->seen[0][3], &p->seen[2][3], turn);
    turned(&p->seen[1][3], -1.0f, pull, force);
    turned(&p->seen[1][3], -1.0f, turn, rate);
    for (int k = 0; k < 3; k++)
        rate[k] /= 2.0f * spacing;
    return 1;
}
