/* SPDX-License-Identifier: Apache-2.0 */
/* The table of one robot; `PKM_HEADER` is its header, `PKM_NAME` the prefix of its functions, `PKM_UPPER` of its constants. */
#include PKM_HEADER

#include "pkm_ros2_control/robot_table.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define CONSTANT(what) JOIN(PKM_UPPER, what)
#define OF(what) JOIN(PKM_NAME, what)

#if CONSTANT(_TURNING)
#error "the motion space of this robot turns with its pose, which the controllers of this package do not know"
#endif

#if CONSTANT(_CARRIED_LIMBS)
static int inverse_near(const double *pose, int mode, double *actuated, double *joints, void *limbs)
{
    return OF(_inverse_near)(pose, mode, actuated, joints, limbs);
}

static int forward_near(const double *actuated, double *pose, void *limbs)
{
    return OF(_forward_near)(actuated, pose, limbs);
}

static int jacobian_near(const double *pose, int mode, double *jacobian, void *limbs)
{
    return OF(_jacobian_near)(pose, mode, jacobian, limbs);
}

static int inverse_dynamics_near(const double *pose, const double *twist, const double *acceleration, int mode,
                                 double *effort, void *limbs)
{
    return OF(_inverse_dynamics_near)(pose, twist, acceleration, mode, effort, limbs);
}

static int direct_dynamics_near(const double *pose, const double *twist, const double *effort, int mode,
                                double *acceleration, void *limbs)
{
    return OF(_direct_dynamics_near)(pose, twist, effort, mode, acceleration, limbs);
}
#endif

const struct pkm_robot pkm_robot_table = {
    PKM_ROBOT_TABLE_LAYOUT,
    CONSTANT(_DIGEST),
    CONSTANT(_N_JOINTS),
    CONSTANT(_N_ACTUATED),
    CONSTANT(_N_MODES),
    CONSTANT(_N_FREEDOMS),
    OF(_joint_names),
    OF(_drive_names),
    OF(_home),
    OF(_largest_rate),
    OF(_largest_effort),
    OF(_motions),
    OF(_inverse),
    OF(_forward),
    OF(_jacobian),
    OF(_inverse_dynamics),
    OF(_direct_dynamics),
#if CONSTANT(_CARRIED_LIMBS)
    sizeof(struct OF(_limbs)),
    inverse_near,
    forward_near,
    jacobian_near,
    inverse_dynamics_near,
    direct_dynamics_near,
#else
    0,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
#endif
};
