/* SPDX-License-Identifier: Apache-2.0 */
/* What every robot in C has around its recorded functions. Each text follows its name, and ends at the next; names
   in capitals are replaced: see `c_files.py`. */
//// WIDE

#if DBL_DIG < 15
#error "double is no wider than float here: export with --scalar float"
#endif
//// DRIVES_NEAR
int NAME_drives_near(const REAL pose[7], int mode, REAL actuated[], struct NAME_limbs *limbs)
{
    const int status = NAME_inverse_near(pose, mode, actuated, 0, limbs);
    return status == PKM_JOINT_LIMIT ? PKM_OK : status;
}
//// HELPERS
/* The status of an answer: NaN where there is none, PKM_INVALID_INPUT where a number overflowed. */
static int finish(int status, REAL out[], int n)
{
    if (status == PKM_OK)
        for (int k = 0; k < n; k++)
            if (!(FABS(out[k]) < HUGE_VAL))
                status = PKM_INVALID_INPUT;
    if (status != PKM_OK)
        for (int k = 0; k < n; k++)
            out[k] = (REAL)NAN;
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
//// ARC_TANGENT
/* `atan2` within four roundings, in operations that are the same for all arguments; zero of either sign is zero. */
static REAL angle_at(REAL y, REAL x)
{
    const REAL ax = FABS(x), ay = FABS(y);
    const REAL low = ax < ay ? ax : ay, high = ay > ax ? ay : ax; /* NaN where y is, and where x is */
    const REAL part = low / (high < LEAST ? LEAST : high);
    const REAL folded = (part - ONE) / (part + ONE);
    const REAL offset = part > FOLD ? PI_4 : ZERO;
    const REAL t = part > FOLD ? folded : part, square = t * t;
    const REAL series = SERIES;
    REAL angle = t * square * series + t + offset;
    angle = ay > ax ? PI_2 - angle : angle;
    angle = x < ZERO ? PI_1 - angle : angle;
    return y < ZERO ? -angle : angle;
}
//// WITHIN
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
//// INVERSE
int NAME_inverse(const REAL pose[7], int mode, REAL actuated[], REAL joints[])
{
    REAL side[SIDES], q[JOINTS]AT;
    int status = sides_of(mode, side), inside = 1;
    if (status == PKM_OK)
        status = positions(pose, side, start_of_mode[mode], q);
AGAIN    status = finish(status, q, JOINTS);
//// MOVED
    if (status == PKM_UNREACHABLE && platform(pose, at) == PKM_OK && into_space(side, at) == PKM_OK)
        status = {};
//// JOINTS_WITHIN
    for (int k = 0; k < JOINTS && status == PKM_OK; k++)
        inside = within(&q[k], k) && inside;
    const int known = status == PKM_OK;
    for (int k = 0; k < JOINTS && joints; k++)
        joints[k] = known ? q[k] : (REAL)NAN;
    for (int k = 0; k < M; k++)
        actuated[k] = known ? q[NAME_actuated_joint[k]] : (REAL)NAN;
    return known && !inside ? PKM_JOINT_LIMIT : status;
}
//// SOLVED
int NAME_inverse_near(const REAL pose[7], int mode, REAL actuated[], REAL joints[], struct NAME_limbs *limbs)
{
    REAL side[SIDES], q[JOINTS];
    int inside = 1, status = take_along(pose, mode, side, limbs);
    if (status == PKM_OK)
        status = finish(positions(limbs->pose, side, limbs->joints, q), q, JOINTS);
