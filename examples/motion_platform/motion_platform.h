/* SPDX-License-Identifier: Apache-2.0 */
/* A motion platform with six drives: from the motion of a vehicle to counts of the drives, and back to the motion felt.
 *
 * Compile with -DROBOT=name of the exported robot. Axes: x forward, y left, z up, in the vehicle as on the platform at
 * home; SI units. Nothing is allocated; all state is in struct platform. */
#ifndef MOTION_PLATFORM_H
#define MOTION_PLATFORM_H

enum { DRIVES = 6 };

struct settings {
    float period;             /* s, of a step */
    float gain;               /* share of the vehicle's acceleration and rotation that is shown */
    float largest;            /* m/s^2: limit of accelerations, after the gain */
    float split;              /* rad/s: faster changes move the platform, slower changes tilt it */
    float washout;            /* rad/s: bandwidth of the return to home */
    float tilting;            /* rad/s: bandwidth of the tilt */
    float tilt_rate;          /* rad/s: below the threshold of perception, 0.05 */
    float drive_acceleration; /* rad/s^2 or m/s^2: deceleration of drives before their ends */
    float counts_per_unit;    /* counts of a drive per rad or m: steps, or parts of a servo's pulse */
    float least_margin;       /* bound on the robot's margins: 1 at best, 0 at a singularity */
    float seat[3];            /* m: place of the head, from the platform's origin, in platform axes */
};

struct vehicle {
    float acceleration[3]; /* m/s^2, in the vehicle's axes, without weight */
    float rate[3];         /* rad/s, of roll, pitch and yaw */
};

struct platform {
    const struct settings *settings;
    float low[3];               /* m/s^2: the slow part of the acceleration, shown by tilts */
    float place[3], speed[3];   /* m, m/s: of the seat, from home */
    float tilt[3], turn[3];     /* rad: roll, pitch, yaw for acceleration, and for rotation */
    float pose[7];              /* of the platform: x y z qx qy qz qw */
    float drives[DRIVES], home[DRIVES]; /* rad or m */
    long counts[DRIVES];        /* of the drives, from home */
    long limited, refused;      /* shortened steps, and skipped steps */
    float seen[3][7];           /* poses computed from the counts, for seat_feels */
    int n_seen;
};

/* Start at home; 0 if the robot cannot reach it. */
int platform_start(struct platform *p, const struct settings *settings);

/* One period: `pulses` are the counts that each drive must move, within its range and rate. */
void platform_step(struct platform *p, const struct vehicle *vehicle, long pulses[DRIVES]);

/* Distance from the current pose to a limit, in m or rad. Axes 0 to 5: x, y, z, roll, pitch, yaw; side: +1 or -1. */
float platform_room(const struct platform *p, int axis, int side);

/* Motion at the seat, only from the counts of the drives: specific force in m/s^2 (at rest 9.81 upwards) and angular
 * velocity in rad/s, in axes of the seat. Call it every `spacing` seconds, for example 0.02; the result is that old.
 * Returns 0 while there is no result yet. */
int seat_feels(struct platform *p, float spacing, float force[3], float rate[3]);

#endif
