/* SPDX-License-Identifier: Apache-2.0 */
/* Kinematics of a robot with three translations (a Delta) for grblHAL, over what `pkm export ROBOT --to c --scalar float`
 * writes. Put it into grblHAL's folder as a plugin, with ROBOT.h and ROBOT.c beside it; build with -DKINEMATICS_API
 * -DADD_MY_PLUGIN -DROBOT=delta, and for linear drives -DPER_DRIVE=1000.0f.
 *
 * X, Y, Z are mm in the robot's base frame. Drives are counted in rad, or mm where they slide: so are steps ($100 to
 * $102), rates, accelerations and travel. All three are homed together, to switches at the lower ends of their ranges. */
#include "grbl.h"

#include <math.h>
#include <string.h>

#include "hal.h"
#include "planner.h"
#include "settings.h"
#include "system.h"

#include "kinematics/interface.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define PKM(name) JOIN(ROBOT, name)
#include TEXT(ROBOT.h)

#ifndef PER_DRIVE
#define PER_DRIVE 1.0f
#endif
#define LEAST_MARGIN 0.02f /* of the robot's margins: 1 at best, 0 at a singularity */
#define SEGMENT 1.0f /* mm: a line is straight to the square of this over eight times the arms' length */
enum { DRIVES = 3 };

static bool jog_cancelled;
static on_homing_completed_ptr on_homing_completed;
static on_report_options_ptr on_report_options;

/* Drives for a position. Returns false, and writes nothing, if the robot does not reach it, if a joint is out of its
 * range, or near a singularity, such as with a stretched limb: there, rounding of the drives is too large. */
static bool drives_of(const float place[], float drives[])
{
    float pose[7], found[DRIVES], margins[2];
    memcpy(pose, PKM(home), sizeof pose);
    for (int k = 0; k < DRIVES; k++)
        pose[k] = 0.001f * place[k];
    if (PKM(inverse)(pose, 0, found, NULL) != PKM_OK || PKM(margins)(pose, 0, margins) != PKM_OK ||
        margins[0] < LEAST_MARGIN || margins[1] < LEAST_MARGIN)
        return false;
    for (int k = 0; k < DRIVES; k++)
        drives[k] = PER_DRIVE * found[k];
    return true;
}

/* Position for drives: the continuation of the last one found, or else of home; NaN if there is none. */
static void place_of(const float drives[], float place[])
{
    static float last[7];
    static bool known;
    float given[DRIVES], pose[7];
    for (int k = 0; k < DRIVES; k++)
        given[k] = drives[k] / PER_DRIVE;
    const bool found =
        (known && PKM(forward)(given, last, pose) == PKM_OK) || PKM(forward)(given, PKM(home), pose) == PKM_OK;
    if (found)
        memcpy(last, pose, sizeof last);
    known = known || found;
    for (int k = 0; k < DRIVES; k++)
        place[k] = found ? 1000.0f * pose[k] : NAN;
}

static coord_data_t *steps_to_cartesian(coord_data_t *position, mpos_t *steps)
{
    coord_data_t drives;
    for (int k = 0; k < N_AXIS; k++)
        position->values[k] = drives.values[k] = (float)steps->values[k] / settings.axis[k].steps_per_mm;
    place_of(drives.values, position->values);
    return position;
}

static coord_data_t *from_cartesian(coord_data_t *target, coord_data_t *position)
{
    memcpy(target, position, sizeof *target); /* axes that are not drives of the robot */
    if (!drives_of(position->values, target->values)) /* called without a check before: stay */
        for (int k = 0; k < DRIVES; k++)
            target->values[k] = (float)sys.position[k] / settings.axis[k].steps_per_mm;
    return target;
}

static float distance(const float a[], const float b[])
{
    return sqrtf((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]));
}

