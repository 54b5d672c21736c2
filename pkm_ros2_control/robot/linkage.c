/* SPDX-License-Identifier: Apache-2.0 */
/* The table of one linkage; `PKM_HEADER` is its header, `PKM_NAME` the prefix of its functions, `PKM_UPPER` of its constants. */
#include PKM_HEADER

#include "pkm_ros2_control/linkage_table.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define CONSTANT(what) JOIN(PKM_UPPER, what)
#define OF(what) JOIN(PKM_NAME, what)

const struct pkm_linkage pkm_linkage_table = {
    PKM_LINKAGE_TABLE_LAYOUT,
    CONSTANT(_JOINTS),
    CONSTANT(_ACTUATORS),
    CONSTANT(_STATE),
    OF(_joint_names),
    OF(_actuator_names),
    OF(_home_joints),
    OF(_home),
    OF(_to_actuators),
};
