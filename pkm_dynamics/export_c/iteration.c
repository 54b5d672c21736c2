/* SPDX-License-Identifier: Apache-2.0 */
/* Limbs that are solved by iteration: Newton's method, and the straight way from home on which limbs are followed, with
   the conditions of `kernels/path/carry_on.py` and `kernels/position/positions.py` in `pkm_kinematics`. A pose has one
   answer in a mode, whatever was asked before. */
//// NEWTON
/* Joints are arrays of positions, with their cosines and sines behind them. */
static void turn_joint(REAL q[], int k)
{
    q[JOINTS + k] = COS(q[k]);
    q[JOINTS + JOINTS + k] = SIN(q[k]);
}

/* A step of Newton's method for some joints of a limb: the step of each, the largest gap of the loops [m], and the side
   of the limb's singularities, 0 where it has none. */
typedef int newton_function(const REAL pose[7], const REAL side[], const REAL q[], REAL step[], REAL *gap,
    REAL *turned);

/* Joints `first` to `first + count - 1` of `column` by Newton's method; raises `found[0]` to the largest ratio of two
   corrections, to infinity where one is so long that what is found need not be the next solution, and `found[1]` to the
   gap that is left. */
static int newton(newton_function *function, const REAL pose[7], const REAL side[], REAL q[], int first, int count,
    REAL found[2], REAL *turned)
{
    REAL step[JOINTS], gap = ZERO, previous = HUGE_VAL, before = found[1];
    int done = 0;
    for (int tries = 0; tries < 50; tries++) {
        REAL largest = ZERO;
        if (function(pose, side, q, step, &gap, turned) != PKM_OK)
            return PKM_NOT_CONNECTED;
        found[1] = larger(gap, before);
        if (gap < ROUNDING * SIZE || (done && gap < ENOUGH * SIZE))
            return PKM_OK;
        if (done)
            return PKM_NOT_CONNECTED;
        for (int j = 0; j < count; j++)
            largest = larger(largest, FABS(step[j]) / unit_of_joint[column[first + j]]);
        if (!(largest < HUGE_VAL))
            return PKM_NOT_CONNECTED;
        if (largest > ROUNDED)
            found[0] = larger(found[0], largest > NEXT ? HUGE_VAL : largest / previous);
        previous = largest;
        const REAL part = largest > HALF ? HALF / largest : ONE;
        for (int j = 0; j < count; j++) {
            q[column[first + j]] += part * step[j];
            turn_joint(q, column[first + j]);
        }
        done = largest < AT_REST;
    }
    return PKM_NOT_CONNECTED;
}
//// WAY_TO
/* The shift and the turn that lead straight from a pose h to another; its length in rad and sizes of the robot. */
static REAL way_to(const REAL pose[7], const REAL h[7], REAL way[6])
{
    const REAL *b = pose + 3;
    for (int k = 0; k < 3; k++)
        way[k] = pose[k] - h[k];
    const REAL x = -b[3] * h[3] + b[0] * h[6] - b[1] * h[5] + b[2] * h[4];
    const REAL y = -b[3] * h[4] + b[1] * h[6] - b[2] * h[3] + b[0] * h[5];
    const REAL z = -b[3] * h[5] + b[2] * h[6] - b[0] * h[4] + b[1] * h[3];
    const REAL w = b[3] * h[6] + b[0] * h[3] + b[1] * h[4] + b[2] * h[5];
    const REAL sine = SQRT(x * x + y * y + z * z);
    REAL k = sine < TINY ? TWO / FABS(w) : TWO * ATAN2(sine, FABS(w)) / sine;
    if (w < ZERO)
        k = -k;
    way[3] = k * x;
    way[4] = k * y;
    way[5] = k * z;
    const REAL shift = SQRT(way[0] * way[0] + way[1] * way[1] + way[2] * way[2]) / SIZE;
    return larger(larger(shift, FABS(k) * sine), TINY);
}
//// ALONG
/* The pose at a part of the way from h. */
static void along(const REAL h[7], const REAL way[6], REAL part, REAL pose[7])
{
    const REAL x = part * way[3], y = part * way[4], z = part * way[5];
    const REAL angle = SQRT(x * x + y * y + z * z), c = COS(HALF * angle);
    const REAL s = angle > TINY ? SIN(HALF * angle) / angle : HALF;
    const REAL a = s * x, b = s * y, d = s * z;
    for (int k = 0; k < 3; k++)
        pose[k] = h[k] + part * way[k];
    pose[3] = c * h[3] + a * h[6] + b * h[5] - d * h[4];
    pose[4] = c * h[4] + b * h[6] + d * h[3] - a * h[5];
    pose[5] = c * h[5] + d * h[6] + a * h[4] - b * h[3];
    pose[6] = c * h[6] - a * h[3] - b * h[4] - d * h[5];
}
//// BEGIN
/* Puts the joints where they are at home in a working mode. */
static void begin_in(int mode, REAL q[])
{
    for (int k = 0; k < JOINTS; k++) {
        q[k] = START;
        turn_joint(q, k);
    }
}
//// FOLLOW
/* Takes the joints of the limbs from a pose straight to another, both in the motion space. Where corrections shrink too
   slowly even in the shortest steps, beside a singularity of a limb, those `at_home` go on in steps that close alone, and
   of which only the shortest may end beyond it. */
