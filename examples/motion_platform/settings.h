/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of two machines: the hexapod of hobby servos, and the seat on six electric cylinders. */
#include "motion_platform.h"

static const struct settings hobby_hexapod_settings = {
    .period = 0.002f, .gain = 0.15f, .largest = 1.5f, .split = 2.5f, .washout = 4.0f, .tilting = 4.0f,
    .tilt_rate = 0.2f, .drive_acceleration = 150.0f,
    .counts_per_unit = 2086.08f, /* 1000 us of a pulse for 90 degrees, and 65536 counts for 20 ms */
    .least_margin = 0.02f, .seat = {0.0f, 0.0f, 0.03f}};

static const struct settings seat_settings = {
    .period = 0.001f, .gain = 0.4f, .largest = 3.0f, .split = 2.0f, .washout = 2.5f, .tilting = 4.0f,
    .tilt_rate = 0.052f, .drive_acceleration = 4.0f,
    .counts_per_unit = 400000.0f, /* steps per m: a screw of 5 mm, 2000 steps per turn */
    .least_margin = 0.02f, .seat = {0.0f, 0.0f, 0.5f}};
