// SPDX-License-Identifier: Apache-2.0
#include "pkm_ros2_control/simulated_robot.hpp"

#include <algorithm>
#include <stdexcept>

#include "pkm_ros2_control/matrices.hpp"

namespace pkm_ros2_control
{
SimulatedRobot::SimulatedRobot(Robot robot, int mode) : robot_(std::move(robot)), limbs_(robot_), mode_(mode)
{
  std::copy_n(robot_.table().home, 7, platform_.pose.begin());
  const int status = read();
  if (status != kOk) throw std::runtime_error(std::string("the robot at home: ") + words_of(status));
}

int SimulatedRobot::accelerate(const Pose & pose, const Six & twist, const double * efforts, Six & acceleration)
{
  return limbs_.direct_dynamics(pose, twist, efforts, mode_, acceleration);
}

int SimulatedRobot::step(const double * efforts, double period)
{
  // twists are added in base axes: the turn of a stage is by its mean twist, of second order in what the axis turns
  const Pose from = platform_.pose;
  const Six v = platform_.twist;
  Six v2 = v, v3 = v, v4 = v, mean = v, a1, a2, a3, a4;
  int status = accelerate(from, v, efforts, a1);
  const auto plus = [&v](const Six & a, double time) {
    Six sum = v;
    for (int k = 0; k < 6; ++k) sum[k] += time * a[k];
    return sum;
  };
  if (status == kOk) status = accelerate(moved(from, v, 0.5 * period), v2 = plus(a1, 0.5 * period), efforts, a2);
  if (status == kOk) status = accelerate(moved(from, v2, 0.5 * period), v3 = plus(a2, 0.5 * period), efforts, a3);
  if (status == kOk) status = accelerate(moved(from, v3, period), v4 = plus(a3, period), efforts, a4);
  if (status != kOk) return status;
  for (int k = 0; k < 6; ++k)
  {
    mean[k] = (v[k] + 2.0 * v2[k] + 2.0 * v3[k] + v4[k]) / 6.0;
    platform_.acceleration[k] = (a1[k] + 2.0 * a2[k] + 2.0 * a3[k] + a4[k]) / 6.0;
    platform_.twist[k] += period * platform_.acceleration[k];
  }
  platform_.pose = moved(from, mean, period);
  return read();
}

int SimulatedRobot::read()
{
  std::array<double, 6 * kMostDrives> rates;
  int status = limbs_.inverse(platform_.pose, mode_, positions.data());
  if (status == kJointLimit) status = kOk;  // it has no end stops
  if (status == kOk) status = limbs_.jacobian(platform_.pose, mode_, rates.data());
  if (status != kOk) return status;
  velocities.fill(0.0);
  add_product(robot_.drives(), 6, rates.data(), platform_.twist.data(), 1.0, velocities.data());
  return kOk;
}
}  // namespace pkm_ros2_control