static int follow_limbs(const REAL from[7], const REAL at[7], int at_home, const REAL side[], REAL q[], REAL found[2])
{
    REAL way[6], next[7], tried[PLACES], turned_before[NEWTONS], turned[NEWTONS];
    const REAL length = way_to(at, from, way);
    if (!(length < FAR))
        return PKM_NOT_CONNECTED;
    for (int k = 0; k < PLACES; k++)
        tried[k] = q[k];
    if (limbs(from, side, tried, found, turned_before) != PKM_OK)
        return PKM_NOT_CONNECTED;
    REAL done = ZERO, part = ONE;
    int closed_alone = 0;
    while (done < ONE) {
        REAL end = done + part * LONGEST / length;
        if (end >= ONE)
            end = ONE;
        along(from, way, end, next);
        for (int k = 0; k < PLACES; k++)
            tried[k] = q[k];
        found[0] = found[1] = ZERO;
        int followed = limbs(end < ONE ? next : at, side, tried, found, turned) == PKM_OK;
        const int shortest = part < (!closed_alone ? SHORT_PART : followed ? ROUND_PART : CLOSED_PART);
        for (int k = 0; k < JOINTS; k++)
            followed = followed && (!newton_turns[k] || FABS(tried[k] - q[k]) <= JUMP);
        if (!(closed_alone || (shortest && DIVIDED)))
            followed = followed && found[0] <= QUARTER;
        for (int k = 0; k < NEWTONS && !DIVIDED && !(closed_alone && shortest); k++)
            followed = followed && !(turned[k] * turned_before[k] < ZERO);
        if (followed) {
            for (int k = 0; k < PLACES; k++)
                q[k] = tried[k];
            done = end;
            part = smaller(closed_alone ? part / QUARTER : part + part, ONE);
        } else if (!shortest) {
            part *= closed_alone ? QUARTER : HALF;
        } else if (at_home && !closed_alone) {
            closed_alone = 1;
            part = QUARTER;
        } else {
            return PKM_NOT_CONNECTED;
        }
    }
    return found[1] < EXACT * SIZE ? PKM_OK : PKM_NOT_CONNECTED; /* beside a singularity of the limb's parts */
}

/* The joints of the limbs in a working mode at a pose in the motion space, from home. */
static int reach(const REAL at[7], int mode, const REAL side[], REAL q[], REAL found[2])
{
    begin_in(mode, q);
    return follow_limbs(NAME_home, at, 1, side, q, found);
}
//// TURNING_REACH
/* The joints of the limbs in a working mode at a pose, by Newton's method from where they get as the platform goes straight
   there, in steps on which loops may be open, and else from home. */
static int reach(const REAL at[7], int mode, const REAL side[], REAL q[], REAL found[2])
{
    REAL turned[NEWTONS], way[6], next[7], tried[PLACES], done = ZERO;
    const REAL length = way_to(at, NAME_home, way);
    begin_in(mode, q);
    for (int on = length < FAR; on && done < ONE;) {
        const REAL end = smaller(done + LONGEST / length, ONE);
        along(NAME_home, way, end, next);
        for (int k = 0; k < PLACES; k++)
            tried[k] = q[k];
        found[0] = found[1] = ZERO;
        on = limbs(end < ONE ? next : at, side, tried, found, turned) == PKM_OK;
        for (int k = 0; k < JOINTS; k++)
            on = on && (!newton_turns[k] || FABS(tried[k] - q[k]) <= JUMP);
        for (int k = 0; k < PLACES && on; k++)
            q[k] = tried[k];
        done = on ? end : done;
    }
    if (done < ONE) {
        found[0] = found[1] = ZERO;
        done = limbs(at, side, q, found, turned) == PKM_OK ? ONE : ZERO;
    }
    if (!(done < ONE) && found[1] < CLOSED * SIZE)
        return PKM_OK;
    begin_in(mode, q);
    found[0] = found[1] = ZERO;
    return limbs(at, side, q, found, turned);
}
//// CURVE_REACH
/* The joints of the limbs in a working mode at a pose, by Newton's method from those at the nearest pose on the one way
   that the platform has, in the turns that they make from home to there; in other modes from home. */
