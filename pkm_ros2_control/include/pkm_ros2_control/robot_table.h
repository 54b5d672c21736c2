// SPDX-License-Identifier: Apache-2.0
// What a robot's library has to offer: the C that `pkm export ROBOT --to c` writes, behind one name.
#ifndef PKM_ROS2_CONTROL__ROBOT_TABLE_H_
#define PKM_ROS2_CONTROL__ROBOT_TABLE_H_

#define PKM_ROBOT_TABLE_LAYOUT 2

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Sizes, units and conditions of all members are those of the exported header; numbers are doubles.
struct pkm_robot
{
  int layout;  // PKM_ROBOT_TABLE_LAYOUT
  const char * digest;
  int n_joints, n_actuated, n_modes, n_freedoms;
  const char *const *joints, *const *drives;
  const double *home, *largest_rate, *largest_effort, *motions;
  int (*inverse)(const double *, int, double *, double *);
  int (*forward)(const double *, const double *, double *);
  int (*jacobian)(const double *, int, double *);
  int (*inverse_dynamics)(const double *, const double *, const double *, int, double *);
  int (*direct_dynamics)(const double *, const double *, const double *, int, double *);

  // Of robots whose limbs are taken along from call to call, the functions `..._near`; the last argument is their
  // struct, of this many bytes, all zero at first. Else 0 and NULL.
  size_t limbs_size;
  int (*inverse_near)(const double *, int, double *, double *, void *);
  int (*forward_near)(const double *, double *, void *);
  int (*jacobian_near)(const double *, int, double *, void *);
  int (*inverse_dynamics_near)(const double *, const double *, const double *, int, double *, void *);
  int (*direct_dynamics_near)(const double *, const double *, const double *, int, double *, void *);
};

extern const struct pkm_robot pkm_robot_table;

#ifdef __cplusplus
}
#endif

#endif  // PKM_ROS2_CONTROL__ROBOT_TABLE_H_
