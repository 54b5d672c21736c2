// SPDX-License-Identifier: Apache-2.0
// What a linkage's library has to offer: the C that `pkm transmission FILE --c DIR` writes, behind one name.
#ifndef PKM_ROS2_CONTROL__LINKAGE_TABLE_H_
#define PKM_ROS2_CONTROL__LINKAGE_TABLE_H_

#define PKM_LINKAGE_TABLE_LAYOUT 1

#ifdef __cplusplus
extern "C" {
#endif

// All is as in the header that was written.
struct pkm_linkage
{
  int layout;  // PKM_LINKAGE_TABLE_LAYOUT
  int n_joints, n_actuators, n_state;
  const char *const *joints, *const *actuators;
  const double * home_joints;
  void (*home)(double *);
  int (*to_actuators)(const double *, const double *, double *, double *, double *, double *);
};

extern const struct pkm_linkage pkm_linkage_table;

#ifdef __cplusplus
}
#endif

#endif  // PKM_ROS2_CONTROL__LINKAGE_TABLE_H_