static int reach(const REAL at[7], int mode, const REAL side[], REAL q[], REAL found[2])
{
    REAL turned[NEWTONS], way[6], best = HUGE_VAL;
    const REAL *start = start_of_mode[mode];
    for (int i = 0; i < POINTS && mode == 0; i++) {
        const REAL far = way_to(at, pose_on_way[i], way);
        if (far < best) {
            best = far;
            start = joints_on_way[i];
        }
    }
    for (int k = 0; k < JOINTS; k++) {
        q[k] = start[k];
        turn_joint(q, k);
    }
    found[0] = found[1] = ZERO;
    return limbs(at, side, q, found, turned);
}
//// INTO_SPACE
/* Moves a pose to the nearest that the limbs allow, if they are less than `ajar` open there, in units of what counts as
   closed, and this is less than `most` of the robot's size, and rad, away. */
static int nearest_in_space(const REAL side[], Q_OUT REAL at[7], REAL ajar, REAL most)
{
    REAL next[7], from[7], open = ZERO;
    for (int k = 0; k < 7; k++)
        from[k] = at[k];
    for (int tries = 0; tries < 5; tries++) {
        if (closing(at, side, Q next, &open) != PKM_OK || !(open < ajar))
            return STAYS_OPEN;
        if (open < ONE) {
            REAL squares = ZERO;
            for (int k = 0; k < 7; k++)
                squares += (k < 3 ? ONE : TURN) * (at[k] - from[k]) * (at[k] - from[k]);
            return SQRT(squares) < most * SIZE ? PKM_OK : STAYS_OPEN;
        }
        for (int k = 0; k < 7; k++)
            at[k] = next[k];
SOLVE_AGAIN    }
    return STAYS_OPEN;
}

/* What rounding made of a pose that the limbs allow is made good. */
static int into_space(const REAL side[], Q_OUT REAL at[7])
{
    return nearest_in_space(side, Q_GIVEN at, AJAR, INSIDE);
}
//// FROM_THERE
        if (!(known && follow_limbs(limbs->pose, at, 0, side, q, found) == PKM_OK))
//// SOLVE_AGAIN
        REAL found[2] = {ZERO}, turned[NEWTONS];
        if (limbs(at, side, q, found, turned) != PKM_OK)
            return STAYS_OPEN;
//// TAKE_ALONG
/* Takes the limbs along to a pose, which is checked and moved into the motion space: from where they are, or from home
   where they are not known or do not get there. */
static int take_along(const REAL pose[7], int mode, REAL side[], struct NAME_limbs *limbs)
{
    REAL at[7], way[6], q[PLACES], found[2] = {ZERO};
    int status = sides_of(mode, side);
    if (status == PKM_OK)
        status = platform(pose, at);
    if (status != PKM_OK)
        return status;
    const int known = limbs->known && limbs->mode == mode;
    for (int k = 0; k < PLACES && known; k++)
        q[k] = limbs->joints[k];
    if (!(known && way_to(at, limbs->pose, way) < SHORT && carry(at, side, limbs->joints, q, found) == PKM_OK))
FROM_THERE            status = reach(at, mode, side, q, found);
    if (status == PKM_OK && !(found[1] < CLOSED * SIZE))
        status = OFF_SPACE;
    if (status != PKM_OK)
        return status;
    limbs->known = 1;
    limbs->mode = mode;
    for (int k = 0; k < 7; k++)
        limbs->pose[k] = at[k];
    for (int k = 0; k < PLACES; k++)
        limbs->joints[k] = q[k];
    return PKM_OK;
}
//// NEAREST
/* Positions of the limbs' joints from their cosines and sines, in the turns nearest to what they were. After a small turn
   by the series of the arc sine, to a thousandth of the turn: this serves to count turns, and `carry` reads angles. */