/* A line in pieces: call it first with `init` for the target, then without until it returns NULL. */
static coord_data_t *segment_line(coord_data_t *target, coord_data_t *position, plan_line_data_t *plan, bool init)
{
    static coord_data_t from, to, before, drives; /* places at both ends; drives before the piece, and at its end */
    static uint32_t piece, pieces;
    if (init) {
        jog_cancelled = false;
        piece = 0;
        from = to = before = drives = *position;
        place_of(position->values, from.values);
        const bool reached = drives_of(target->values, drives.values) && !isnan(from.x);
        plan->condition.target_validated = On;
        plan->condition.target_valid = reached;
        pieces = reached ? 1 + (uint32_t)(distance(target->values, from.values) / SEGMENT) : 0;
        if (reached)
            to = *target;
        return &drives;
    }
    if (piece++ >= pieces || jog_cancelled)
        return NULL;
    const float part = (float)piece / (float)pieces;
    coord_data_t place;
    for (int k = 0; k < N_AXIS; k++)
        place.values[k] = piece == pieces ? to.values[k] : from.values[k] + part * (to.values[k] - from.values[k]);
    memcpy(&drives, &place, sizeof drives);
    if (!drives_of(place.values, drives.values))
        return NULL;
    const float way = distance(to.values, from.values) / (float)pieces;
    if (!plan->condition.rapid_motion && way > 0.0f) { /* requested along the line, planned for the drives */
        const float ratio = distance(drives.values, before.values) / way;
        plan->feed_rate *= ratio;
        plan->rate_multiplier = ratio > 0.0f ? 1.0f / ratio : 1.0f;
    }
    before = drives;
    return &drives;
}

static bool check_travel_limits(float *target, axes_signals_t axes, bool is_cartesian, work_envelope_t *envelope)
{
    (void)axes;
    (void)envelope;
    float drives[N_AXIS], place[N_AXIS];
    if (is_cartesian)
        return drives_of(target, drives);
    place_of(target, place);
    return drives_of(place, drives);
}

/* Limits a jog: as far towards the target as the robot reaches. */
static void apply_travel_limits(float *target, float *position, work_envelope_t *envelope)
{
    (void)envelope;
    float drives[N_AXIS], wanted[DRIVES], part = 1.0f;
    memcpy(wanted, target, sizeof wanted);
    for (int attempt = 0; position && attempt < 50 && !drives_of(target, drives); attempt++) {
        part = attempt < 49 ? part - 0.02f : 0.0f;
        for (int k = 0; k < DRIVES; k++)
            target[k] = position[k] + part * (wanted[k] - position[k]);
    }
}

/* -- homing: the drives go to their switches ---------------------------------------------------------------------- */

static coord_data_t *as_drives(coord_data_t *target, coord_data_t *position)
{
    memcpy(target, position, sizeof *target);
    return target;
}

static float homing_feedrate(axes_signals_t axes, float rate, homing_mode_t mode)
{
    (void)axes;
    (void)mode;
    kinematics.transform_from_cartesian = as_drives;
    return rate;
}

static bool homing_validate(axes_signals_t cycle) { return (cycle.mask & 7) == 7; }

static uint_fast8_t axis_mask(uint_fast8_t idx) { return (uint_fast8_t)bit(idx); }

static void set_target_position(uint_fast8_t idx) { sys.position[idx] = 0; }

static void set_machine_positions(axes_signals_t cycle)
{
    for (int k = 0; k < N_AXIS; k++)
        if (cycle.mask & bit(k)) {
            const float at = k < DRIVES ? PER_DRIVE * PKM(lower)[PKM(actuated_joint)[k]] : 0.0f;
            sys.position[k] = lroundf(at * settings.axis[k].steps_per_mm);
        }
}

static void homing_completed(axes_signals_t cycle, bool success)
{
    kinematics.transform_from_cartesian = from_cartesian;
    if (on_homing_completed)
        on_homing_completed(cycle, success);
}

static void cancel_jog(sys_state_t state)
{
    (void)state;
    jog_cancelled = true;
}

static void report_options(bool newopt)
{
    on_report_options(newopt);
    if (!newopt)
        hal.stream.write("[KINEMATICS:" TEXT(ROBOT) "]" ASCII_EOL);
}

void my_plugin_init(void)
{
    kinematics.transform_steps_to_cartesian = steps_to_cartesian;
    kinematics.transform_from_cartesian = from_cartesian;
    kinematics.segment_line = segment_line;
    kinematics.limits_get_axis_mask = axis_mask;
    kinematics.limits_set_target_pos = set_target_position;
    kinematics.limits_set_machine_positions = set_machine_positions;
    kinematics.homing_cycle_validate = homing_validate;
    kinematics.homing_cycle_get_feedrate = homing_feedrate;
    grbl.check_travel_limits = check_travel_limits;
    grbl.check_arc_travel_limits = NULL; /* each piece of an arc is checked */
    grbl.apply_travel_limits = apply_travel_limits;
    grbl.on_jog_cancel = cancel_jog;
    on_homing_completed = grbl.on_homing_completed;
    grbl.on_homing_completed = homing_completed;
    on_report_options = grbl.on_report_options;
    grbl.on_report_options = report_options;
}
