// SPDX-License-Identifier: Apache-2.0
#include "pkm_ros2_control/computed_torque.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "pkm_ros2_control/matrices.hpp"

namespace pkm_ros2_control
{
namespace
{
constexpr double kStep = 1e-4;  // s, of the central difference of Jacobians along the way
constexpr double kOff = 1e-9;   // relative: by how much a reference may leave the platform's motions by rounding
constexpr double kSame = 1e-6;  // rad or m, between readings and where the model has the drives
constexpr double kLeast = 0.1;  // of a correction: so much is kept where a motion itself leaves no room
constexpr double kApproach = 0.2;  // of the natural frequency: rate at which an error vanishes that friction would hold
constexpr double kRaces = 1.3;     // times its largest rate: a drive so fast does not follow any more
constexpr int kWorse = 2, kManyRaces = 10;  // such a reading counts twice what one that is well takes back
constexpr double kRounded = 1e-12;  // of efforts: less of them is no friction

/** Efforts (m), in place: on the way to them from `planned`, cut to the largest, as far as these permit. */
void towards(int m, double * planned, const double * largest, double * efforts)
{
  double share = 1.0;
  for (int k = 0; k < m; ++k)
  {
    planned[k] = std::clamp(planned[k], -largest[k], largest[k]);
    const double way = efforts[k] - planned[k], room = largest[k] - std::copysign(planned[k], way * planned[k]);
    if (std::abs(way) > room) share = std::min(share, room / std::abs(way));
  }
  share = std::max(share, kLeast);
  for (int k = 0; k < m; ++k) efforts[k] = planned[k] + share * (efforts[k] - planned[k]);
}
}  // namespace

ComputedTorque::ComputedTorque(Robot robot, const Gains & gains, int mode)
: robot_(std::move(robot)), mode_(mode), limbs_(robot_), good_limbs_(robot_), asked_limbs_(robot_)
{
  if (!(std::isfinite(gains.natural_frequency) && gains.natural_frequency > 0.0))
    throw std::runtime_error("natural_frequency must be a number greater than zero [rad/s]");
  if (!(std::isfinite(gains.damping) && gains.damping >= 0.0)) throw std::runtime_error("damping must be zero or more");
  if (!(gains.largest_error > 0.0)) throw std::runtime_error("largest_error must be greater than zero");
  if (mode < 0 || mode >= robot_.table().n_modes) throw std::runtime_error("the robot has no such working mode");
  stiffness_ = gains.natural_frequency * gains.natural_frequency;
  viscosity_ = 2.0 * gains.damping * gains.natural_frequency;
  largest_error_ = gains.largest_error;
  std::copy_n(robot_.table().largest_rate, robot_.drives(), largest_rate.begin());
  std::copy_n(robot_.table().largest_effort, robot_.drives(), largest_effort.begin());
}

int ComputedTorque::start(const double * positions, const Pose & near)
{
  measured_ = Motion{};
  races_ = 0;
  Drives there;
  int status = kOk;
  for (Limbs * one : {&limbs_, &good_limbs_, &asked_limbs_})
    if (status == kOk) status = one->start(near, mode_);
  if (status == kOk) status = limbs_.forward(positions, near, measured_.pose);
  if (status == kOk) status = limbs_.inverse(measured_.pose, mode_, there.data());
  if (status == kJointLimit) status = kOk;  // it may begin there
  for (int k = 0; k < robot_.drives() && status == kOk; ++k)
    if (!(std::fabs(there[k] - positions[k]) < kSame)) status = kTurned;
  if (status == kOk)
  {
    Motion moving{measured_.pose, robot_.onto_motions(Six{1.0, 1.0, 1.0, 1.0, 1.0, 1.0}), Six{}};
    Drives friction{}, all{};
    status = part(limbs_, moving, moving.acceleration, -1.0, friction.data());
    if (status == kOk) status = part(limbs_, moving, moving.acceleration, 1.0, all.data());
    has_friction_ = false;
    for (int k = 0; k < robot_.drives(); ++k)
      has_friction_ = has_friction_ || std::abs(friction[k]) > kRounded * (std::abs(all[k]) + std::abs(friction[k]));
  }
  good_ = measured_;
  asked_near_ = measured_.pose;
  started_ = status == kOk;
  return status;
}

int ComputedTorque::judge(const Motion & reference, const double * positions, double * wanted)
{
  for (const Six * one : {&reference.twist, &reference.acceleration})
  {
    const Six possible = robot_.onto_motions(*one);
    for (int k = 0; k < 6; ++k)
      if (!(std::fabs((*one)[k] - possible[k]) <= kOff * (1.0 + std::fabs(possible[k])))) return kInvalid;
  }
  const int status = good_limbs_.inverse(reference.pose, mode_, wanted);
  if (status != kOk) return status;
  Drives rates{};
  add_product(robot_.drives(), 6, inverse_.data(), reference.twist.data(), 1.0, rates.data());
  for (int k = 0; k < robot_.drives(); ++k)
  {
    if (!(std::fabs(wanted[k] - positions[k]) <= largest_error_)) return kTooFar;
    if (!(std::fabs(rates[k]) <= largest_rate[k])) return kTooFast;
  }
  return kOk;
}

/** Efforts (m) at a pose with an acceleration, their part that is even in the twist (`sign` 1) or odd (-1). */
int ComputedTorque::part(Limbs & limbs, const Motion & at, const Six & acceleration, double sign, double * efforts)
{
  Six back = at.twist;
  for (double & rate : back) rate = -rate;
  Drives there;
  int status = limbs.inverse_dynamics(at.pose, at.twist, acceleration, mode_, efforts);
  if (status == kOk) status = limbs.inverse_dynamics(at.pose, back, acceleration, mode_, there.data());
  for (int k = 0; k < robot_.drives() && status == kOk; ++k) efforts[k] = 0.5 * (efforts[k] + sign * there[k]);
  return status;
}

/** Efforts (m) at the measured state, with the friction of a motion at the twist `friction_twist`: dry friction that is
 * compensated by the sign of a measured velocity drives the robot to and fro at rest. */
int ComputedTorque::efforts_with_friction(const Six & acceleration, const Six & friction_twist, double * efforts)
{
  if (!has_friction_) return limbs_.inverse_dynamics(measured_.pose, measured_.twist, acceleration, mode_, efforts);
  Drives friction;
  int status = part(limbs_, measured_, acceleration, 1.0, efforts);
  if (status == kOk)
    status = part(limbs_, {measured_.pose, friction_twist, acceleration}, acceleration, -1.0, friction.data());
  for (int k = 0; k < robot_.drives() && status == kOk; ++k) efforts[k] += friction[k];
  return status;
}

Answer ComputedTorque::update(
  const Motion & reference, const double * positions, const double * velocities, double * efforts)
{
  const int m = robot_.drives();
  std::fill_n(efforts, m, std::numeric_limits<double>::quiet_NaN());
  bool races = false;
  for (int k = 0; k < m; ++k) races = races || std::fabs(velocities[k]) > kRaces * largest_rate[k];
  if (races_ < kManyRaces) races_ = races ? races_ + kWorse : std::max(races_ - 1, 0);
  if (races_ >= kManyRaces) return {Verdict::lost, kRacing, "the drives, until the controller is started anew", false};
  Pose pose;
  int status = started_ ? limbs_.forward(positions, measured_.pose, pose) : kInvalid;
  if (status != kOk) return {Verdict::lost, status, "where the platform is", false};
  status = robot_.jacobians(pose, mode_, limbs_, forward_.data(), inverse_.data());
  if (status != kOk) return {Verdict::lost, status, "how the platform moves with the drives", false};
  measured_.pose = pose;
  measured_.twist.fill(0.0);
  add_product(6, m, forward_.data(), velocities, 1.0, measured_.twist.data());

  Drives wanted;
  Answer answer{Verdict::followed, judge(reference, positions, wanted.data()), "the reference", false};
  if (answer.status == kOk)
  {
    good_ = {reference.pose, robot_.onto_motions(reference.twist), robot_.onto_motions(reference.acceleration)};
  }
  else
  {
    answer.verdict = Verdict::held;
    good_.twist.fill(0.0);
    good_.acceleration.fill(0.0);
    status = good_limbs_.inverse(good_.pose, mode_, wanted.data());
    if (status != kOk && status != kJointLimit) return {Verdict::lost, status, "where to hold the platform", false};
  }
  Drives error;
  for (int k = 0; k < m; ++k) error[k] = wanted[k] - positions[k];
  Six asked = good_.acceleration;
  add_product(6, m, forward_.data(), error.data(), stiffness_, asked.data());
  for (int k = 0; k < 6; ++k) asked[k] += viscosity_ * (good_.twist[k] - measured_.twist[k]);

  Six friction_twist = good_.twist;  // at which the reference is to be reached: so friction holds no error
  add_product(6, m, forward_.data(), error.data(), kApproach * std::sqrt(stiffness_), friction_twist.data());
  status = efforts_with_friction(asked, friction_twist, efforts);
  if (status != kOk) return {Verdict::lost, status, "efforts", false};
  for (int k = 0; k < m; ++k) answer.saturated = answer.saturated || std::abs(efforts[k]) > largest_effort[k];
  if (answer.saturated)
  {
    // the whole correction is made smaller: cut at single drives, it would turn the platform
    Drives planned;
    status = efforts_with_friction(good_.acceleration, good_.twist, planned.data());
    if (status == kOk) towards(m, planned.data(), largest_effort.data(), efforts);
  }
  for (int k = 0; k < m; ++k) efforts[k] = std::clamp(efforts[k], -largest_effort[k], largest_effort[k]);
  return answer;
}

int ComputedTorque::platform_of(
  const double * positions, const double * velocities, const double * accelerations, Motion & motion)
{
  const int m = robot_.drives();
  Pose pose;
  int status = asked_limbs_.forward(positions, asked_near_, pose);
  std::array<double, 6 * kMostDrives> forward, before, after;
  if (status == kOk) status = robot_.jacobians(pose, mode_, asked_limbs_, forward.data(), before.data());
  if (status != kOk) return status;
  asked_near_ = motion.pose = pose;
  motion.twist.fill(0.0);
  motion.acceleration.fill(0.0);
  add_product(6, m, forward.data(), velocities, 1.0, motion.twist.data());

  // the drives accelerate by K a + dK/dt v, of which the second part is known
  status = asked_limbs_.jacobian(moved(pose, motion.twist, -kStep), mode_, before.data());
  if (status == kOk) status = asked_limbs_.jacobian(moved(pose, motion.twist, kStep), mode_, after.data());
  if (status != kOk) return status;
  Drives left;
  std::copy_n(accelerations, m, left.begin());
  add_product(m, 6, after.data(), motion.twist.data(), -0.5 / kStep, left.data());
  add_product(m, 6, before.data(), motion.twist.data(), 0.5 / kStep, left.data());
  add_product(6, m, forward.data(), left.data(), 1.0, motion.acceleration.data());
  return kOk;
}
}  // namespace pkm_ros2_control