static void read_joints(const REAL from[], REAL q[])
{
    for (int k = 0; k < JOINTS; k++) {
        if (!turns_in_limb[k])
            continue;
        REAL *c = &q[JOINTS + k], *s = &q[JOINTS + JOINTS + k];
        const REAL sine = *s * from[JOINTS + k] - *c * from[JOINTS + JOINTS + k], square = sine * sine;
        const REAL angle = from[k], unit = ONE + HALF * (ONE - *c * *c - *s * *s);
        if (*c * from[JOINTS + k] + *s * from[JOINTS + JOINTS + k] > NEARLY) {
            q[k] = angle + sine * (ONE + square * SIXTH);
        } else {
            const REAL there = angle_at(*s, *c);
            q[k] = there + TAU * FLOOR((angle - there) / TAU + HALF);
        }
        *c *= unit;
        *s *= unit;
    }
}

/* Of the first so many of `tried_mode`, which show every solution of every limb, the one whose actuators at `pose` are
   nearest to `goal`, and what they have to go. */
static int nearest_side(const REAL pose[7], int modes, const REAL goal[], REAL side[], REAL span[], REAL q[])
{
    REAL best[LIMBS];
    int status = PKM_UNREACHABLE;
    for (int i = 0; i < LIMBS; i++)
        best[i] = HUGE_VAL;
    for (int tries = 0; tries < modes; tries++) {
        const int mode = tried_mode[tries];
        REAL tried[SIDES], left[M], solved[PLACES], gap[2] = {ZERO}, far[LIMBS] = {ZERO}, out[LIMBS] = {ZERO};
        int found = sides_of(mode, tried);
        if (found == PKM_OK)
            found = reach(pose, mode, tried, solved, gap);
        if (found == PKM_OK)
            found = limb_errors(pose, tried, solved, goal, left);
        if (found != PKM_OK)
            continue;
        for (int a = 0; a < M; a++)
            far[limb_of_actuator[a]] += FABS(left[a]);
        for (int k = 0; k < JOINTS; k++)
            if (is_iterated[k])
                out[limb_of_joint[k]] += larger(larger(joint_lower[k] - solved[k], solved[k] - joint_upper[k]), ZERO);
        for (int i = 0; i < LIMBS; i++)
            far[i] += smaller(out[i], BEYOND);
        for (int i = 0; i < LIMBS; i++)
            far[i] = far[i] < (best[i] < HUGE_VAL ? CLEARLY : ONE) * best[i] ? far[i] : -ONE;
        for (int i = 0; i < LIMBS; i++)
            best[i] = far[i] >= ZERO ? far[i] : best[i];
        status = PKM_OK;
        for (int k = 0; k < SIDES; k++)
            side[k] = far[limb_of_side[k]] >= ZERO ? tried[k] : side[k];
        for (int k = 0; k < PLACES; k++)
            q[k] = far[limb_of_joint[k % JOINTS]] >= ZERO ? solved[k] : q[k];
        for (int a = 0; a < M; a++)
            span[a] = far[limb_of_actuator[a]] >= ZERO ? left[a] : span[a];
    }
    return status;
}
//// FORWARD_NEAR
int NAME_forward_near(const REAL actuated[], REAL pose[7], struct NAME_limbs *limbs)
{
    REAL at[7], side[SIDES] = {ZERO}, span[M], q[PLACES];
    int status = usable(actuated) ? PKM_OK : PKM_INVALID_INPUT;
    if (status == PKM_OK)
        status = limbs->known ? sides_of(limbs->mode, side) : take_along(NAME_home, 0, side, limbs);
    for (int k = 0; k < 7; k++)
        at[k] = limbs->pose[k];
    for (int k = 0; k < PLACES; k++)
        q[k] = limbs->joints[k];
    for (int a = 0; a < M; a++) { /* turning drives by the shortest way */
        span[a] = actuated[a] - q[NAME_actuated_joint[a]];
        if (actuator_turns[a])
            span[a] -= TAU * FLOOR(span[a] / TAU + HALF);
    }
    if (status == PKM_OK)
        status = track(actuated, side, span, q, at);
    for (int k = 0; k < 7; k++)
        pose[k] = at[k];
    status = finish(status, pose, 7);
    for (int k = 0; k < 7 && status == PKM_OK; k++)
        limbs->pose[k] = at[k];
    for (int a = 0; a < M; a++)
        q[NAME_actuated_joint[a]] = limbs->joints[NAME_actuated_joint[a]] + span[a];
    for (int k = 0; k < PLACES && status == PKM_OK; k++)
        limbs->joints[k] = q[k];
    return status;
}
