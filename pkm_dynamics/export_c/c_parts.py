# SPDX-License-Identifier: Apache-2.0
"""Parts of a robot in C that are not recorded, and the build file and read-me beside it.

Names in capitals are replaced: see `c_files`.
"""

WIDE = """
#if DBL_DIG < 15
#error "double is no wider than float here: export with --scalar float"
#endif
"""
DRIVES_NEAR = """\
int NAME_drives_near(const REAL pose[7], int mode, REAL actuated[], struct NAME_limbs *limbs)
{
    const int status = NAME_inverse_near(pose, mode, actuated, 0, limbs);
    return status == PKM_JOINT_LIMIT ? PKM_OK : status;
}
"""
HELPERS = """\
/* The status of an answer: NaN where there is none, PKM_INVALID_INPUT where a number overflowed. */
static int finish(int status, REAL out[], int n)
{
    if (status == PKM_OK)
        for (int k = 0; k < n; k++)
            if (!(FABS(out[k]) < HUGE_VAL))
                status = PKM_INVALID_INPUT;
    if (status != PKM_OK)
        for (int k = 0; k < n; k++)
            out[k] = NAN;
    return status;
}

/* The sign of each branch in a working mode. */
static int sides_of(int mode, REAL side[])
{
    if (mode < 0 || mode >= MODES)
        return PKM_NO_SUCH_MODE;
TORN    for (int k = 0; k < SIDES; k++)
        side[k] = (mode >> k) % 2 ? -ONE : ONE;
    return PKM_OK;
}
"""
WITHIN = """\
/* 1 where a joint is in its range, if need be after some full turns. */
static int within(REAL *q, int k)
{
    const REAL lower = joint_lower[k], upper = joint_upper[k], turn = TAU;
    if (!(*q < lower || *q > upper))
        return 1;
    if (!joint_wraps[k])
        return 0;
    const REAL turned = *q < lower ? *q + turn * CEIL((lower - *q) / turn) : *q - turn * CEIL((*q - upper) / turn);
    if (!(lower <= turned && turned <= upper))
        return 0;
    *q = turned;
    return 1;
}
"""
INVERSE = """\
int NAME_inverse(const REAL pose[7], int mode, REAL actuated[], REAL joints[])
{
    REAL side[SIDES], q[JOINTS]AT;
    int status = sides_of(mode, side), inside = 1;
    if (status == PKM_OK)
        status = positions(pose, side, start_of_mode[mode], q);
AGAIN    status = finish(status, q, JOINTS);
"""
MOVED = """\
    if (status == PKM_UNREACHABLE && platform(pose, at) == PKM_OK && into_space(side, at) == PKM_OK)
        status = {};
"""
JOINTS_WITHIN = """\
    for (int k = 0; k < JOINTS && status == PKM_OK; k++)
        inside = within(&q[k], k) && inside;
    const int known = status == PKM_OK;
    for (int k = 0; k < JOINTS && joints; k++)
        joints[k] = known ? q[k] : NAN;
    for (int k = 0; k < M; k++)
        actuated[k] = known ? q[NAME_actuated_joint[k]] : NAN;
    return known && !inside ? PKM_JOINT_LIMIT : status;
}
"""

