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

static int newton_step(
    const REAL pose[7], const REAL side[], Q_IN NEXT_IN const REAL goal[], REAL left[], struct step *step)
{
NEWTON_STEP
}
QUICK_STEP
/* Newton's method from `pose` to actuators at `goal`; 1 where every correction was at most a quarter of that before. */
static int follow(const REAL side[], const REAL goal[], Q_OUT REAL pose[7])
{
    const REAL size = LENGTH;
    REAL left[M], previous = HUGE_VAL;
    struct step step, first;NEXT_BEGIN
    for (int k = 0; k < 12; k++) {
        if (newton_step(pose, side, Q_NEXT goal, left, &step) != PKM_OK)
            return 0;
        if (k == 0)
            first = step;
        const REAL length = step.length;
        const int contracts = length <= QUARTER * previous || length < ROUNDED * size;
        if (!(length < size && step.turn < HALF && contractsIN_ROOM))
            return 0;
        for (int i = 0; i < 7; i++)
            pose[i] = step.pose[i];TAKE_NEXT
        const REAL ratio = previous < HUGE_VAL ? length / previous : TENTH;
        if (length > QUARTER * previous || length * ratio * ratio < EXACT * size)AT_REST
        previous = length;
    }
    return 0;
}

/* Where the drives are to be with `rest` of `span` left to `actuated`: their positions, and behind them cosines and sines
   of those that turn. */
static void aim(const REAL actuated[], REAL rest, const REAL span[], REAL goal[3 * M])
{
    for (int a = 0; a < M; a++) {
        goal[a] = actuated[a] - rest * span[a];
        if (actuator_turns[a]) {
            goal[M + a] = COS(goal[a]);
            goal[M + M + a] = SIN(goal[a]);
        }
    }
}

static int usable(const REAL actuated[])
{
    int all = 1;
    for (int a = 0; a < M; a++)
        all = all && FABS(actuated[a]) < farthest[a];
    return all;
}

/* Whether a pose is that at home, where the robot is in home's mode. */
static int at_home(const REAL pose[7])
{
    int same = 1;
    for (int i = 0; i < 7; i++)
        same = same && !(pose[i] < NAME_home[i]) && !(pose[i] > NAME_home[i]);
    return same;
}

TRACK
NEAREST_SIDE
int NAME_forward(const REAL actuated[], const REAL near[7], REAL pose[7])
{
    REAL side[SIDES] = {ZERO}, span[M] = {ZERO}, goal[3 * M];Q_FIRST
    int status = usable(actuated) ? platform(near, pose) : PKM_INVALID_INPUT;
    aim(actuated, ZERO, span, goal);
    if (status == PKM_OK)
        status = nearest_side(pose, at_home(near) ? 1 : COMBINATIONS, goal, side, spanQ_LAST);
    if (status == PKM_OK)
        status = track(actuated, side, span, Q pose);
    return finish(status, pose, 7);
}
//// QUICK_STEP

/* The same in fewer operations, which do not serve every pose. */
static int quick_step(ARGUMENTS)
{
BODY
}

