// SPDX-License-Identifier: Apache-2.0
#ifndef PKM_ROS2_CONTROL__LINKAGE_HPP_
#define PKM_ROS2_CONTROL__LINKAGE_HPP_

#include <string>
#include <vector>

#include "pkm_ros2_control/library.hpp"
#include "pkm_ros2_control/linkage_table.h"

namespace pkm_ros2_control
{
using Numbers = std::vector<double>;

// What some joints do; NaN where it is not known.
struct Quantities
{
  explicit Quantities(int n);
  Numbers position, velocity, effort;  // rad, rad/s, N m; or m, m/s, N
};

// A linkage with as many actuators as joints, led along motions that begin at home. Only the constructor allocates and
// throws. Statuses are those of the exported function; where one is not kOk, all that is written is NaN, and the next
// call goes on from the last place that was reached.
class Linkage
{
public:
  explicit Linkage(const std::string & library);  // see `Library`

  int size() const { return table_->n_joints; }
  std::vector<std::string> joints() const { return {table_->joints, table_->joints + size()}; }
  std::vector<std::string> actuators() const { return {table_->actuators, table_->actuators + size()}; }

  // What the joints do, for positions of the actuators.
  int to_joints(const Quantities & actuators, Quantities & joints);

  // What the actuators have to do. Where no position of a joint is known, velocities and efforts are those of the place
  // where `to_joints` was last.
  int to_actuators(const Quantities & joints, Quantities & actuators);

private:
  // `shares`: n x n, efforts of the actuators per effort at each joint: the transposed inverse of the Jacobian.
  struct Place
  {
    Numbers state, joints, actuators, shares;
  };

  int place_at(const Numbers & joints, Place & place);
  int lead(const Numbers & joints, Place & place);
  int close_in(const Numbers & actuators, Place & place);
  void transposed(const Numbers & shares);

  Library library_;
  const pkm_linkage * table_;
  Place asked_, seen_, next_, kept_;
  Numbers unit_, column_, from_, towards_, aim_, left_, matrix_;
};
}  // namespace pkm_ros2_control

#endif  // PKM_ROS2_CONTROL__LINKAGE_HPP_
