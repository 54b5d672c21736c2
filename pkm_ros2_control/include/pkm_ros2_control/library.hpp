// SPDX-License-Identifier: Apache-2.0
#ifndef PKM_ROS2_CONTROL__LIBRARY_HPP_
#define PKM_ROS2_CONTROL__LIBRARY_HPP_

#include <memory>
#include <string>

namespace pkm_ros2_control
{
// A shared library of exported C, and its table `pkm_KIND_table`, which begins with its layout.
struct Library
{
  // `name`: a path, or the name of a robot or linkage, whose library libpkm_KIND_NAME.so the loader finds.
  // Throws std::runtime_error with the reason.
  Library(const std::string & kind, const std::string & name, int layout);

  std::shared_ptr<void> handle;
  const void * table;
};
}  // namespace pkm_ros2_control

#endif  // PKM_ROS2_CONTROL__LIBRARY_HPP_
