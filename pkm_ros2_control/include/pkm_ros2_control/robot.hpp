// SPDX-License-Identifier: Apache-2.0
#ifndef PKM_ROS2_CONTROL__ROBOT_HPP_
#define PKM_ROS2_CONTROL__ROBOT_HPP_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "pkm_ros2_control/robot_table.h"

namespace pkm_ros2_control
{
constexpr int kMostDrives = 16;

// Statuses of the exported functions that are asked for here; the exported header has all of them.
constexpr int kOk = 0, kJointLimit = 2, kSingular = 3, kInvalid = 5;
// Of our own: a reference leads too far, or is too fast; the drives' readings are turns away from where the model has them.
constexpr int kTooFar = -1, kTooFast = -2, kTurned = -3;

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

// A robot's functions, from a shared library that holds `pkm_robot_table`. Only the constructors allocate.
class Robot
{
public:
  // `library`: a path, or the name of a robot, whose library libpkm_robot_NAME.so the loader finds.
  // Throws std::runtime_error with the reason.
  explicit Robot(const std::string & library);

  const pkm_robot & table() const { return *table_; }
  int drives() const { return table_->n_actuated; }
  std::vector<std::string> names() const;

  // Where `given` drives are in this robot's order; throws where they are not its drives.
  std::vector<int> order_of(const std::vector<std::string> & given) const;

  // The platform's twist per rates of the drives, 6 x drives row by row, by least squares where redundant, and rates of
  // the drives per twist, of which that part counts that the platform can make.
  int jacobians(const Pose & pose, int mode, double * forward, double * inverse) const;

  // The part of a twist or acceleration that the platform can make.
  Six onto_motions(const Six & given) const;

private:
  std::shared_ptr<void> handle_;
  const pkm_robot * table_;
  std::array<Six, 6> basis_{};  // of the platform's twists, orthonormal
};

// a += scale * A b, of A `rows` x `columns`
inline void add_product(int rows, int columns, const double * A, const double * b, double scale, double * a)
{
  for (int i = 0; i < rows; ++i)
    for (int k = 0; k < columns; ++k) a[i] += scale * A[i * columns + k] * b[k];
}

// The pose after a twist for a time.
Pose moved(const Pose & pose, const Six & twist, double time);
}  // namespace pkm_ros2_control

#endif  // PKM_ROS2_CONTROL__ROBOT_HPP_
