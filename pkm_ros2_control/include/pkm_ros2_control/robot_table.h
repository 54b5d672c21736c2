// SPDX-License-Identifier: Apache-2.0
// What a robot's library has to offer: the C that `pkm export ROBOT --to c` writes, behind one name.
#ifndef PKM_ROS2_CONTROL__ROBOT_TABLE_H_
#define PKM_ROS2_CONTROL__ROBOT_TABLE_H_

#define PKM_ROBOT_TABLE_LAYOUT 1

#ifdef __cplusplus
extern "C" {
#endif

// Sizes, units and conditions of all members are those of the exported header; numbers are doubles.
struct pkm_robot
{
  int layout;  // PKM_ROBOT_TABLE_LAYOUT
  const char * digest;
  int n_actuated, n_modes, n_freedoms;
  const char * const * drives;
  const double *home, *largest_rate, *largest_effort, *motions;
  int (*inverse)(const double *, int, double *, double *);
  int (*forward)(const double *, const double *, double *);
  int (*jacobian)(const double *, int, double *);
  int (*inverse_dynamics)(const double *, const double *, const double *, int, double *);
  int (*direct_dynamics)(const double *, const double *, const double *, int, double *);
};

extern const struct pkm_robot pkm_robot_table;

#ifdef __cplusplus
}
#endif

#endif  // PKM_ROS2_CONTROL__ROBOT_TABLE_H_
