// SPDX-License-Identifier: Apache-2.0
// core_test LIBRARY: answers what is asked on standard input, one question a line, in numbers that lose nothing.
//   law OMEGA ZETA, then pose 7, twist 6, acceleration 6 of the reference, drives' positions and velocities:
//       verdict, status, the platform's pose 7 and twist 6, efforts, how often memory was allocated on the way
//   drives positions, velocities, accelerations: status, pose 7, twist 6, acceleration 6 of the platform
//   track OMEGA RATE SECONDS RADIUS: a circle that begins and ends at rest, on the simulated robot;
//       worst verdict, largest error of a drive, largest and last distance of the platform from the reference
//   race SHARE READINGS: verdict and status at rest, after readings in which the drives move at a share of their limits
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>
#include <sstream>
#include <string>

#include "pkm_ros2_control/computed_torque.hpp"
#include "pkm_ros2_control/simulated_robot.hpp"

namespace pkm = pkm_ros2_control;

static long allocations = 0;
void * operator new(std::size_t n)
{
  ++allocations;
  return std::malloc(n);
}
void operator delete(void * p) noexcept { std::free(p); }
void operator delete(void * p, std::size_t) noexcept { std::free(p); }

namespace
{
template <typename Numbers>
void read(std::istream & in, Numbers & numbers, int n)
{
  std::string word;  // streams know no nan
  for (int k = 0; k < n && in >> word; ++k) numbers[k] = std::strtod(word.c_str(), nullptr);
}

template <typename Numbers>
void print(const Numbers & numbers, int n)
{
  for (int k = 0; k < n; ++k) std::printf(" %.17g", numbers[k]);
}

void law(const pkm::Robot & robot, std::istream & in)
{
  const int m = robot.drives();
  pkm::Gains gains;
  in >> gains.natural_frequency >> gains.damping;
  pkm::Motion reference;
  pkm::Drives q, v, efforts;
  read(in, reference.pose, 7), read(in, reference.twist, 6), read(in, reference.acceleration, 6);
  read(in, q, m), read(in, v, m);
  pkm::ComputedTorque control(robot, gains, 0);
  pkm::Pose home;
  std::copy_n(robot.table().home, 7, home.begin());
  control.start(q.data(), home);
  const long before = allocations;
  const auto answer = control.update(reference, q.data(), v.data(), efforts.data());
  const long after = allocations;
  std::printf("%d %d", static_cast<int>(answer.verdict), answer.status);
  print(control.measured().pose, 7), print(control.measured().twist, 6), print(efforts, m);
  std::printf(" %ld\n", after - before);
}

void drives(const pkm::Robot & robot, std::istream & in)
{
  const int m = robot.drives();
  pkm::Drives q, v, a;
  read(in, q, m), read(in, v, m), read(in, a, m);
  pkm::ComputedTorque control(robot, {}, 0);
  pkm::Motion motion;
  pkm::Pose home;
  std::copy_n(robot.table().home, 7, home.begin());
  control.start(q.data(), home);
  std::printf("%d", control.platform_of(q.data(), v.data(), a.data(), motion));
  print(motion.pose, 7), print(motion.twist, 6), print(motion.acceleration, 6);
  std::printf("\n");
}

void race(const pkm::Robot & robot, std::istream & in)
{
  double share;
  int readings;
  in >> share >> readings;
  pkm::SimulatedRobot plant(robot, 0);
  pkm::ComputedTorque control(robot, {}, 0);
  const pkm::Motion rest = plant.platform();
  control.start(plant.positions.data(), rest.pose);
  pkm::Drives v{}, efforts;
  for (int k = 0; k < robot.drives(); ++k) v[k] = share * control.largest_rate[k];
  for (int i = 0; i < readings; ++i) control.update(rest, plant.positions.data(), v.data(), efforts.data());
  const auto answer = control.update(rest, plant.positions.data(), plant.velocities.data(), efforts.data());
  std::printf("%d %d\n", static_cast<int>(answer.verdict), answer.status);
}

void track(const pkm::Robot & robot, std::istream & in)
{
  pkm::Gains gains;
  double rate, seconds, radius;
  in >> gains.natural_frequency >> rate >> seconds >> radius;
  pkm::SimulatedRobot plant(robot, 0);
  pkm::ComputedTorque control(robot, gains, 0);
  const pkm::Pose home = plant.platform().pose;
  control.start(plant.positions.data(), home);
  int worst = 0;
  double far = 0.0, off = 0.0, last = 0.0;
  pkm::Drives efforts, wanted;
  for (int i = 0; i < rate * seconds; ++i)
  {
    // the angle along the circle goes from 0 to 2 pi as s - sin(s) does, s even in time
    const double w = 2.0 * std::acos(-1.0) / seconds, s = w * i / rate;
    const double angle = s - std::sin(s), speed = w * (1.0 - std::cos(s)), quicker = w * w * std::sin(s);
    const double c = std::cos(angle), n = std::sin(angle);
    pkm::Motion reference;
    reference.pose = home;
    reference.pose[0] += radius * (c - 1.0), reference.pose[1] += radius * n;
    reference.twist = {{-radius * speed * n, radius * speed * c, 0, 0, 0, 0}};
    reference.acceleration = {
      {-radius * (quicker * n + speed * speed * c), radius * (quicker * c - speed * speed * n), 0, 0, 0, 0}};
    robot.table().inverse(reference.pose.data(), 0, wanted.data(), nullptr);
    last = std::hypot(
      plant.platform().pose[0] - reference.pose[0], plant.platform().pose[1] - reference.pose[1],
      plant.platform().pose[2] - reference.pose[2]);
    off = std::max(off, last);
    for (int k = 0; k < robot.drives(); ++k) far = std::max(far, std::fabs(wanted[k] - plant.positions[k]));
    const auto answer = control.update(reference, plant.positions.data(), plant.velocities.data(), efforts.data());
    worst = std::max(worst, static_cast<int>(answer.verdict));
    if (plant.step(efforts.data(), 1.0 / rate) != pkm::kOk) worst = 9;
  }
  std::printf("%d %.3e %.3e %.3e\n", worst, far, off, last);
}
}  // namespace

int main(int, char ** arguments)
{
  const pkm::Robot robot(arguments[1]);
  std::string line, what;
  while (std::getline(std::cin, line))
  {
    std::istringstream in(line);
    in >> what;
    if (what == "law") law(robot, in);
    if (what == "drives") drives(robot, in);
    if (what == "race") race(robot, in);
    if (what == "track") track(robot, in);
  }
  return 0;
}
