# SPDX-License-Identifier: Apache-2.0
# pkm_robot(FOLDER): the library of a robot, of the C in a folder that `pkm export ROBOT --to c` wrote. For packages of
# robots too: find_package(pkm_ros2_control REQUIRED), enable C, and name the folder.
if(NOT PKM_TABLE_DIR)  # found, and not built here
  set(PKM_TABLE_DIR ${CMAKE_CURRENT_LIST_DIR}/../robot)
  set(PKM_INCLUDE_DIR ${CMAKE_CURRENT_LIST_DIR}/../../../include/pkm_ros2_control)
endif()

function(pkm_robot folder)
  get_filename_component(folder "${folder}" ABSOLUTE)
  file(GLOB tests "${folder}/*_test.c")
  get_filename_component(name "${tests}" NAME_WE)
  string(REGEX REPLACE "_test$" "" name "${name}")
  if(NOT name OR NOT EXISTS "${folder}/${name}.c")
    message(FATAL_ERROR "${folder} holds no robot that `pkm export ROBOT --to c` wrote")
  endif()
  string(TOUPPER "${name}" upper)
  set(target pkm_robot_${name})
  add_library(${target} SHARED "${folder}/${name}.c" "${PKM_TABLE_DIR}/table.c")
  set_target_properties(${target} PROPERTIES C_STANDARD 99)
  target_include_directories(${target} PRIVATE "${folder}" "${PKM_INCLUDE_DIR}")
  target_compile_definitions(${target} PRIVATE PKM_HEADER="${name}.h" PKM_NAME=${name} PKM_UPPER=${upper})
  target_compile_options(${target} PRIVATE -fno-math-errno -fno-trapping-math)
  target_link_libraries(${target} PRIVATE m)
  install(TARGETS ${target} LIBRARY DESTINATION lib)
endfunction()
