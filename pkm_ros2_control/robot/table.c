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

const struct pkm_robot pkm_robot_table = {
    PKM_ROBOT_TABLE_LAYOUT,
    CONSTANT(_DIGEST),
    CONSTANT(_N_ACTUATED),
    CONSTANT(_N_MODES),
    CONSTANT(_N_FREEDOMS),
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
};
