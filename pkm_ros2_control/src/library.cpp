// SPDX-License-Identifier: Apache-2.0
#include "pkm_ros2_control/library.hpp"

#include <dlfcn.h>

#include <stdexcept>

namespace pkm_ros2_control
{
Library::Library(const std::string & kind, const std::string & name, int layout)
{
  const bool path = name.find('/') != std::string::npos;
  const std::string file = path ? name : "libpkm_" + kind + "_" + name + ".so", symbol = "pkm_" + kind + "_table";
  void * opened = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) throw std::runtime_error("no library of the " + kind + ": " + dlerror());
  handle = std::shared_ptr<void>(opened, dlclose);
  table = dlsym(opened, symbol.c_str());
  if (table == nullptr) throw std::runtime_error(file + " holds no " + symbol);
  if (*static_cast<const int *>(table) != layout) throw std::runtime_error(file + " was built for another version");
}
}  // namespace pkm_ros2_control
