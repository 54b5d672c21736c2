// SPDX-License-Identifier: Apache-2.0
#ifndef PKM_ROS2_CONTROL__COMPUTED_TORQUE_HPP_
#define PKM_ROS2_CONTROL__COMPUTED_TORQUE_HPP_

#include <limits>

#include "pkm_ros2_control/robot.hpp"

namespace pkm_ros2_control
{
struct Gains
{
  double natural_frequency = 120.0;  // of the tracking error [rad/s]
  double damping = 1.0;              // 1 is critical
  double largest_error = std::numeric_limits<double>::infinity();  // of a drive, from where it shall be [rad or m]
};

enum class Verdict
{
  followed,  // the reference is followed
  held,      // the reference is refused; the platform is held where the last good one was
  lost,      // there are no efforts: the platform cannot be found, or the model has no answer there
};

struct Answer
{
  Verdict verdict;
  int status;          // why it is so, for `words_of`
  const char * about;  // what has that status
  bool saturated;      // a drive has less than the law asks for
};

// Computed torque with the error of the drives, as pkm_control/controllers/computed_torque.py has it:
//   efforts = ID(x, v, a_ref + omega^2 J (q_ref - q) + 2 zeta omega (v_ref - v))
// Nothing is allocated after the constructor; nothing throws.
class ComputedTorque
{
public:
  ComputedTorque(Robot robot, const Gains & gains, int mode);

  const Robot & robot() const { return robot_; }
  const Motion & measured() const { return measured_; }

  // The reference is refused above these rates and efforts are cut to these limits; the description's by default.
  Drives largest_rate{}, largest_effort{};

  // Find the platform anew, from near `near`, and hold it there.
  int start(const double * positions, const Pose & near);

  // Efforts of the drives that follow a reference; NaN where the verdict is `lost`.
  Answer update(const Motion & reference, const double * positions, const double * velocities, double * efforts);

  // The platform's motion that drives make; continues the one of the call before.
  int platform_of(const double * positions, const double * velocities, const double * accelerations, Motion & motion);

private:
  int judge(const Motion & reference, const double * positions, double * wanted);
  int part(Limbs & limbs, const Motion & at, const Six & acceleration, double sign, double * efforts);
  int efforts_with_friction(const Six & acceleration, const Six & friction_twist, double * efforts);

  Robot robot_;
  double stiffness_, viscosity_, largest_error_;
  int mode_;
  Limbs limbs_, good_limbs_, asked_limbs_;  // of where the platform is, shall be, and references of drives lead it
  bool started_ = false;
  bool has_friction_ = false;
  int races_ = 0;  // readings of drives that are too fast to be led
  Motion measured_, good_;  // good: the last reference that was followed
  Pose asked_near_{};       // where the reference of the drives was last
  std::array<double, 6 * kMostDrives> forward_{}, inverse_{};
};
}  // namespace pkm_ros2_control

#endif  // PKM_ROS2_CONTROL__COMPUTED_TORQUE_HPP_
