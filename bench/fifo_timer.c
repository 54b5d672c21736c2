/* SPDX-License-Identifier: Apache-2.0
 * A thread that only wakes: at a rate [Hz], for some seconds, with a SCHED_FIFO priority, on one processor. Prints its
 * wake-up times [s]. What it misses, this computer misses.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    const double rate = atof(argv[1]);
    const long count = (long)(rate * atof(argv[2])), period = (long)(1e9 / rate);
    const struct sched_param priority = {.sched_priority = atoi(argv[3])};
    cpu_set_t processor;
    CPU_ZERO(&processor);
    CPU_SET(atoi(argv[4]), &processor);
    if (sched_setaffinity(0, sizeof processor, &processor) != 0)
        perror("processor");
    double *wakes = malloc((size_t)count * sizeof *wakes);
    if (wakes == NULL || mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        perror("memory");
    if (priority.sched_priority > 0 && sched_setscheduler(0, SCHED_FIFO, &priority) != 0)
        perror("no real-time scheduling");
    struct timespec due, now;
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (long k = 0; k < count; k++) {
        due.tv_nsec += period;
        while (due.tv_nsec >= 1000000000L) {
            due.tv_nsec -= 1000000000L;
            due.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
        wakes[k] = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    }
    for (long k = 0; k < count; k++)
        printf("%.9f\n", wakes[k]);
    return 0;
}
