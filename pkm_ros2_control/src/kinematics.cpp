// SPDX-License-Identifier: Apache-2.0
// A robot's kinematics for controllers that ask by kinematics_interface, such as admittance_controller.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>

#include "kinematics_interface/kinematics_interface.hpp"
#include "pkm_ros2_control/matrices.hpp"
#include "pkm_ros2_control/robot.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace pkm_ros2_control
{
class Kinematics : public kinematics_interface::KinematicsInterface
{
public:
  using Parameters = rclcpp::node_interfaces::NodeParametersInterface;
  using Vector6 = Eigen::Matrix<double, 6, 1>;
  using Forward = Eigen::Matrix<double, 6, Eigen::Dynamic>;
  using Inverse = Eigen::Matrix<double, Eigen::Dynamic, 6>;

  // Of the description nothing is used: the library was made from one, and says by its digest from which.
  bool initialize(
    const std::string &, std::shared_ptr<Parameters> parameters, const std::string & space) override
  {
    const std::string prefix = space.empty() ? "" : space + ".";
    const auto text = [&](const char * name) {
      if (!parameters->has_parameter(prefix + name))
        parameters->declare_parameter(prefix + name, rclcpp::ParameterValue(std::string()));
      return parameters->get_parameter(prefix + name).as_string();
    };
    try
    {
      base_ = text("base");
      tip_ = text("tip");
      if (base_.empty() || tip_.empty()) throw std::runtime_error(prefix + "base and " + prefix + "tip name links");
      robot_.emplace(text("robot"));
      limbs_.emplace(*robot_);
      std::copy_n(robot_->table().home, 7, pose_.begin());
      const bool named = parameters->has_parameter("joints");  // the positions that will come
      if (named && parameters->get_parameter("joints").as_string_array() != robot_->names())
        throw std::runtime_error("joints are not the robot's drives, in their order");
    }
    catch (const std::exception & error)
    {
      RCLCPP_ERROR(rclcpp::get_logger("pkm_ros2_control"), "%s", error.what());
      robot_.reset();
    }
    return robot_.has_value();
  }

  bool convert_cartesian_deltas_to_joint_deltas(
    const Eigen::VectorXd & positions, const Vector6 & delta, const std::string & link, Eigen::VectorXd & out) override
  {
    if (!at(positions, link)) return false;
    out.setZero(robot_->drives());
    if (link == tip_) add_product(robot_->drives(), 6, inverse_.data(), delta.data(), 1.0, out.data());
    return link == tip_ || delta.isZero();
  }

  bool convert_joint_deltas_to_cartesian_deltas(
    const Eigen::VectorXd & positions, const Eigen::VectorXd & delta, const std::string & link, Vector6 & out) override
  {
    if (!at(positions, link) || delta.size() != robot_->drives()) return false;
    out.setZero();
    if (link == tip_) add_product(6, robot_->drives(), forward_.data(), delta.data(), 1.0, out.data());
    return true;
  }

  bool calculate_link_transform(
    const Eigen::VectorXd & positions, const std::string & link, Eigen::Isometry3d & transform) override
  {
    if (!at(positions, link)) return false;
    transform.setIdentity();
    if (link != tip_) return true;
    transform.translation() = Eigen::Map<Eigen::Vector3d>(pose_.data());
    transform.linear() = Eigen::Quaterniond(pose_[6], pose_[3], pose_[4], pose_[5]).toRotationMatrix();
    return true;
  }

  bool calculate_jacobian(const Eigen::VectorXd & positions, const std::string & link, Forward & jacobian) override
  {
    if (!at(positions, link)) return false;
    const int m = robot_->drives();
    jacobian.setZero(6, m);
    for (int k = 0; k < 6 * m && link == tip_; ++k) jacobian(k / m, k % m) = forward_[k];
    return true;
  }

  bool calculate_jacobian_inverse(
    const Eigen::VectorXd & positions, const std::string & link, Inverse & jacobian) override
  {
    if (!at(positions, link) || link != tip_) return false;
    jacobian.resize(robot_->drives(), 6);
    for (int k = 0; k < 6 * robot_->drives(); ++k) jacobian(k / 6, k % 6) = inverse_[k];
    return true;
  }

private:
  // Whether the link is known and the platform is found, which continues the pose of the call before.
  bool at(const Eigen::VectorXd & positions, const std::string & link)
  {
    if (!robot_ || positions.size() != robot_->drives() || (link != base_ && link != tip_)) return false;
    if (link == base_) return true;
    Pose pose;
    if (limbs_->forward(positions.data(), pose_, pose) != kOk) return false;
    if (robot_->jacobians(pose, 0, *limbs_, forward_.data(), inverse_.data()) != kOk) return false;
    pose_ = pose;
    return true;
  }

  std::optional<Robot> robot_;
  std::optional<Limbs> limbs_;  // taken along from call to call
  std::string base_, tip_;
  Pose pose_{};
  std::array<double, 6 * kMostDrives> forward_{}, inverse_{};
};
}  // namespace pkm_ros2_control

PLUGINLIB_EXPORT_CLASS(pkm_ros2_control::Kinematics, kinematics_interface::KinematicsInterface)
