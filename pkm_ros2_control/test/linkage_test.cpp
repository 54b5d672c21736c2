// SPDX-License-Identifier: Apache-2.0
// linkage_test LIBRARY: answers what is asked on standard input, one question a line after the other, of one linkage:
//   joints, or actuators; then positions, velocities and efforts of the actuators, or of the joints: status, the same
//   of the joints, or of the actuators, how often memory was allocated on the way
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>
#include <sstream>

#include "pkm_ros2_control/linkage.hpp"

namespace pkm = pkm_ros2_control;

static long allocations = 0;
void * operator new(std::size_t n)
{
  ++allocations;
  return std::malloc(n);
}
void operator delete(void * p) noexcept { std::free(p); }
void operator delete(void * p, std::size_t) noexcept { std::free(p); }

int main(int, char ** arguments)
{
  pkm::Linkage linkage(arguments[1]);
  pkm::Quantities given(linkage.size()), found(linkage.size());
  std::string line, what, word;
  while (std::getline(std::cin, line))
  {
    std::istringstream in(line);
    in >> what;
    for (auto * all : {&given.position, &given.velocity, &given.effort})
      for (double & x : *all)
      {
        in >> word;  // streams know no nan
        x = std::strtod(word.c_str(), nullptr);
      }
    const long before = allocations;
    const int status = what == "joints" ? linkage.to_joints(given, found) : linkage.to_actuators(given, found);
    const long after = allocations;
    std::printf("%d", status);
    for (const auto * all : {&found.position, &found.velocity, &found.effort})
      for (const double x : *all) std::printf(" %.17g", x);
    std::printf(" %ld\n", after - before);
  }
  return 0;
}
