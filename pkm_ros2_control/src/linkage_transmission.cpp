// SPDX-License-Identifier: Apache-2.0
// A linkage between joints and actuators for hardware components that load transmissions: the ratio is that of the pose.
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "hardware_interface/hardware_info.hpp"
#include "pkm_ros2_control/linkage.hpp"
#include "pluginlib/class_list_macros.hpp"
#include "rclcpp/logging.hpp"
#include "transmission_interface/exception.hpp"
#include "transmission_interface/transmission.hpp"
#include "transmission_interface/transmission_loader.hpp"

namespace pkm_ros2_control
{
using transmission_interface::ActuatorHandle;
using transmission_interface::JointHandle;

namespace
{
const std::array<const char *, 3> kKinds{
  {hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY, hardware_interface::HW_IF_EFFORT}};

const char * words_of(int status)
{
  switch (status)
  {
    case 3: return "the linkage folds there";
    case 5: return "a number is not finite";
    default: return "there is no way there from where the linkage was";
  }
}

// The numbers of the joints, or of the actuators, of one transmission, where the hardware component keeps them.
template <typename Handle>
class Side
{
public:
  Side(const char * what, const std::vector<std::string> & names, const std::vector<Handle> & handles)
  {
    for (const auto & one : handles)
      if (std::find(names.begin(), names.end(), one.get_prefix_name()) == names.end())
        throw transmission_interface::Exception(one.get_prefix_name() + " is no " + what + " of the linkage");
    for (std::size_t kind = 0; kind < kKinds.size(); ++kind)
    {
      auto & found = handles_[kind];
      for (const auto & name : names)
        for (const auto & one : handles)
          if (one && one.get_prefix_name() == name && one.get_interface_name() == kKinds[kind]) found.push_back(one);
      if (!found.empty() && found.size() != names.size())
        throw transmission_interface::Exception(std::string(what) + "s have not all a " + kKinds[kind]);
    }
  }

  bool has(std::size_t kind) const { return !handles_[kind].empty(); }

  void read(Quantities & numbers) const
  {
    std::size_t kind = 0;
    for (auto * all : {&numbers.position, &numbers.velocity, &numbers.effort})
    {
      std::fill(all->begin(), all->end(), std::numeric_limits<double>::quiet_NaN());
      for (std::size_t k = 0; k < handles_[kind].size(); ++k) (*all)[k] = handles_[kind][k].get_value();
      ++kind;
    }
  }

  void write(const Quantities & numbers)
  {
    std::size_t kind = 0;
    for (const auto * all : {&numbers.position, &numbers.velocity, &numbers.effort})
    {
      for (std::size_t k = 0; k < handles_[kind].size(); ++k) handles_[kind][k].set_value((*all)[k]);
      ++kind;
    }
  }

private:
  std::array<std::vector<Handle>, 3> handles_;
};
}  // namespace

class LinkageTransmission : public transmission_interface::Transmission
{
public:
  explicit LinkageTransmission(const std::string & library)
  : linkage_(library), joint_numbers_(linkage_.size()), actuator_numbers_(linkage_.size())
  {
  }

  const Linkage & linkage() const { return linkage_; }

  void configure(const std::vector<JointHandle> & joints, const std::vector<ActuatorHandle> & actuators) override
  {
    joints_ = std::make_unique<Side<JointHandle>>("joint", linkage_.joints(), joints);
    actuators_ = std::make_unique<Side<ActuatorHandle>>("actuator", linkage_.actuators(), actuators);
    if (!joints_->has(0) || !actuators_->has(0))
      throw transmission_interface::Exception("the ratio of a linkage is that of a pose: it needs positions");
  }

  void actuator_to_joint() override
  {
    actuators_->read(actuator_numbers_);
    tell(linkage_.to_joints(actuator_numbers_, joint_numbers_), "joints");
    joints_->write(joint_numbers_);
  }

  void joint_to_actuator() override
  {
    joints_->read(joint_numbers_);
    tell(linkage_.to_actuators(joint_numbers_, actuator_numbers_), "actuators");
    actuators_->write(actuator_numbers_);
  }

  std::size_t num_actuators() const override { return linkage_.size(); }
  std::size_t num_joints() const override { return linkage_.size(); }

private:
  // Once, for writing takes time.
  void tell(int status, const char * what)
  {
    int & before = what[0] == 'j' ? of_joints_ : of_actuators_;
    if (status != before && status != 0)
      RCLCPP_ERROR(rclcpp::get_logger("pkm_ros2_control"), "%s: %s; they get NaN", what, words_of(status));
    before = status;
  }

  Linkage linkage_;
  Quantities joint_numbers_, actuator_numbers_;
  std::unique_ptr<Side<JointHandle>> joints_;
  std::unique_ptr<Side<ActuatorHandle>> actuators_;
  int of_joints_ = 0, of_actuators_ = 0;
};

class LinkageTransmissionLoader : public transmission_interface::TransmissionLoader
{
public:
  std::shared_ptr<transmission_interface::Transmission> load(
    const hardware_interface::TransmissionInfo & info) override
  {
    try
    {
      const auto named = info.parameters.find("linkage");
      if (named == info.parameters.end()) throw std::runtime_error("a <param name=\"linkage\"> has to name its library");
      auto found = std::make_shared<LinkageTransmission>(named->second);
      check(info.joints, found->linkage().joints());
      check(info.actuators, found->linkage().actuators());
      return found;
    }
    catch (const std::exception & error)
    {
      RCLCPP_ERROR(
        rclcpp::get_logger("pkm_ros2_control"), "transmission '%s': %s", info.name.c_str(), error.what());
      return nullptr;
    }
  }

private:
  template <typename Infos>
  static void check(const Infos & infos, const std::vector<std::string> & names)
  {
    for (const auto & one : infos)
    {
      if (std::find(names.begin(), names.end(), one.name) == names.end())
        throw std::runtime_error("the linkage has no " + one.name);
      if (one.mechanical_reduction != 1.0 || one.offset != 0.0)
        throw std::runtime_error(one.name + ": reduction and offset are the linkage's own");
    }
    if (infos.size() != names.size()) throw std::runtime_error("the linkage has more joints or actuators");
  }
};
}  // namespace pkm_ros2_control

PLUGINLIB_EXPORT_CLASS(
  pkm_ros2_control::LinkageTransmissionLoader, transmission_interface::TransmissionLoader)
