// SPDX-License-Identifier: Apache-2.0
// Ideal motors behind the transmissions of a description: what is asked of joints is asked of motors, which do it at
// once, and what they do is read at the joints.
#include <cmath>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "hardware_interface/system_interface.hpp"
#include "pluginlib/class_list_macros.hpp"
#include "pluginlib/class_loader.hpp"
#include "rclcpp/rclcpp.hpp"
#include "transmission_interface/transmission_loader.hpp"

namespace pkm_ros2_control
{
using hardware_interface::CallbackReturn;
using hardware_interface::return_type;

class SimulatedMotors : public hardware_interface::SystemInterface
{
public:
  CallbackReturn on_init(const hardware_interface::HardwareComponentInterfaceParams & params) override
  {
    if (SystemInterface::on_init(params) != CallbackReturn::SUCCESS) return CallbackReturn::ERROR;
    try
    {
      for (const auto & info : info_.transmissions) add(info);
    }
    catch (const std::exception & error)
    {
      RCLCPP_ERROR(get_logger(), "%s", error.what());
      return CallbackReturn::ERROR;
    }
    return CallbackReturn::SUCCESS;
  }

  return_type read(const rclcpp::Time &, const rclcpp::Duration &) override
  {
    for (const auto & one : transmissions_) one->actuator_to_joint();
    for (const auto & one : numbers_)
      if (has_state(one.name)) set_state(one.name, one.value);
    return return_type::OK;
  }

  return_type write(const rclcpp::Time &, const rclcpp::Duration &) override
  {
    for (auto & one : numbers_)
    {
      if (!one.of_joint || !has_command(one.name)) continue;
      const double asked = get_command(one.name);
      if (std::isfinite(asked)) one.value = asked;
    }
    for (const auto & one : transmissions_) one->joint_to_actuator();
    return return_type::OK;
  }

private:
  struct Number
  {
    std::string name;  // of joint or motor, and what
    bool of_joint;
    double value;
  };

  template <typename Handle>
  std::vector<Handle> handles(const std::vector<std::string> & names, bool of_joints)
  {
    std::vector<Handle> found;
    for (const auto & name : names)
      for (const auto * what : {"position", "velocity", "effort"})
      {
        numbers_.push_back({name + "/" + what, of_joints, 0.0});
        found.emplace_back(name, what, &numbers_.back().value);
      }
    return found;
  }

  void add(const hardware_interface::TransmissionInfo & info)
  {
    loaders_.push_back(classes_.createSharedInstance(info.type));
    auto transmission = loaders_.back()->load(info);
    if (!transmission) throw std::runtime_error("no transmission " + info.name);
    std::vector<std::string> joints, motors;
    for (const auto & one : info.joints) joints.push_back(one.name);
    for (const auto & one : info.actuators) motors.push_back(one.name);
    transmission->configure(handles<transmission_interface::JointHandle>(joints, true),
      handles<transmission_interface::ActuatorHandle>(motors, false));
    transmission->joint_to_actuator();
    transmissions_.push_back(transmission);
  }

  pluginlib::ClassLoader<transmission_interface::TransmissionLoader> classes_{
    "transmission_interface", "transmission_interface::TransmissionLoader"};
  std::vector<std::shared_ptr<transmission_interface::TransmissionLoader>> loaders_;
  std::vector<std::shared_ptr<transmission_interface::Transmission>> transmissions_;
  std::list<Number> numbers_;  // whose addresses the transmissions have
};
}  // namespace pkm_ros2_control

PLUGINLIB_EXPORT_CLASS(pkm_ros2_control::SimulatedMotors, hardware_interface::SystemInterface)
