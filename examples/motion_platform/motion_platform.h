/* SPDX-License-Identifier: Apache-2.0 */
/* A motion platform with six drives: what a vehicle does, to counts of the drives, and back to what the seat feels.
 *
 * Compile with -DROBOT=name of the exported robot. Axes: x forward, y left, z up, in the vehicle as on the platform at
 * home; SI units. Nothing is allocated; all state is in struct platform. */
#ifndef MOTION_PLATFORM_H
#define MOTION_PLATFORM_H

enum { DRIVES = 6 };

struct settings {
    float period;             /* s, of a step */
    float gain;               /* how much of the vehicle's acceleration, and of its turning, is shown */
    float largest;            /* m/s^2: accelerations are cut off here, after the gain */
    float split;              /* rad/s: what changes faster moves the platform, what changes slower tilts it */
    float washout;            /* rad/s: how quickly the platform goes back to home */
    float tilting;            /* rad/s: how quickly a tilt follows */
    float tilt_rate;          /* rad/s: slower than people notice, 0.05 */
    float drive_acceleration; /* rad/s^2 or m/s^2: with which drives brake before their ends */
    float counts_per_unit;    /* counts of a drive per rad or m: steps, or parts of a servo's pulse */
    float least_margin;       /* of the robot's margins, 1 at best and 0 at a singularity */
    float seat[3];            /* m: where the head is above the platform's origin, on the platform */
};

struct vehicle {
    float acceleration[3]; /* m/s^2, in the vehicle's axes, without weight */
    float rate[3];         /* rad/s, of roll, pitch and yaw */
};

struct platform {
    const struct settings *settings;
    float low[3];               /* m/s^2: the slow part of the acceleration, which tilts show */
    float place[3], speed[3];   /* m, m/s: of the seat, from home */
    float tilt[3], turn[3];     /* rad: roll, pitch, yaw that stand for acceleration, and that are turns */
    float pose[7];              /* of the platform: x y z qx qy qz qw */
    float drives[DRIVES], home[DRIVES]; /* rad or m */
    long counts[DRIVES];        /* of the drives, from home */
    long limited, refused;      /* steps that were made shorter, and that were not made */
    float seen[3][7];           /* poses that the counts say, for seat_feels */
    int n_seen;
};

/* At home; 0 where the robot cannot be there. */
int platform_start(struct platform *p, const struct settings *settings);

/* One period: `pulses` are the counts that each drive has to go, within its range and rate. */
void platform_step(struct platform *p, const struct vehicle *vehicle, long pulses[DRIVES]);

/* How far the platform can go from where it is, in m or rad: axis 0 to 5 are x, y, z, roll, pitch, yaw, side +1 or -1. */
float platform_room(const struct platform *p, int axis, int side);

/* What the seat feels, from the counts of the drives alone: specific force in m/s^2 (at rest 9.81 upwards) and rate of
 * turn in rad/s, in axes of the seat. To be called every `spacing` seconds, 0.02 for one; what it says was that long
 * ago. 0 while there is no answer yet. */
int seat_feels(struct platform *p, float spacing, float force[3], float rate[3]);

#endif
