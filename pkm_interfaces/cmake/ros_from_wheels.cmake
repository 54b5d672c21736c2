# SPDX-License-Identifier: Apache-2.0
# Lets this ament_cmake package be built against the ROS 2 packages that pip installs from PyPI.

find_package(Python3 REQUIRED COMPONENTS Interpreter Development.Module NumPy)

# pip puts the ROS share/, lib/ and include/ below one prefix: the virtual environment, or, in an isolated build, the
# temporary environment. It is the first directory above the ament_package module that holds the ament index.
set(_locate_prefix [[
import ament_package, pathlib
module = pathlib.Path(ament_package.__file__).resolve()
print(next(d for d in module.parents if (d / "share" / "ament_cmake_core").is_dir()).as_posix())
]])
execute_process(COMMAND ${Python3_EXECUTABLE} -c "${_locate_prefix}"
  OUTPUT_VARIABLE ROS_WHEELS_PREFIX OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _failed)
if(_failed)
  message(FATAL_ERROR "${Python3_EXECUTABLE} finds no ROS 2 wheels (ros-ament-cmake and its companions)")
endif()

list(PREPEND CMAKE_PREFIX_PATH ${ROS_WHEELS_PREFIX})
set(ENV{AMENT_PREFIX_PATH} ${ROS_WHEELS_PREFIX})
# ament and some generators look for this older spelling; all must run in the same interpreter
set(PYTHON_EXECUTABLE ${Python3_EXECUTABLE} CACHE FILEPATH "Python interpreter" FORCE)
