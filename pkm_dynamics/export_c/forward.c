/* SPDX-License-Identifier: Apache-2.0 */
/* The forward kinematics: the loop of `pkm_kinematics/kernels/path/follow.py` around a recorded step of Newton, with the
   same conditions under which a step counts. The answer is the pose in which the platform arrives when the actuators go
   straight from where they are at `near`, or a status. */
//// FORWARD
/* What a step of Newton's method leads to. */
struct step {
    REAL pose[7];
    REAL turn;   /* rad */
    REAL length; /* m, rotations at the characteristic length */
    REAL side;   /* of the singularities of type 2: sign of the Jacobian's determinant */
    REAL rates[RATES];STEP_OPEN
};

static int limb_errors(const REAL pose[7], const REAL side[], Q_IN const REAL goal[], REAL left[])
{
LIMB_ERRORS
}

static int newton_step(const REAL pose[7], const REAL side[], Q_IN const REAL goal[], REAL left[], struct step *step)
{
NEWTON_STEP
}

/* Newton's method from `pose` to actuators at `goal`; 1 where every correction was at most a quarter of that before. */
static int follow(const REAL side[], const REAL goal[], Q_OUT REAL pose[7])
{
    const REAL size = LENGTH;
    REAL left[M], previous = HUGE_VAL;
    struct step step, first;
    for (int k = 0; k < 12; k++) {
        if (STEP_AT(pose, side, Q goal, left, &step) != PKM_OK)
            return 0;
        if (k == 0)
            first = step;
        const REAL length = step.length;
        const int contracts = length <= QUARTER * previous || length < ROUNDED * size;
        if (!(length < size && step.turn < HALF && contractsIN_ROOM))
            return 0;
        for (int i = 0; i < 7; i++)
            pose[i] = step.pose[i];
        const REAL ratio = previous < HUGE_VAL ? length / previous : TENTH;
        if (length > QUARTER * previous || length * ratio * ratio < EXACT * size)AT_REST
        previous = length;
    }
    return 0;
}

static int usable(const REAL actuated[])
{
    int all = 1;
    for (int a = 0; a < M; a++)
        all = all && FABS(actuated[a]) < farthest[a];
    return all;
}

/* Takes the platform from a pose along with the actuators, which have `span` to go to `actuated`. */
static int track(const REAL actuated[], const REAL side[], const REAL span[], Q_OUT REAL at[7])
{
    REAL done = ZERO, cap = ONE, goal[M];Q_LOCAL
    for (int a = 0; a < M; a++)
        while (actuator_turns[a] && cap * FABS(span[a]) > HALF)
            cap *= HALF;
    REAL part = cap;
    for (int tries = 0; tries < 200 && part >= SHORTEST; tries++) {
        REAL next[7];
        const REAL rest = ONE - done - part;
        for (int a = 0; a < M; a++)
            goal[a] = actuated[a] - rest * span[a];
        for (int i = 0; i < 7; i++)
            next[i] = at[i];
Q_KEEP        if (!follow(side, goal, Q next)) {
Q_BACK            part *= HALF;
            continue;
        }
        for (int i = 0; i < 7; i++)
            at[i] = next[i];
        if (rest <= ZERO)
            return PKM_OK;
        done += part;
        part = smaller(smaller(part + part, cap), ONE - done);
    }
    return PKM_SINGULAR;
}

NEAREST_SIDE
int NAME_forward(const REAL actuated[], const REAL near[7], REAL pose[7])
{
    REAL side[SIDES] = {ZERO}, span[M] = {ZERO};Q_FIRST
    int status = usable(actuated) ? platform(near, pose) : PKM_INVALID_INPUT;
    if (status == PKM_OK)
        status = nearest_side(pose, actuated, side, spanQ_LAST);
    if (status == PKM_OK)
        status = track(actuated, side, span, Q pose);
    return finish(status, pose, 7);
}
//// NEAREST_SIDE
/* The working mode at `pose` whose actuators are nearest to `goal`, and what they then have to go. */
static int nearest_side(const REAL pose[7], const REAL goal[], REAL side[], REAL span[])
{
    REAL best[LIMBS];
    int status = PKM_UNREACHABLE;
    for (int i = 0; i < LIMBS; i++)
        best[i] = HUGE_VAL;
    for (int c = 0; c < COMBINATIONS; c++) {
        REAL tried[SIDES], left[M], far[LIMBS] = {ZERO};
        for (int i = 0; i < SIDES; i++)
            tried[i] = (c >> place_of_side[i]) % 2 ? -ONE : ONE;
        if (limb_errors(pose, tried, goal, left) != PKM_OK)
            continue;
        status = PKM_OK;
        for (int a = 0; a < M; a++)
            far[limb_of_actuator[a]] += FABS(left[a]);
        for (int i = 0; i < LIMBS; i++)
            far[i] = far[i] < clearly[i] * best[i] ? far[i] : -ONE;
        for (int i = 0; i < LIMBS; i++)
            best[i] = far[i] >= ZERO ? far[i] : best[i];
        for (int i = 0; i < SIDES; i++)
            side[i] = far[limb_of_side[i]] >= ZERO ? tried[i] : side[i];
        for (int a = 0; a < M; a++)
            span[a] = far[limb_of_actuator[a]] >= ZERO ? left[a] : span[a];
    }
    return status;
}
//// SAME_SIDE
static int same_side(const struct step *first, const struct step *last)
{
    return first->side == last->side;
}
//// SAME_SIDE_BY_RATES
/* Whether the determinant of first^T last is positive, by elimination. */
static int same_side(const struct step *first, const struct step *last)
{
    REAL A[N][N];
    int positive = 1;
    for (int r = 0; r < N; r++)
        for (int c = 0; c < N; c++) {
            A[r][c] = ZERO;
            for (int a = 0; a < ROWS; a++)
                A[r][c] += first->rates[a * N + r] * last->rates[a * N + c];
        }
    for (int k = 0; k < N; k++) {
        int pivot = k;
        for (int r = k + 1; r < N; r++)
            if (FABS(A[r][k]) > FABS(A[pivot][k]))
                pivot = r;
        for (int c = 0; c < N; c++) {
            const REAL held = A[k][c];
            A[k][c] = A[pivot][c];
            A[pivot][c] = held;
        }
        positive ^= (pivot != k) ^ (A[k][k] < ZERO);
        if (A[k][k] == ZERO)
            return 0;
        for (int r = k + 1; r < N; r++) {
            const REAL factor = A[r][k] / A[k][k];
            for (int c = k; c < N; c++)
                A[r][c] -= factor * A[k][c];
        }
    }
    return positive;
}
//// NO_FORWARD
/* This robot is singular everywhere: the drives do not hold the platform. */
int NAME_forward(const REAL actuated[], const REAL near[7], REAL pose[7])
{
    (void)actuated;
    (void)near;
    return finish(PKM_SINGULAR, pose, 7);
}
