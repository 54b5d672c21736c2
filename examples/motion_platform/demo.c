/* SPDX-License-Identifier: Apache-2.0 */
/* A car accelerates and brakes: prints, every 20 ms, its motion, the counts of the drives, and the motion at the seat.
 * On a Cortex-M it also prints the instructions per step. `demo sway` moves sideways, `demo wild` recklessly. */
#include "settings.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

#ifdef __arm__
uint32_t instructions(void); /* mps2.c */
void two_million(void);
#else
static uint32_t instructions(void) { return 0; }
static void two_million(void) {}
#endif

static struct vehicle drive(float time, int axis)
{
    struct vehicle car = {{0.0f}, {0.0f}};
    car.acceleration[axis] = time < 0.5f ? 0.0f : time < 3.5f ? 4.0f : time < 5.0f ? 0.0f : time < 7.0f ? -8.0f : 0.0f;
    return car;
}

static struct vehicle drive_wildly(void)
{
    static uint32_t state = 2463534242u;
    static struct vehicle car;
    for (int k = 0; k < 6; k++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        if (state % 64 == 0) { /* jumps, held for a while */
            float *one = k < 3 ? &car.acceleration[k] : &car.rate[k - 3];
            *one = ((float)(state >> 8) / 8388608.0f - 1.0f) * (k < 3 ? 100.0f : 10.0f);
        }
    }
    return car;
}

int main(int argc, char **argv)
{
    const struct settings *s = &JOIN(ROBOT, settings);
    const int wild = argc > 1 && strcmp(argv[1], "wild") == 0, axis = argc > 1 && strcmp(argv[1], "sway") == 0;
    const long steps = (long)(10.0f / s->period), every = (long)(0.02f / s->period + 0.5f);
    struct platform p;
    uint32_t most = 0, most_seat = 0;
    uint64_t all = 0;
    if (!platform_start(&p, s))
        return 1;
    for (int k = 0; k < 6; k++)
        printf("# %c: %.4f to %.4f\n", "xyzRPY"[k], (double)-platform_room(&p, k, -1), (double)platform_room(&p, k, 1));
    for (long n = 0; n < steps; n++) {
        const struct vehicle car = wild ? drive_wildly() : drive((float)n * s->period, axis);
        long pulses[DRIVES];
        float force[3], rate[3];
        const uint32_t before = instructions();
        platform_step(&p, &car, pulses);
        const uint32_t used = instructions() - before;
        most = used > most ? used : most;
        all += used;
        if ((n + 1) % every)
            continue;
        const uint32_t asked = instructions();
        const int felt = seat_feels(&p, (float)every * s->period, force, rate);
        const uint32_t answered = instructions() - asked;
        most_seat = answered > most_seat ? answered : most_seat;
        if (!felt)
            continue;
        printf("%.3f,%.3f", (double)((float)(n + 1) * s->period), (double)car.acceleration[axis]);
        for (int i = 0; i < DRIVES; i++)
            printf(",%ld", p.counts[i]);
        for (int k = 0; k < 3; k++)
            printf(",%.4f", (double)force[k]);
        for (int k = 0; k < 3; k++)
            printf(",%.4f", (double)rate[k]);
        printf("\n");
    }
    printf("# steps made shorter %ld, not made %ld, of %ld\n", p.limited, p.refused, steps);
    if (all == 0)
        return 0;
    const uint32_t before = instructions();
    two_million();
    const uint32_t after = instructions();
    printf("# instructions per step: mean %lu, at most %lu; to compute back at most %lu\n",
           (unsigned long)(all / (uint64_t)steps), (unsigned long)most, (unsigned long)most_seat);
    printf("# two million instructions are counted as %lu\n", (unsigned long)(after - before));
    return 0;
}