SOLVED = """\
int NAME_inverse_near(const REAL pose[7], int mode, REAL actuated[], REAL joints[], struct NAME_limbs *limbs)
{
    REAL side[SIDES], q[JOINTS];
    int inside = 1, status = take_along(pose, mode, side, limbs);
    if (status == PKM_OK)
        status = finish(positions(limbs->pose, side, limbs->joints, q), q, JOINTS);
"""
JOINTS_ALONG = (  # in the forward kinematics: with joints that are iterated, and without
    ("Q_IN ", "const REAL q[], ", ""),
    ("Q_OUT ", "REAL q[], ", ""),
    ("STEP_AT(", "step_at(", "newton_step("),
    ("Q goal", "q, goal", "goal"),
    ("Q next", "q, next", "next"),
    ("Q pose", "q, pose", "pose"),
    ("Q_LOCAL", "\n    REAL kept[JOINTS];", ""),
    ("Q_FIRST", "\n    REAL q[JOINTS] = {ZERO};", ""),
    ("Q_LAST", ", q", ""),
    ("Q_KEEP", "        for (int i = 0; i < JOINTS; i++)\n            kept[i] = q[i];\n", ""),
    ("Q_BACK", "            for (int i = 0; i < JOINTS; i++)\n                q[i] = kept[i];\n", ""),
)
CMAKE = """\
cmake_minimum_required(VERSION 3.10)
project(NAME C)
set(CMAKE_C_STANDARD 99)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
add_library(NAME NAME.c)
target_include_directories(NAME PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
option(NATIVE "code for the processor of this computer alone" OFF)
if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
  target_compile_options(NAME PRIVATE -fno-math-errno -fno-trapping-math $<$<BOOL:${NATIVE}>:-march=native>)
endif()
if(UNIX)
  target_link_libraries(NAME PUBLIC m)
endif()
enable_testing()
add_executable(NAME_test NAME_test.c)
target_link_libraries(NAME_test NAME)
add_test(NAME NAME_test COMMAND NAME_test)
"""
README = """\
# {robot} in C

Made by `pkm export` {release} from the description with digest `{digest}`. `pkm check {robot} --exported .` tells
whether the description still has it. Do not edit: export again.

    {build}

compares every function with what Python answers in 1,000 states, and prints the largest error.

`{name}.h` says what the functions take and give; `{name}.hpp` has them for C++17, with spans. Numbers are `{real}`.
C99, `math.h` and nothing else, no allocation, no state: all functions may be called from several threads at once.

Task coordinates: {what}. Drives: {drives}. {modes} working mode(s), numbered from 0, which is home's.

    double actuated[{upper}_N_ACTUATED], effort[{upper}_N_ACTUATED];
    if ({name}_inverse({name}_home, 0, actuated, 0) == PKM_OK)
        {name}_gravity({name}_home, 0, effort);

Where there is no answer, it is NaN, and the status says why. `{name}_forward` continues `near`: called in every period
with the pose of the last, it keeps its assembly mode, or says that it cannot.
"""

