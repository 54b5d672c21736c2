// SPDX-License-Identifier: Apache-2.0
#include "pkm_ros2_control/robot.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace pkm_ros2_control
{
namespace
{
constexpr int kMostFreedoms = 6;
constexpr double kSingularBelow = 1e-12;  // pivot beside the largest: the exported functions refuse long before

// Gauss-Jordan with pivoting, n x n beside n x m; false where singular.
bool solve(int n, int m, double A[][kMostFreedoms], double B[][kMostDrives])
{
  double largest = 0.0;
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < n; ++k) largest = std::max(largest, std::fabs(A[i][k]));
  for (int c = 0; c < n; ++c)
  {
    int p = c;
    for (int i = c + 1; i < n; ++i)
      if (std::fabs(A[i][c]) > std::fabs(A[p][c])) p = i;
    if (!(std::fabs(A[p][c]) > kSingularBelow * largest)) return false;
    std::swap_ranges(A[c], A[c] + n, A[p]);
    std::swap_ranges(B[c], B[c] + m, B[p]);
    for (int i = 0; i < n; ++i)
    {
      const double factor = i == c ? 0.0 : A[i][c] / A[c][c];
      for (int k = 0; k < n; ++k) A[i][k] -= factor * A[c][k];
      for (int k = 0; k < m; ++k) B[i][k] -= factor * B[c][k];
    }
  }
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < m; ++k) B[i][k] /= A[i][i];
  return true;
}
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
    case kTurned: return "readings of drives are turns away from where the model has them";
    default: return "an unknown status";
  }
}

Robot::Robot(const std::string & library)
{
  const bool path = library.find('/') != std::string::npos;
  const std::string file = path ? library : "libpkm_robot_" + library + ".so";
  void * handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw std::runtime_error(std::string("no library of the robot: ") + dlerror());
  handle_ = std::shared_ptr<void>(handle, dlclose);
  table_ = static_cast<const pkm_robot *>(dlsym(handle, "pkm_robot_table"));
  if (table_ == nullptr) throw std::runtime_error(file + " holds no pkm_robot_table");
  if (table_->layout != PKM_ROBOT_TABLE_LAYOUT) throw std::runtime_error(file + " was built for another version");
  if (table_->n_actuated > kMostDrives) throw std::runtime_error(file + " has too many drives");
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

int Robot::jacobians(const Pose & pose, int mode, double * forward, double * inverse) const
{
  const int m = drives(), n = table_->n_freedoms;
  const int status = table_->jacobian(pose.data(), mode, inverse);
  if (status != kOk) return status;
  double K[kMostDrives][kMostFreedoms] = {}, A[kMostFreedoms][kMostFreedoms] = {};
  double B[kMostFreedoms][kMostDrives] = {};
  for (int a = 0; a < m; ++a)
    for (int k = 0; k < 6; ++k)
      for (int c = 0; c < n; ++c) K[a][c] += inverse[6 * a + k] * basis_[c][k];
  for (int a = 0; a < m; ++a)
    for (int k = 0; k < 6; ++k)
    {
      inverse[6 * a + k] = 0.0;
      for (int c = 0; c < n; ++c) inverse[6 * a + k] += K[a][c] * basis_[c][k];
    }
  if (m == n)
  {
    for (int a = 0; a < m; ++a)
    {
      std::copy_n(K[a], n, A[a]);
      B[a][a] = 1.0;
    }
  }
  else
  {
    for (int c = 0; c < n; ++c)
      for (int a = 0; a < m; ++a)
      {
        B[c][a] = K[a][c];
        for (int d = 0; d < n; ++d) A[c][d] += K[a][c] * K[a][d];
      }
  }
  if (!solve(n, m, A, B)) return kSingular;
  for (int k = 0; k < 6; ++k)
    for (int a = 0; a < m; ++a)
    {
      double sum = 0.0;
      for (int c = 0; c < n; ++c) sum += basis_[c][k] * B[c][a];
      forward[m * k + a] = sum;
    }
  return kOk;
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
