// SPDX-License-Identifier: Apache-2.0
#ifndef PKM_ROS2_CONTROL__SIMULATED_ROBOT_HPP_
#define PKM_ROS2_CONTROL__SIMULATED_ROBOT_HPP_

#include "pkm_ros2_control/robot.hpp"

namespace pkm_ros2_control
{
// A robot that moves under efforts as its model says; no allocation.
class SimulatedRobot
{
public:
  SimulatedRobot(Robot robot, int mode);

  // A period under constant efforts, by the fourth-order method of Runge and Kutta.
  int step(const double * efforts, double period);

  const Robot & robot() const { return robot_; }
  const Motion & platform() const { return platform_; }
  Drives positions{}, velocities{};

private:
  int accelerate(const Pose & pose, const Six & twist, const double * efforts, Six & acceleration);
  int read();

  Robot robot_;
  Limbs limbs_;
  int mode_;
  Motion platform_;
};
}  // namespace pkm_ros2_control

#endif  // PKM_ROS2_CONTROL__SIMULATED_ROBOT_HPP_