# Sharing of a load within the drives' bounds, as in `pkm_dynamics.kernels.sharing`, from efforts of least norm and an
# orthonormal basis of those that do no work together. FREE is the number of efforts beyond what the motion needs.
SHARE = """\
/* Solves A x = b for the leading n rows, by Cholesky; x replaces b. 0 where A is not positive definite. */
static int solve_positive(REAL A[FREE][FREE], REAL b[FREE], int n)
{
    for (int c = 0; c < n; c++) {
        for (int k = 0; k < c; k++)
            A[c][c] -= A[c][k] * A[c][k];
        if (!(A[c][c] > ZERO))
            return 0;
        A[c][c] = SQRT(A[c][c]);
        for (int r = c + 1; r < n; r++) {
            for (int k = 0; k < c; k++)
                A[r][c] -= A[r][k] * A[c][k];
            A[r][c] /= A[c][c];
        }
    }
    for (int r = 0; r < n; r++) {
        for (int k = 0; k < r; k++)
            b[r] -= A[r][k] * b[k];
        b[r] /= A[r][r];
    }
    for (int r = n - 1; r >= 0; r--) {
        for (int k = r + 1; k < n; k++)
            b[r] -= A[k][r] * b[k];
        b[r] /= A[r][r];
    }
    return 1;
}

/* Efforts of least norm within the drives' bounds that do the same work as `effort`, which they replace: by the dual
   method of Goldfarb and Idnani (1983). Row i of `null` is what drive i adds per unit of each effort without work. */
static int share(const REAL null[M * FREE], REAL effort[M])
{
    REAL z[FREE] = {ZERO}, step[FREE], normal[FREE], way[FREE], price[FREE], side[FREE], gram[FREE][FREE];
    REAL size = TINY;
    int held[FREE], count = 0;
    for (int i = 0; i < M; i++)
        size = larger(size, FABS(effort[i]));
    for (int changes = 0; changes < 200; changes++) {
        REAL worst = ZERO, sign = ONE;
        int chosen = -1, known = 0;
        for (int i = 0; i < M; i++) {
            REAL value = effort[i], length = ZERO;
            for (int c = 0; c < FREE; c++) {
                value += null[i * FREE + c] * z[c];
                length += null[i * FREE + c] * null[i * FREE + c];
            }
            const REAL below = effort_lower[i] - value, above = value - effort_upper[i];
            const REAL over = larger(below, above);
            if (over <= BROKEN * (FABS(value) + size))
                continue;
            if (!(length > ZERO))
                return PKM_EFFORT_LIMIT;
            if (over * over > worst * length) {
                worst = over * over / length;
                chosen = i;
                sign = below > above ? ONE : -ONE;
            }
        }
        for (int a = 0; a < count; a++) /* a bound that is held already: what is left is rounding */
            known = known || (held[a] == chosen && side[a] * sign > ZERO);
        if (chosen < 0 || known) {
            for (int i = 0; i < M; i++) {
                for (int c = 0; c < FREE; c++)
                    effort[i] += null[i * FREE + c] * z[c];
                effort[i] = smaller(larger(effort[i], effort_lower[i]), effort_upper[i]);
            }
            return PKM_OK;
        }
        for (int c = 0; c < FREE; c++)
            normal[c] = sign * null[chosen * FREE + c];
        REAL paid = ZERO;
        int full = 0;
        for (int tries = 0; tries < M + FREE + 1 && !full; tries++) {
            for (int a = 0; a < count; a++) { /* how the bound leans on those that are held */
                step[a] = ZERO;
                for (int c = 0; c < FREE; c++)
                    step[a] += side[a] * null[held[a] * FREE + c] * normal[c];
                for (int b = 0; b <= a; b++) {
                    gram[a][b] = ZERO;
                    for (int c = 0; c < FREE; c++)
                        gram[a][b] += side[a] * side[b] * null[held[a] * FREE + c] * null[held[b] * FREE + c];
                }
            }
            if (count > 0 && !solve_positive(gram, step, count))
                return PKM_DIVERGED;
            REAL free = ZERO, whole = ZERO, most = HUGE_VAL, value = effort[chosen];
            int blocked = -1;
            for (int c = 0; c < FREE; c++) {
                way[c] = normal[c];
                for (int a = 0; a < count; a++)
                    way[c] -= step[a] * side[a] * null[held[a] * FREE + c];
                free += way[c] * way[c];
                whole += normal[c] * normal[c];
                value += null[chosen * FREE + c] * z[c];
            }
            for (int a = 0; a < count; a++)
                if (step[a] > ZERO && price[a] / step[a] < most) {
                    blocked = a;
                    most = price[a] / step[a];
                }
            const int movable = free > BROKEN * whole && count < FREE;
            if (!movable && blocked < 0)
                return PKM_EFFORT_LIMIT;
            const REAL gap = sign > ZERO ? effort_lower[chosen] - value : value - effort_upper[chosen];
            REAL length = movable ? gap / free : HUGE_VAL;
            full = length <= most;
            length = full ? length : most;
            for (int c = 0; c < FREE && movable; c++)
                z[c] += length * way[c];
            for (int a = 0; a < count; a++)
                price[a] -= length * step[a];
            paid += length;
            if (full) {
                held[count] = chosen;
                side[count] = sign;
                price[count] = paid;
                count++;
            } else {
                count--;
                for (int a = blocked; a < count; a++) {
                    held[a] = held[a + 1];
                    side[a] = side[a + 1];
                    price[a] = price[a + 1];
                }
            }
        }
        if (!full)
            return PKM_DIVERGED;
    }
    return PKM_DIVERGED;
}
"""
