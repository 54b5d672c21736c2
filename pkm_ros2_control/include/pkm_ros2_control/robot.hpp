// SPDX-License-Identifier: Apache-2.0
#ifndef PKM_ROS2_CONTROL__ROBOT_HPP_
#define PKM_ROS2_CONTROL__ROBOT_HPP_

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "pkm_ros2_control/library.hpp"
#include "pkm_ros2_control/robot_table.h"

namespace pkm_ros2_control
{
constexpr int kMostDrives = 16;

// Statuses of the exported functions that are asked for here; the exported header has all of them.
constexpr int kOk = 0, kJointLimit = 2, kSingular = 3, kInvalid = 5;
// Of our own: a reference leads too far, or is too fast; readings are turns away from where the model has the drives; a
// drive races.
constexpr int kTooFar = -1, kTooFast = -2, kTurned = -3, kRacing = -4;

using Pose = std::array<double, 7>;  // x y z qx qy qz qw, base frame
using Six = std::array<double, 6>;   // linear, then angular, base axes
using Drives = std::array<double, kMostDrives>;

struct Motion
{
  Pose pose{{0, 0, 0, 0, 0, 0, 1}};
  Six twist{}, acceleration{};
};

// In words, for messages.
const char * words_of(int status);

class Limbs;

// A robot's functions, from a shared library that holds `pkm_robot_table`. Only the constructors allocate.
class Robot
{
public:
  explicit Robot(const std::string & library);  // see `Library`

  const pkm_robot & table() const { return *table_; }
  int drives() const { return table_->n_actuated; }
  std::vector<std::string> names() const;  // of the drives

  // Where `given` drives are in this robot's order; throws where they are not its drives.
  std::vector<int> order_of(const std::vector<std::string> & given) const;

  // The platform's twist per rates of the drives, 6 x drives row by row, by least squares where redundant, and rates of
  // the drives per twist, of which that part counts that the platform can make.
  int jacobians(const Pose & pose, int mode, Limbs & limbs, double * forward, double * inverse) const;

  // The part of a twist or acceleration that the platform can make.
  Six onto_motions(const Six & given) const;

private:
  Library library_;
  const pkm_robot * table_;
  std::array<Six, 6> basis_{};  // of the platform's twists, orthonormal
};

// A robot's functions for one loop, which take its limbs along from call to call where they are solved by iteration. The
// constructor allocates; nothing else does.
class Limbs
{
public:
  explicit Limbs(const Robot & robot);  // of a robot that lives as long

  // Go on from a pose in a working mode; at first from home in the first.
  int start(const Pose & near, int mode);

  int inverse(const Pose & pose, int mode, double * actuated, double * joints = nullptr);
  int jacobian(const Pose & pose, int mode, double * jacobian);
  int inverse_dynamics(const Pose & pose, const Six & twist, const Six & acceleration, int mode, double * effort);
  int direct_dynamics(const Pose & pose, const Six & twist, const double * effort, int mode, Six & acceleration);

  // The pose that continues `near`, or that of the limbs where they are taken along.
  int forward(const double * actuated, const Pose & near, Pose & pose);

private:
  const pkm_robot * table_;
  std::vector<std::max_align_t> memory_;
};

// The pose after a twist for a time.
Pose moved(const Pose & pose, const Six & twist, double time);
}  // namespace pkm_ros2_control

#endif  // PKM_ROS2_CONTROL__ROBOT_HPP_