static int newton_step(ARGUMENTS)
{
    const int status = quick_step(GIVEN);
    return status == PKM_OK ? status : sure_step(GIVEN);
}
//// NEAREST_SIDE
/* Of the first so many working modes the one whose actuators at `pose` are nearest to `goal`, and what they have to go. */
static int nearest_side(const REAL pose[7], int modes, const REAL goal[], REAL side[], REAL span[])
{
    REAL best[LIMBS];
    int status = PKM_UNREACHABLE;
    for (int i = 0; i < LIMBS; i++)
        best[i] = HUGE_VAL;
    for (int c = 0; c < modes; c++) {
        REAL tried[SIDES], left[M], far[LIMBS] = {ZERO}OF_RANGES;
        for (int i = 0; i < SIDES; i++)
            tried[i] = (c >> place_of_side[i]) % 2 ? -ONE : ONE;
        if (limb_errors(pose, tried, goal, left) != PKM_OK)
            continue;
        status = PKM_OK;
        for (int a = 0; a < M; a++)
            far[limb_of_actuator[a]] += FABS(left[a]);
OUT_OF_RANGES        for (int i = 0; i < LIMBS; i++)
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
//// OUT_OF_RANGES
        if (positions(pose, tried, start_of_mode[0], q) == PKM_OK)
            for (int k = 0; k < JOINTS; k++)
                out[limb_of_joint[k]] += larger(larger(joint_lower[k] - q[k], q[k] - joint_upper[k]), ZERO);
        for (int i = 0; i < LIMBS; i++)
            far[i] += clearly[i] < ONE ? smaller(out[i], BEYOND) : ZERO;
//// SAME_SIDE
static int same_side(const struct step *first, const struct step *last)
{
    return first->side == last->side;
}
//// SAME_SIDE_BY_RATES
/* Whether the determinant of A, n x n, is positive, by elimination, which overwrites it. */
static int is_positive(REAL A[], int n)
{
    int positive = 1;
    for (int k = 0; k < n; k++) {
        int pivot = k;
        for (int r = k + 1; r < n; r++)
            if (FABS(A[r * n + k]) > FABS(A[pivot * n + k]))
                pivot = r;
        for (int c = 0; c < n; c++) {
            const REAL held = A[k * n + c];
            A[k * n + c] = A[pivot * n + c];
            A[pivot * n + c] = held;
        }
        positive ^= (pivot != k) ^ (A[k * n + k] < ZERO);
        if (A[k * n + k] == ZERO)
            return 0;
        for (int r = k + 1; r < n; r++) {
            const REAL factor = A[r * n + k] / A[k * n + k];
            for (int c = k; c < n; c++)
                A[r * n + c] -= factor * A[k * n + c];
        }
    }
    return positive;
}

static int same_side(const struct step *first, const struct step *last)
{
    REAL A[N * N];
    for (int r = 0; r < N; r++)
        for (int c = 0; c < N; c++) {
            A[r * N + c] = ZERO;
            for (int a = 0; a < ROWS; a++)
                A[r * N + c] += first->rates[a * N + r] * last->rates[a * N + c];
        }
    return is_positive(A, N);
}
//// NO_FORWARD
/* This robot is singular everywhere: the drives do not hold the platform. */
int NAME_forward(const REAL actuated[], const REAL near[7], REAL pose[7])
{
    (void)actuated;
    (void)near;
    return finish(PKM_SINGULAR, pose, 7);
}
//// TRACK
/* Takes the platform from a pose along with the actuators, which have `span` to go to `actuated`. */
static int track(const REAL actuated[], const REAL side[], const REAL span[], Q_OUT REAL at[7])
{
    REAL done = ZERO, cap = ONE, goal[3 * M];Q_LOCAL
    for (int a = 0; a < M; a++)
        while (actuator_turns[a] && cap * FABS(span[a]) > HALF)
            cap *= HALF;
    REAL part = cap;
    for (int tries = 0; tries < 200 && part >= SHORTEST; tries++) {
        REAL next[7];
        const REAL rest = ONE - done - part;
        aim(actuated, rest, span, goal);
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
//// TRACK_GRAPH
/* Gaps of all closures, and their rates by the joints that are not driven and a twist of the platform. */
static int graph(const REAL pose[7], const REAL q[], REAL gap[], REAL J[])
{
GRAPH
}

/* A generalised inverse of J, by orthogonal columns, which replace it; columns that depend on others rest. 0 where more
   of them do than always, or where it is singular. */
static int invert_graph(REAL J[EQUATIONS * UNKNOWNS], REAL inverse[UNKNOWNS * EQUATIONS], int rests[UNKNOWNS])
{
    REAL R[UNKNOWNS * UNKNOWNS] = {ZERO}, lengths[UNKNOWNS] = {ZERO}, longest = ZERO, inverted = ZERO;
    int left = UNKNOWNS;
    for (int j = 0; j < UNKNOWNS; j++) {
        for (int r = 0; r < EQUATIONS; r++)
            lengths[j] += J[r * UNKNOWNS + j] * J[r * UNKNOWNS + j];
        longest = larger(longest, SQRT(lengths[j]));
    }
    for (int j = 0; j < UNKNOWNS; j++) {
        REAL rest = ZERO;
        for (int k = 0; k < 2 * j; k++) { /* twice, for rounding */
            REAL along = ZERO;
            for (int r = 0; r < EQUATIONS; r++)
                along += J[r * UNKNOWNS + k % j] * J[r * UNKNOWNS + j];
            for (int r = 0; r < EQUATIONS; r++)
                J[r * UNKNOWNS + j] -= along * J[r * UNKNOWNS + k % j];
            R[(k % j) * UNKNOWNS + j] += along;
        }
        for (int r = 0; r < EQUATIONS; r++)
            rest += J[r * UNKNOWNS + j] * J[r * UNKNOWNS + j];
        rest = SQRT(rest);
        rests[j] = !(rest > DEPENDENT * longest);
        left -= rests[j];
        R[j * UNKNOWNS + j] = rest;
        for (int r = 0; r < EQUATIONS; r++)
            J[r * UNKNOWNS + j] = rests[j] ? ZERO : J[r * UNKNOWNS + j] / rest;
    }
    for (int j = UNKNOWNS - 1; j >= 0; j--) {
        REAL row = ZERO;
        for (int r = 0; r < EQUATIONS; r++) {
            REAL x = J[r * UNKNOWNS + j];
            for (int k = j + 1; k < UNKNOWNS; k++)
                x -= R[j * UNKNOWNS + k] * inverse[k * EQUATIONS + r];
            x = rests[j] ? ZERO : x / R[j * UNKNOWNS + j];
            inverse[j * EQUATIONS + r] = x;
            row += x * x;
        }
        inverted += row * lengths[j];
    }
    return left == UNKNOWNS - IDLE && (REAL)left > SINGULAR_BELOW * SINGULAR_BELOW * inverted;
}

/* Newton's method on the platform and the joints that are not driven, as the others stand in `q`: 1 where it follows
   from the configuration with the rates `first`. */
static int step_by_graph(const REAL first[EQUATIONS * UNKNOWNS], REAL pose[7], REAL q[])
{
    const REAL size = LENGTH;
    REAL J[EQUATIONS * UNKNOWNS], inverse[UNKNOWNS * EQUATIONS], gap[EQUATIONS], change[UNKNOWNS], next[7];
    REAL A[UNKNOWNS * UNKNOWNS], previous = HUGE_VAL, worst = ZERO;
    int rests[UNKNOWNS];
    for (int tries = 0; tries < 12; tries++) {
        REAL squares = ZERO, turn = ZERO;
        if (graph(pose, q, gap, J) != PKM_OK || !invert_graph(J, inverse, rests))
            return 0;
        for (int j = 0; j < UNKNOWNS; j++) {
            change[j] = ZERO;
            for (int r = 0; r < EQUATIONS; r++)
                change[j] -= inverse[j * EQUATIONS + r] * gap[r];
            const REAL way = graph_turns[j] ? size * change[j] : change[j];
            squares += way * way;
            turn = graph_turns[j] ? larger(turn, FABS(change[j])) : turn;
        }
        const REAL length = SQRT(squares);
        if (!(length < HUGE_VAL && turn < HALF && (length <= QUARTER * previous || length < ROUNDED * size)))
            return 0;
        for (int j = 0; j < PASSIVE; j++)
            TURN_PASSIVE
        along(pose, change + PASSIVE, ONE, next);
        for (int k = 0; k < 7; k++)
            pose[k] = next[k];
        const REAL ratio = previous < HUGE_VAL ? length / previous : TENTH;
        if (length > QUARTER * previous || length * ratio * ratio < EXACT * size)
            break;
        previous = length;
    }
    if (graph(pose, q, gap, J) != PKM_OK)
        return 0;
    for (int r = 0; r < EQUATIONS; r++)
        worst = larger(worst, FABS(gap[r]));
    for (int i = 0; i < UNKNOWNS; i++)
        for (int j = 0; j < UNKNOWNS; j++) {
            REAL product = ZERO;
            for (int r = 0; r < EQUATIONS; r++)
                product += first[r * UNKNOWNS + i] * J[r * UNKNOWNS + j];
            A[i * UNKNOWNS + j] = rests[i] || rests[j] ? (i == j ? ONE : ZERO) : product;
        }
    return worst < CLOSED * SIZE && is_positive(A, UNKNOWNS);
}

/* Takes platform and joints along with the actuators, which have `span` to go to `actuated`: on all joints, past where a
   limb is stretched out. */
static int follow_graph(const REAL actuated[], const REAL span[], REAL q[], REAL at[7])
{
    REAL first[EQUATIONS * UNKNOWNS], gap[EQUATIONS], next[7], joints[PLACES], done = ZERO, cap = ONE;
    for (int a = 0; a < M; a++)
        while (actuator_turns[a] && cap * FABS(span[a]) > HALF)
            cap *= HALF;
    REAL part = cap;
    for (int tries = 0; tries < 200 && part >= SHORTEST; tries++) {
        const REAL rest = ONE - done - part;
        if (graph(at, q, gap, first) != PKM_OK)
            return PKM_SINGULAR;
        for (int k = 0; k < PLACES; k++)
            joints[k] = q[k];
        for (int a = 0; a < M; a++) {
            joints[NAME_actuated_joint[a]] = actuated[a] - rest * span[a];TURN_DRIVE
        }
        for (int k = 0; k < 7; k++)
            next[k] = at[k];
        if (!step_by_graph(first, next, joints)) {
            part *= HALF;
            continue;
        }
        for (int k = 0; k < 7; k++)
            at[k] = next[k];
        for (int k = 0; k < PLACES; k++)
            q[k] = joints[k];
        if (rest <= ZERO)
            return PKM_OK;
        done += part;
        part = smaller(smaller(part + part, cap), ONE - done);
    }
    return PKM_SINGULAR;
}

/* Takes the platform from a pose along with the actuators, which have `span` to go to `actuated`: in one step on the
   pose if that is short, else on all joints. */
static int track(const REAL actuated[], const REAL side[], const REAL span[], Q_OUT REAL at[7])
{
    REAL next[7], goal[3 * M]ALL_JOINTS;
    int near = 1;
    aim(actuated, ZERO, span, goal);
    for (int a = 0; a < M; a++)
        near = near && !(actuator_turns[a] && FABS(span[a]) > HALF);
    for (int i = 0; i < 7; i++)
        next[i] = at[i];
KEEP_JOINTS    if (near && follow(side, goal, Q next)) {
        for (int i = 0; i < 7; i++)
            at[i] = next[i];
        return PKM_OK;
    }
START_JOINTS    return follow_graph(actuated, span, q, at);
}
