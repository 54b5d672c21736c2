// SPDX-License-Identifier: Apache-2.0
// A simulated machine for the controller manager: the robot moves under efforts as its model says.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hardware_interface/system_interface.hpp"
#include "pkm_ros2_control/simulated_robot.hpp"
#include "pluginlib/class_list_macros.hpp"
#include "rclcpp/rclcpp.hpp"

namespace pkm_ros2_control
{
using hardware_interface::CallbackReturn;
using hardware_interface::return_type;

// Brakes hold it while no controller commands efforts. Of the description's <hardware>: `robot`, the name or library;
// `periods_file`, where the manager's periods [s] go when it is deactivated, up to `most_periods`.
class SimulatedSystem : public hardware_interface::SystemInterface
{
public:
  CallbackReturn on_init(const hardware_interface::HardwareComponentInterfaceParams & params) override
  {
    if (SystemInterface::on_init(params) != CallbackReturn::SUCCESS) return CallbackReturn::ERROR;
    try
    {
      plant_.emplace(Robot(parameter("robot", "")), 0);
      std::vector<std::string> joints;
      for (const auto & joint : info_.joints) joints.push_back(joint.name);
      plant_->robot().order_of(joints);
      names_ = plant_->robot().names();
      for (const auto & name : names_)
        position_.push_back(name + "/position"), velocity_.push_back(name + "/velocity"),
          effort_.push_back(name + "/effort");
      file_ = parameter("periods_file", "");
      if (!file_.empty()) periods_.reserve(std::stoul(parameter("most_periods", "1000000")));
    }
    catch (const std::exception & error)
    {
      RCLCPP_ERROR(get_logger(), "%s", error.what());
      return CallbackReturn::ERROR;
    }
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_activate(const rclcpp_lifecycle::State &) override
  {
    for (const auto & name : effort_) set_command(name, 0.0);
    states();
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) override
  {
    std::ofstream file(file_);
    for (const double period : periods_) file << period << '\n';
    periods_.clear();
    return CallbackReturn::SUCCESS;
  }

  return_type perform_command_mode_switch(
    const std::vector<std::string> & start, const std::vector<std::string> & stop) override
  {
    const auto ours = [this](const std::vector<std::string> & all) {
      return std::any_of(all.begin(), all.end(), [this](const auto & one) { return one == effort_[0]; });
    };
    if (ours(stop)) driven_ = false;
    if (ours(start)) driven_ = true;
    return return_type::OK;
  }

  return_type read(const rclcpp::Time & time, const rclcpp::Duration &) override
  {
    if (periods_.size() < periods_.capacity() && last_ > 0) periods_.push_back(1e-9 * (time.nanoseconds() - last_));
    last_ = time.nanoseconds();
    states();
    return return_type::OK;
  }

  return_type write(const rclcpp::Time &, const rclcpp::Duration & period) override
  {
    if (!driven_) return return_type::OK;
    Drives efforts{};
    for (std::size_t k = 0; k < names_.size(); ++k) efforts[k] = get_command(effort_[k]);
    // a late period is one of the computer, not of the machine; beyond some, the simulated one stands still
    const int status = plant_->step(efforts.data(), std::clamp(period.seconds(), 0.0, kLongest));
    if (status == kOk) return return_type::OK;
    RCLCPP_ERROR(get_logger(), "%s", words_of(status));
    return return_type::ERROR;
  }

private:
  static constexpr double kLongest = 0.02;  // s

  std::string parameter(const std::string & name, const std::string & otherwise) const
  {
    const auto at = info_.hardware_parameters.find(name);
    return at == info_.hardware_parameters.end() ? otherwise : at->second;
  }

  void states()
  {
    for (std::size_t k = 0; k < names_.size(); ++k)
    {
      set_state(position_[k], plant_->positions[k]);
      set_state(velocity_[k], plant_->velocities[k]);
    }
  }

  std::optional<SimulatedRobot> plant_;
  std::vector<std::string> names_, position_, velocity_, effort_;
  std::vector<double> periods_;
  std::string file_;
  bool driven_ = false;
  int64_t last_ = 0;
};
}  // namespace pkm_ros2_control

PLUGINLIB_EXPORT_CLASS(pkm_ros2_control::SimulatedSystem, hardware_interface::SystemInterface)
