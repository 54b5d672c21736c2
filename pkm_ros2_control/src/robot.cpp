// SPDX-License-Identifier: Apache-2.0
#include "pkm_ros2_control/robot.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "pkm_ros2_control/matrices.hpp"

namespace pkm_ros2_control
{
namespace
{
constexpr int kMostFreedoms = 6;
}  // namespace

const char * words_of(int status)
{
  switch (status)
  {
    case kOk: return "solved";
    case 1: return "out of reach in this working mode";
    case kJointLimit: return "a joint would be outside its range";
    case kSingular: return "singular";
    case 4:
    case 7: return "no efforts within the bounds of drives that only pull, or only push";
    case kInvalid: return "not finite, or outside the motion space";
    case 8: return "the limbs do not follow the platform there";
    case 10: return "no such working mode";
    case kTooFar: return "it leads too far from where the drives are";
    case kTooFast: return "it is faster than a drive";
    case kRacing: return "a drive is much faster than its limit";
    case kTurned: return "readings of drives are turns away from where the model has them";
    default: return "an unknown status";
  }
}

Robot::Robot(const std::string & library)
: library_("robot", library, PKM_ROBOT_TABLE_LAYOUT), table_(static_cast<const pkm_robot *>(library_.table))
{
  if (table_->n_actuated > kMostDrives) throw std::runtime_error("the robot has too many drives");
  for (int c = 0; c < table_->n_freedoms; ++c)
  {
    Six & column = basis_[c];
    for (int k = 0; k < 6; ++k) column[k] = table_->motions[k * table_->n_freedoms + c];
    for (int d = 0; d < c; ++d)
    {
      const double along = std::inner_product(column.begin(), column.end(), basis_[d].begin(), 0.0);
      for (int k = 0; k < 6; ++k) column[k] -= along * basis_[d][k];
    }
    const double length = std::sqrt(std::inner_product(column.begin(), column.end(), column.begin(), 0.0));
    for (double & x : column) x /= length;
  }
}

Six Robot::onto_motions(const Six & given) const
{
  Six found{};
  for (int c = 0; c < table_->n_freedoms; ++c)
  {
    const double along = std::inner_product(given.begin(), given.end(), basis_[c].begin(), 0.0);
    for (int k = 0; k < 6; ++k) found[k] += along * basis_[c][k];
  }
  return found;
}

std::vector<std::string> Robot::names() const { return {table_->drives, table_->drives + table_->n_actuated}; }

std::vector<int> Robot::order_of(const std::vector<std::string> & given) const
{
  const auto known = names();
  std::vector<int> order;
  for (const auto & name : known)
  {
    const auto at = std::find(given.begin(), given.end(), name);
    if (at == given.end()) throw std::runtime_error("joint '" + name + "' of the robot is not among those given");
    order.push_back(static_cast<int>(at - given.begin()));
  }
  if (given.size() != known.size()) throw std::runtime_error("more joints are given than the robot has drives");
  return order;
}

int Robot::jacobians(const Pose & pose, int mode, Limbs & limbs, double * forward, double * inverse) const
{
  const int m = drives(), n = table_->n_freedoms;
  const int status = limbs.jacobian(pose, mode, inverse);
  if (status != kOk) return status;
  double K[kMostDrives * kMostFreedoms] = {}, A[kMostFreedoms * kMostFreedoms] = {};
  double B[kMostFreedoms * kMostDrives] = {};
  for (int a = 0; a < m; ++a)
    for (int c = 0; c < n; ++c) add_product(1, 6, &inverse[6 * a], basis_[c].data(), 1.0, &K[n * a + c]);
  std::fill_n(inverse, 6 * m, 0.0);
  for (int a = 0; a < m; ++a)
    for (int c = 0; c < n; ++c) add_product(6, 1, basis_[c].data(), &K[n * a + c], 1.0, &inverse[6 * a]);
  if (m == n)
  {
    std::copy_n(K, n * n, A);
    for (int a = 0; a < m; ++a) B[m * a + a] = 1.0;
  }
  else
  {
    for (int a = 0; a < m; ++a)
      for (int c = 0; c < n; ++c)
      {
        B[m * c + a] = K[n * a + c];
        add_product(n, 1, &K[n * a], &K[n * a + c], 1.0, &A[n * c]);
      }
  }
  if (!solve(n, m, A, B)) return kSingular;
  std::fill_n(forward, 6 * m, 0.0);
  for (int k = 0; k < 6; ++k)
    for (int c = 0; c < n; ++c) add_product(m, 1, &B[m * c], &basis_[c][k], 1.0, &forward[m * k]);
  return kOk;
}

Limbs::Limbs(const Robot & robot)
: table_(&robot.table()), memory_((table_->limbs_size + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t))
{
}

int Limbs::start(const Pose & near, int mode)
{
  if (memory_.empty()) return kOk;
  std::memset(memory_.data(), 0, memory_.size() * sizeof(std::max_align_t));
  Drives there;
  const int status = inverse(near, mode, there.data());
  return status == kJointLimit ? kOk : status;
}

int Limbs::inverse(const Pose & pose, int mode, double * actuated, double * joints)
{
  return memory_.empty() ? table_->inverse(pose.data(), mode, actuated, joints)
                         : table_->inverse_near(pose.data(), mode, actuated, joints, memory_.data());
}

int Limbs::forward(const double * actuated, const Pose & near, Pose & pose)
{
  return memory_.empty() ? table_->forward(actuated, near.data(), pose.data())
                         : table_->forward_near(actuated, pose.data(), memory_.data());
}

int Limbs::jacobian(const Pose & pose, int mode, double * jacobian)
{
  return memory_.empty() ? table_->jacobian(pose.data(), mode, jacobian)
                         : table_->jacobian_near(pose.data(), mode, jacobian, memory_.data());
}

int Limbs::inverse_dynamics(const Pose & pose, const Six & twist, const Six & acceleration, int mode, double * effort)
{
  return memory_.empty()
           ? table_->inverse_dynamics(pose.data(), twist.data(), acceleration.data(), mode, effort)
           : table_->inverse_dynamics_near(
               pose.data(), twist.data(), acceleration.data(), mode, effort, memory_.data());
}

int Limbs::direct_dynamics(const Pose & pose, const Six & twist, const double * effort, int mode, Six & acceleration)
{
  return memory_.empty()
           ? table_->direct_dynamics(pose.data(), twist.data(), effort, mode, acceleration.data())
           : table_->direct_dynamics_near(
               pose.data(), twist.data(), effort, mode, acceleration.data(), memory_.data());
}

Pose moved(const Pose & pose, const Six & twist, double time)
{
  Pose to = pose;
  for (int k = 0; k < 3; ++k) to[k] += time * twist[k];
  const double half[3] = {0.5 * time * twist[3], 0.5 * time * twist[4], 0.5 * time * twist[5]};
  const double angle = std::sqrt(half[0] * half[0] + half[1] * half[1] + half[2] * half[2]);
  const double part = angle < 1e-9 ? 1.0 : std::sin(angle) / angle, w = std::cos(angle);
  const double x = part * half[0], y = part * half[1], z = part * half[2];
  const double *q = &pose[3], turned[4] = {
    w * q[0] + x * q[3] + y * q[2] - z * q[1], w * q[1] - x * q[2] + y * q[3] + z * q[0],
    w * q[2] + x * q[1] - y * q[0] + z * q[3], w * q[3] - x * q[0] - y * q[1] - z * q[2]};
  const double norm =
    std::sqrt(turned[0] * turned[0] + turned[1] * turned[1] + turned[2] * turned[2] + turned[3] * turned[3]);
  for (int k = 0; k < 4; ++k) to[3 + k] = turned[k] / norm;
  return to;
}
}  // namespace pkm_ros2_control
