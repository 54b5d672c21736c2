/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips through a kinematics module of LinuxCNC, as its motion module would call it: `trips MODULE UNIT PIN=VALUE... < POSES`.
 *
 * UNIT is the module's unit of length in mm. POSES are rows of doubles: x y z a b c in mm and degrees, then a pose to
 * begin from when it is sought again. Says a byte for each row: 0 it came back, 1 no
 * joints for it, 2 no pose for them, 3 another pose. Stands in for the parts of HAL that modules ask for when they are
 * loaded, and ends with how long the poses took, in ns, on standard error. */
#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    double x, y, z, a, b, c, u, v, w;
} Pose;
typedef int (*Forward)(const double *, Pose *, const unsigned long *, unsigned long *);
typedef int (*Inverse)(const Pose *, double *, const unsigned long *, unsigned long *);

static void *room(void) { return calloc(1, 64); }
int hal_init(const char *name) { return (void)name, 1; }
int hal_exit(int id) { return (void)id, 0; }
int hal_ready(int id) { return (void)id, 0; }
void *hal_malloc(long size) { return calloc(1, (size_t)size); }
int hal_pin_bit_new(const char *n, int d, void **p, int id) { return (void)n, (void)d, (void)id, *p = room(), 0; }
int hal_pin_s32_new(const char *n, int d, void **p, int id) { return (void)n, (void)d, (void)id, *p = room(), 0; }
int hal_pin_bit_newf(int d, void **p, int id, const char *f, ...) { return (void)d, (void)id, (void)f, *p = room(), 0; }
int hal_pin_u32_newf(int d, void **p, int id, const char *f, ...) { return (void)d, (void)id, (void)f, *p = room(), 0; }
static struct {
    char name[64];
    double *value;
} pins[256];
static int n_pins;
int hal_pin_float_newf(int direction, double **pin, int id, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    vsnprintf(pins[n_pins].name, sizeof pins[n_pins].name, format, words);
    va_end(words);
    return (void)direction, (void)id, pins[n_pins++].value = *pin = room(), 0;
}
static int set_pin(const char *given)
{
    for (int i = 0; i < n_pins; i++) {
        const size_t length = strlen(pins[i].name);
        if (!strncmp(pins[i].name, given, length) && given[length] == '=')
            return *pins[i].value = atof(given + length + 1), 1;
    }
    return 0;
}
int hal_export_funct(void) { return 0; }
int rtapi_snprintf(char *out, unsigned long size, const char *format, ...) { return (void)format, size ? *out = 0 : 0; }
void rtapi_print(const char *format, ...) { (void)format; }
void rtapi_print_msg(int level, const char *format, ...) { (void)level, (void)format; }

static int same(const Pose *p, const Pose *q)
{
    const double turns = 360.0;
    return fabs(p->x - q->x) < 1e-4 && fabs(p->y - q->y) < 1e-4 && fabs(p->z - q->z) < 1e-4 &&
           fabs(remainder(p->a - q->a, turns)) < 1e-4 && fabs(remainder(p->b - q->b, turns)) < 1e-4 &&
           fabs(remainder(p->c - q->c, turns)) < 1e-4;
}

static Pose scaled(const double row[6], double unit)
{
    const Pose p = {row[0] * unit, row[1] * unit, row[2] * unit, row[3], row[4], row[5], 0.0, 0.0, 0.0};
    return p;
}

int main(int argc, char **argv)
{
    void *module = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!module)
        return fprintf(stderr, "%s\n", argc > 2 ? dlerror() : "MODULE UNIT PIN=VALUE..."), 2;
    Forward forward;
    Inverse inverse;
    int (*begin)(void);
    *(void **)&forward = dlsym(module, "kinematicsForward");
    *(void **)&inverse = dlsym(module, "kinematicsInverse");
    *(void **)&begin = dlsym(module, "rtapi_app_main");
    if (!forward || !inverse || !begin || begin() < 0)
        return fprintf(stderr, "no kinematics\n"), 2;
    for (int i = 3; i < argc; i++)
        if (!set_pin(argv[i]))
            return fprintf(stderr, "no pin for %s\n", argv[i]), 2;
    const double unit = atof(argv[2]);
    unsigned long flags = 0;
    double row[12], ns = 0.0, n = 0.0;
    while (fread(row, sizeof row, 1, stdin)) {
        const Pose wanted = scaled(row, 1.0 / unit);
        Pose found = scaled(row + 6, 1.0 / unit);
        double joints[16] = {0};
        struct timespec before, after;
        if (inverse(&wanted, joints, &flags, &flags)) {
            putchar(1);
            continue;
        }
        clock_gettime(CLOCK_MONOTONIC, &before);
        const int status = forward(joints, &found, &flags, &flags);
        clock_gettime(CLOCK_MONOTONIC, &after);
        ns += 1e9 * (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec);
        n += 1.0;
        found.x *= unit, found.y *= unit, found.z *= unit;
        const Pose asked = scaled(row, 1.0);
        putchar(status ? 2 : same(&found, &asked) ? 0 : 3);
    }
    fprintf(stderr, "%.0f\n", n > 0.0 ? ns / n : 0.0);
    return 0;
}
