// SPDX-License-Identifier: Apache-2.0
// A robot's kinematics for MoveIt. A planning group has the drives, so that trajectories have no other joint; one that
// has passive joints as well gets positions of these, too.
#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <moveit/kinematics_base/kinematics_base.hpp>
#include <moveit/robot_model/robot_model.hpp>

#include "pkm_ros2_control/robot.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace pkm_ros2_control
{
using moveit_msgs::msg::MoveItErrorCodes;
using Message = geometry_msgs::msg::Pose;
using Numbers = std::vector<double>;
using Names = std::vector<std::string>;
using Options = kinematics::KinematicsQueryOptions;

namespace
{
Pose read(const Message & m)
{
  const auto & p = m.position;
  const auto & q = m.orientation;
  return {{p.x, p.y, p.z, q.x, q.y, q.z, q.w}};
}

Message written(const Eigen::Isometry3d & at)
{
  const Eigen::Quaterniond q(at.linear());
  Message m;
  m.position.x = at.translation().x(), m.position.y = at.translation().y(), m.position.z = at.translation().z();
  m.orientation.x = q.x(), m.orientation.y = q.y(), m.orientation.z = q.z(), m.orientation.w = q.w();
  return m;
}
}  // namespace

class MoveItKinematics : public kinematics::KinematicsBase
{
public:
  // Parameters are robot_description_kinematics.GROUP.robot, .base, .tip and .mode; of `base_frame` and `tips` nothing
  // is used, for a group of drives ends in no platform.
  bool initialize(
    const rclcpp::Node::SharedPtr & node, const moveit::core::RobotModel & model, const std::string & group,
    const std::string &, const Names &, double discretization) override
  {
    const std::string prefix = "robot_description_kinematics." + group + ".";
    const auto parameter = [&](const char * name, auto otherwise) {
      if (!node->has_parameter(prefix + name)) node->declare_parameter(prefix + name, otherwise);
      return node->get_parameter(prefix + name).get_value<decltype(otherwise)>();
    };
    try
    {
      node_ = node;
      robot_.emplace(parameter("robot", std::string()));
      mode_ = static_cast<int>(parameter("mode", 0));
      if (mode_ < 0 || mode_ >= robot_->table().n_modes) throw std::runtime_error("the robot has no such working mode");
      const auto base = parameter("base", std::string("base_link")), tip = parameter("tip", std::string("platform"));
      for (const auto & link : {base, tip})
        if (!model.hasLinkModel(link)) throw std::runtime_error("the description has no link '" + link + "'");
      storeValues(model, group, base, {tip}, discretization);
      choose(*model.getJointModelGroup(group));
    }
    catch (const std::exception & error)
    {
      RCLCPP_ERROR(rclcpp::get_logger("pkm_ros2_control"), "group '%s': %s", group.c_str(), error.what());
      robot_.reset();
    }
    return robot_.has_value();
  }

  const Names & getJointNames() const override { return names_; }
  const Names & getLinkNames() const override { return tip_frames_; }
  bool supportsGroup(const moveit::core::JointModelGroup * group, std::string * why = nullptr) const override
  {
    const bool ours = robot_ && group->getName() == group_name_;
    if (!ours && why != nullptr) *why = "it is not the group that this solver was made for";
    return ours;
  }

  bool getPositionIK(
    const Message & pose, const Numbers & seed, Numbers & solution, MoveItErrorCodes & code,
    const Options &) const override
  {
    return solve(pose, seed, {}, solution, nullptr, code);
  }

  // There is one configuration in a working mode, and nothing to search: the time does not count.
  bool searchPositionIK(
    const Message & pose, const Numbers & seed, double, Numbers & solution, MoveItErrorCodes & code,
    const Options &) const override
  {
    return solve(pose, seed, {}, solution, nullptr, code);
  }

  bool searchPositionIK(
    const Message & pose, const Numbers & seed, double, const Numbers & limits, Numbers & solution,
    MoveItErrorCodes & code, const Options &) const override
  {
    return solve(pose, seed, limits, solution, nullptr, code);
  }

  bool searchPositionIK(
    const Message & pose, const Numbers & seed, double, Numbers & solution, const IKCallbackFn & callback,
    MoveItErrorCodes & code, const Options &) const override
  {
    return solve(pose, seed, {}, solution, callback, code);
  }

  bool searchPositionIK(
    const Message & pose, const Numbers & seed, double, const Numbers & limits, Numbers & solution,
    const IKCallbackFn & callback, MoveItErrorCodes & code, const Options &) const override
  {
    return solve(pose, seed, limits, solution, callback, code);
  }

  using KinematicsBase::getPositionIK;
  using KinematicsBase::searchPositionIK;

  // Poses in the base frame. The drives alone count; the platform is where they lead it from home.
  bool getPositionFK(const Names & links, const Numbers & positions, std::vector<Message> & poses) const override
  {
    if (!robot_ || positions.size() != names_.size()) return false;
    Drives actuated;
    for (int k = 0; k < robot_->drives(); ++k) actuated[k] = positions[drive_[k]];
    Pose pose;
    if (robot_->table().forward(actuated.data(), robot_->table().home, pose.data()) != kOk) return false;
    Numbers joints(robot_->table().n_joints);
    const int status = robot_->table().inverse(pose.data(), mode_, actuated.data(), joints.data());
    if (status != kOk && status != kJointLimit) return false;
    poses.resize(links.size());
    for (std::size_t k = 0; k < links.size(); ++k)
      if (!place(links[k], joints, poses[k])) return false;
    return true;
  }

private:
  // The joints of the group, which must be the robot's, all drives among them.
  void choose(const moveit::core::JointModelGroup & group)
  {
    known_.assign(robot_->table().joints, robot_->table().joints + robot_->table().n_joints);
    names_ = group.getActiveJointModelNames();
    for (const auto & name : names_)
    {
      const auto at = std::find(known_.begin(), known_.end(), name);
      if (at == known_.end()) throw std::runtime_error("the robot has no joint '" + name + "'");
      column_.push_back(at - known_.begin());
      const auto * joint = dynamic_cast<const moveit::core::RevoluteJointModel *>(group.getJointModel(name));
      turns_.push_back(joint != nullptr && joint->isContinuous());
    }
    for (const auto & name : robot_->names())
    {
      const auto at = std::find(names_.begin(), names_.end(), name);
      if (at == names_.end()) throw std::runtime_error("drive '" + name + "' is not in the group");
      drive_.push_back(at - names_.begin());
    }
  }

  bool solve(
    const Message & message, const Numbers & seed, const Numbers & limits, Numbers & solution,
    const IKCallbackFn & callback, MoveItErrorCodes & code) const
  {
    code.val = MoveItErrorCodes::NO_IK_SOLUTION;
    if (!robot_ || seed.size() != names_.size() || !(limits.empty() || limits.size() == names_.size())) return false;
    Drives actuated;
    Numbers joints(robot_->table().n_joints), found(names_.size());
    if (robot_->table().inverse(read(message).data(), mode_, actuated.data(), joints.data()) != kOk) return false;
    for (std::size_t k = 0; k < found.size(); ++k)
    {
      found[k] = joints[column_[k]];
      if (turns_[k]) found[k] = seed[k] + std::remainder(found[k] - seed[k], 2.0 * M_PI);
      if (!limits.empty() && !(std::fabs(found[k] - seed[k]) <= limits[k])) return false;
    }
    solution = found;
    code.val = MoveItErrorCodes::SUCCESS;
    if (callback) callback(message, solution, code);
    return code.val == MoveItErrorCodes::SUCCESS;
  }

  // The pose of a link from all joints of the robot (by `known_`).
  bool place(const std::string & name, const Numbers & joints, Message & message) const
  {
    if (!robot_model_->hasLinkModel(name)) return false;
    Eigen::Isometry3d at = Eigen::Isometry3d::Identity(), moved;
    const auto * link = robot_model_->getLinkModel(name);
    for (; link != nullptr && link->getName() != base_frame_; link = link->getParentLinkModel())
    {
      const auto * joint = link->getParentJointModel();
      double position = 0.0;
      if (joint->getVariableCount() > 0)
      {
        const auto found = std::find(known_.begin(), known_.end(), joint->getName());
        if (found == known_.end()) return false;
        position = joints[found - known_.begin()];
      }
      joint->computeTransform(&position, moved);
      at = link->getJointOriginTransform() * moved * at;
    }
    message = written(at);
    return link != nullptr;
  }

  std::optional<Robot> robot_;
  int mode_ = 0;
  Names known_, names_;              // joints of the robot, and of the group
  std::vector<std::size_t> column_;  // of the group's joints, among the robot's
  std::vector<std::size_t> drive_;   // of the drives, among the group's
  std::vector<bool> turns_;
};
}  // namespace pkm_ros2_control

PLUGINLIB_EXPORT_CLASS(pkm_ros2_control::MoveItKinematics, kinematics::KinematicsBase)
