// SPDX-License-Identifier: Apache-2.0
// Computed torque as a chainable controller: what other controllers, or a topic, ask of drives or platform becomes efforts.
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller_interface/chainable_controller_interface.hpp"
#include "pkm_ros2_control/computed_torque.hpp"
#include "pluginlib/class_list_macros.hpp"
#include "realtime_tools/realtime_thread_safe_box.hpp"
#include "trajectory_msgs/msg/joint_trajectory_point.hpp"
#include "trajectory_msgs/msg/multi_dof_joint_trajectory_point.hpp"

namespace pkm_ros2_control
{
using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::interface_configuration_type;
using controller_interface::return_type;
using JointPoint = trajectory_msgs::msg::JointTrajectoryPoint;
using PlatformPoint = trajectory_msgs::msg::MultiDOFJointTrajectoryPoint;

namespace
{
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int kPlatformNumbers = 19;  // pose, twist, acceleration
const std::array<const char *, 3> kOfDrives{{"position", "velocity", "acceleration"}};
const std::array<const char *, kPlatformNumbers> kOfPlatform{
  {"position.x", "position.y", "position.z", "orientation.x", "orientation.y", "orientation.z", "orientation.w",
   "linear_velocity.x", "linear_velocity.y", "linear_velocity.z", "angular_velocity.x", "angular_velocity.y",
   "angular_velocity.z", "linear_acceleration.x", "linear_acceleration.y", "linear_acceleration.z",
   "angular_acceleration.x", "angular_acceleration.y", "angular_acceleration.z"}};

// A reference from a topic: numbers in the order of the reference interfaces, positions first.
struct Asked
{
  unsigned long count = 0;  // of messages
  std::array<double, 3 * kMostDrives + kPlatformNumbers> numbers{};
};

template <typename Vector>
void put(const Vector & v, double * to)
{
  to[0] = v.x, to[1] = v.y, to[2] = v.z;
}
}  // namespace

class ComputedTorqueController : public controller_interface::ChainableControllerInterface
{
public:
  CallbackReturn on_init() override
  {
    auto_declare<std::string>("robot", "");
    auto_declare<std::vector<std::string>>("joints", std::vector<std::string>{});
    auto_declare<int>("mode", 0);
    auto_declare<double>("natural_frequency", Gains{}.natural_frequency);
    auto_declare<double>("damping", Gains{}.damping);
    auto_declare<double>("largest_error", 0.1);
    auto_declare<std::string>("reference", "joints");
    auto_declare<double>("reference_timeout", 0.1);
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_configure(const rclcpp_lifecycle::State &) override
  {
    const auto node = get_node();
    try
    {
      Gains gains;
      gains.natural_frequency = node->get_parameter("natural_frequency").as_double();
      gains.damping = node->get_parameter("damping").as_double();
      gains.largest_error = node->get_parameter("largest_error").as_double();
      const auto what = node->get_parameter("reference").as_string();
      if (what != "joints" && what != "platform") throw std::runtime_error("reference must be joints or platform");
      of_platform_ = what == "platform";
      timeout_ = node->get_parameter("reference_timeout").as_double();
      Robot robot(node->get_parameter("robot").as_string());
      const auto given = node->get_parameter("joints").as_string_array();
      if (!given.empty()) robot.order_of(given);
      names_ = robot.names();
      control_.emplace(robot, gains, static_cast<int>(node->get_parameter("mode").as_int()));
      RCLCPP_INFO(node->get_logger(), "description %s, %d drives", robot.table().digest, robot.drives());
    }
    catch (const std::exception & error)
    {
      RCLCPP_ERROR(node->get_logger(), "%s", error.what());
      return CallbackReturn::ERROR;
    }
    m_ = names_.size();
    listen();
    return CallbackReturn::SUCCESS;
  }

  InterfaceConfiguration command_interface_configuration() const override { return of_joints({"effort"}); }

  InterfaceConfiguration state_interface_configuration() const override { return of_joints({"position", "velocity"}); }

  CallbackReturn on_activate(const rclcpp_lifecycle::State &) override
  {
    Pose home;
    std::copy_n(control_->robot().table().home, 7, home.begin());
    if (!read())
    {
      RCLCPP_ERROR(get_node()->get_logger(), "no state of the drives");
      return CallbackReturn::ERROR;
    }
    const int status = control_->start(positions_.data(), home);
    if (status != kOk)
    {
      RCLCPP_ERROR(get_node()->get_logger(), "the platform is not found: %s", words_of(status));
      return CallbackReturn::ERROR;
    }
    reference_ = control_->measured();
    for (auto & one : ordered_exported_reference_interfaces_) (void)one->set_value(kNaN);
    if (const auto asked = asked_.try_get()) heard_ = asked->count;  // what was asked before is of long ago
    silent_ = 0.0;
    verdict_ = Verdict::followed;
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) override
  {
    command(Drives{});
    return CallbackReturn::SUCCESS;
  }

protected:
  std::vector<hardware_interface::CommandInterface::SharedPtr> on_export_reference_interfaces_list() override
  {
    std::vector<hardware_interface::CommandInterface::SharedPtr> found;
    const std::string own = get_node()->get_name();
    const auto add = [&found](const std::string & prefix, const char * name) {
      found.push_back(std::make_shared<hardware_interface::CommandInterface>(prefix, name));
      (void)found.back()->set_value(kNaN);
    };
    if (of_platform_)
      for (const auto * name : kOfPlatform) add(own + "/platform", name);
    else
      for (const auto * name : kOfDrives)
        for (const auto & joint : names_) add(own + "/" + joint, name);
    return found;
  }

  return_type update_reference_from_subscribers(const rclcpp::Time &, const rclcpp::Duration & period) override
  {
    const auto asked = asked_.try_get();  // nothing: it is being written, and is there the next time
    const bool fresh = asked && asked->count != heard_;
    const std::size_t rests = of_platform_ ? 7 : m_;  // first of the velocities
    auto & references = ordered_exported_reference_interfaces_;
    silent_ = fresh ? 0.0 : silent_ + period.seconds();
    if (fresh)
    {
      heard_ = asked->count;
      for (std::size_t k = 0; k < references.size(); ++k) (void)references[k]->set_value(asked->numbers[k]);
    }
    else if (silent_ > timeout_)
    {
      for (std::size_t k = rests; k < references.size(); ++k) (void)references[k]->set_value(0.0);
    }
    return return_type::OK;
  }

  return_type update_and_write_commands(const rclcpp::Time &, const rclcpp::Duration &) override
  {
    Drives efforts{};
    if (!read())
    {
      command(efforts);
      return return_type::ERROR;
    }
    ask();
    const auto answer = control_->update(reference_, positions_.data(), velocities_.data(), efforts.data());
    if (answer.verdict != verdict_)
    {
      verdict_ = answer.verdict;  // said once, for writing takes time
      if (verdict_ != Verdict::followed)
        RCLCPP_WARN(
          get_node()->get_logger(), "%s: %s; %s", answer.about, words_of(answer.status),
          verdict_ == Verdict::held ? "the platform is held" : "the drives get no efforts");
    }
    const bool lost = answer.verdict == Verdict::lost;
    command(lost ? Drives{} : efforts);
    return lost ? return_type::ERROR : return_type::OK;
  }

private:
  InterfaceConfiguration of_joints(std::initializer_list<const char *> what) const
  {
    InterfaceConfiguration found{interface_configuration_type::INDIVIDUAL, {}};
    for (const auto * one : what)
      for (const auto & name : names_) found.names.push_back(name + "/" + one);
    return found;
  }

  // Subscribe to what is asked where no controller is before this one.
  void listen()
  {
    const auto keep = [this](auto fill) {
      Asked asked;
      asked.count = ++messages_;
      fill(asked.numbers.data());
      asked_.set(asked);
    };
    if (of_platform_)
    {
      platform_points_ = get_node()->create_subscription<PlatformPoint>(
        "~/reference", rclcpp::SystemDefaultsQoS(), [this, keep](const PlatformPoint & point) {
          if (point.transforms.size() != 1) return complain("one transform");
          keep([&point](double * to) {
            const auto & turn = point.transforms[0].rotation;
            put(point.transforms[0].translation, to);
            put(turn, to + 3);
            to[6] = turn.w;
            if (point.velocities.size() == 1)
              put(point.velocities[0].linear, to + 7), put(point.velocities[0].angular, to + 10);
            if (point.accelerations.size() == 1)
              put(point.accelerations[0].linear, to + 13), put(point.accelerations[0].angular, to + 16);
          });
        });
      return;
    }
    joint_points_ = get_node()->create_subscription<JointPoint>(
      "~/reference", rclcpp::SystemDefaultsQoS(), [this, keep](const JointPoint & point) {
        if (point.positions.size() != m_) return complain("a position for each drive");
        keep([this, &point](double * to) {
          std::copy_n(point.positions.begin(), m_, to);
          if (point.velocities.size() == m_) std::copy_n(point.velocities.begin(), m_, to + m_);
          if (point.accelerations.size() == m_) std::copy_n(point.accelerations.begin(), m_, to + 2 * m_);
        });
      });
  }

  void complain(const char * wanted) { RCLCPP_WARN(get_node()->get_logger(), "a reference needs %s", wanted); }

  bool read()
  {
    for (std::size_t k = 0; k < 2 * m_; ++k)
    {
      const auto value = state_interfaces_[k].get_optional();
      if (!value || !std::isfinite(*value)) return false;
      (k < m_ ? positions_[k] : velocities_[k - m_]) = *value;
    }
    return true;
  }

  // Make the reference of what the reference interfaces hold; where a position is NaN, nothing is asked, and it stays.
  void ask()
  {
    std::array<double, 3 * kMostDrives + kPlatformNumbers> numbers;
    const std::size_t n = ordered_exported_reference_interfaces_.size(), rests = of_platform_ ? 7 : m_;
    for (std::size_t k = 0; k < n; ++k)
    {
      numbers[k] = ordered_exported_reference_interfaces_[k]->get_optional().value_or(kNaN);
      if (k < rests && std::isnan(numbers[k])) return;
      if (std::isnan(numbers[k])) numbers[k] = 0.0;
    }
    if (of_platform_)
    {
      std::copy_n(&numbers[0], 7, reference_.pose.begin());
      std::copy_n(&numbers[7], 6, reference_.twist.begin());
      std::copy_n(&numbers[13], 6, reference_.acceleration.begin());
    }
    else if (control_->platform_of(&numbers[0], &numbers[m_], &numbers[2 * m_], reference_) != kOk)
    {
      reference_.pose.fill(kNaN);  // which is refused
    }
  }

  void command(const Drives & efforts)
  {
    for (std::size_t k = 0; k < command_interfaces_.size(); ++k) (void)command_interfaces_[k].set_value(efforts[k]);
  }

  std::optional<ComputedTorque> control_;
  std::vector<std::string> names_;
  std::size_t m_ = 0;
  bool of_platform_ = false;
  Drives positions_{}, velocities_{};
  Motion reference_;
  Verdict verdict_ = Verdict::followed;
  double timeout_ = 0.1, silent_ = 0.0;
  unsigned long messages_ = 0, heard_ = 0;
  realtime_tools::RealtimeThreadSafeBox<Asked> asked_;
  rclcpp::Subscription<JointPoint>::SharedPtr joint_points_;
  rclcpp::Subscription<PlatformPoint>::SharedPtr platform_points_;
};
}  // namespace pkm_ros2_control

PLUGINLIB_EXPORT_CLASS(
  pkm_ros2_control::ComputedTorqueController, controller_interface::ChainableControllerInterface)
