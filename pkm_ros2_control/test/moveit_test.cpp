// SPDX-License-Identifier: Apache-2.0
// moveit_test URDF SRDF LIBRARY GROUP BASE TIP: a group with our plugin in MoveIt's model; answers what is asked on standard
// input, one question a line, in numbers that lose nothing; first the names of the solver's joints.
//   ik POSE: 1 or 0, MoveIt's code, the solution; the seed is home's
//   turned POSE: the same from a seed two turns further
//   near LIMIT POSE: the same, each joint within LIMIT of the seed
//   refuse POSE: the same, of a search whose callback refuses everything
//   fk LINK POSITIONS: 1 or 0, the pose of a link
//   state LINK POSE: 1 or 0, the positions of the group after RobotState::setFromIK, the pose of a link in that state
//   trajectory POSE: names of the joints of a trajectory that ends there
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include <moveit/robot_model/robot_model.hpp>
#include <moveit/robot_state/robot_state.hpp>
#include <moveit/robot_trajectory/robot_trajectory.hpp>
#include <pluginlib/class_loader.hpp>
#include <srdfdom/model.h>
#include <tf2_eigen/tf2_eigen.hpp>
#include <urdf_parser/urdf_parser.h>

#include <moveit/kinematics_base/kinematics_base.hpp>

namespace
{
std::string text_of(const char * file)
{
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

geometry_msgs::msg::Pose pose_of(std::istream & in)
{
  geometry_msgs::msg::Pose m;
  in >> m.position.x >> m.position.y >> m.position.z;
  in >> m.orientation.x >> m.orientation.y >> m.orientation.z >> m.orientation.w;
  return m;
}

void print(const std::vector<double> & numbers)
{
  for (const double x : numbers) std::printf(" %.17g", x);
}

void print(const geometry_msgs::msg::Pose & m)
{
  print({m.position.x, m.position.y, m.position.z});
  print({m.orientation.x, m.orientation.y, m.orientation.z, m.orientation.w});
}

struct Asked
{
  moveit::core::RobotModelPtr model;
  const moveit::core::JointModelGroup * group;
  kinematics::KinematicsBaseConstPtr solver;
  std::vector<double> seed;

  void answer(const std::string & what, std::istream & in) const
  {
    if (what == "fk") return place(in);
    if (what == "state" || what == "trajectory") return move(what == "state", in);
    std::vector<double> solution, limits(seed.size());
    moveit_msgs::msg::MoveItErrorCodes code;
    const auto refuse = [](const auto &, const auto &, auto & given) {
      given.val = moveit_msgs::msg::MoveItErrorCodes::GOAL_IN_COLLISION;
    };
    bool ok = false;
    if (what == "near")
    {
      in >> limits[0];
      std::fill(limits.begin(), limits.end(), limits[0]);
      ok = solver->searchPositionIK(pose_of(in), seed, 0.1, limits, solution, code);
    }
    else if (what == "refuse")
      ok = solver->searchPositionIK(pose_of(in), seed, 0.1, solution, refuse, code);
    else
    {
      auto from = seed;
      for (double & x : from) x += what == "turned" ? 4.0 * M_PI : 0.0;
      ok = solver->getPositionIK(pose_of(in), from, solution, code);
    }
    std::printf("%d %d", ok, code.val), print(solution);
  }

  void place(std::istream & in) const
  {
    std::string link;
    std::vector<double> positions(seed.size());
    std::vector<geometry_msgs::msg::Pose> poses;
    in >> link;
    for (double & x : positions) in >> x;
    const bool ok = solver->getPositionFK({link}, positions, poses);
    std::printf("%d", ok);
    if (ok) print(poses[0]);
  }

  void move(bool told_state, std::istream & in) const
  {
    std::string link;
    moveit::core::RobotState state(model);
    state.setToDefaultValues();
    state.setJointGroupPositions(group, seed);
    robot_trajectory::RobotTrajectory trajectory(model, group);
    trajectory.addSuffixWayPoint(state, 0.0);
    if (told_state) in >> link;
    const bool ok = state.setFromIK(group, pose_of(in), solver->getTipFrame(), 0.1);
    trajectory.addSuffixWayPoint(state, 1.0);
    std::printf("%d", ok);
    if (told_state)
    {
      std::vector<double> positions;
      state.update();
      state.copyJointGroupPositions(group, positions);
      return print(positions), print(tf2::toMsg(state.getGlobalLinkTransform(link)));
    }
    moveit_msgs::msg::RobotTrajectory message;
    trajectory.getRobotTrajectoryMsg(message);
    for (const auto & name : message.joint_trajectory.joint_names) std::printf(" %s", name.c_str());
  }
};
}  // namespace

int main(int count, char ** arguments)
{
  rclcpp::init(0, nullptr);
  if (count != 7) return 2;
  const auto urdf = urdf::parseURDF(text_of(arguments[1]));
  const auto srdf = std::make_shared<srdf::Model>();
  if (!urdf || !srdf->initString(*urdf, text_of(arguments[2]))) return 3;
  pluginlib::ClassLoader<kinematics::KinematicsBase> loader("moveit_core", "kinematics::KinematicsBase");
  Asked asked;
  asked.model = std::make_shared<moveit::core::RobotModel>(urdf, srdf);
  asked.group = asked.model->getJointModelGroup(arguments[4]);
  const auto node = std::make_shared<rclcpp::Node>("moveit_test");
  const std::string prefix = "robot_description_kinematics." + std::string(arguments[4]) + ".";
  node->declare_parameter(prefix + "robot", arguments[3]);
  node->declare_parameter(prefix + "base", arguments[5]);
  node->declare_parameter(prefix + "tip", arguments[6]);
  const auto made = [&](const moveit::core::JointModelGroup * group) -> kinematics::KinematicsBasePtr {
    auto solver = loader.createSharedInstance("pkm_ros2_control/MoveItKinematics");
    if (!solver->initialize(node, *asked.model, group->getName(), "", {}, 0.1)) return nullptr;
    return solver;
  };
  asked.model->setKinematicsAllocators({{arguments[4], made}});
  asked.solver = asked.group->getSolverInstance();
  if (!asked.solver) return 4;
  asked.seed.resize(asked.solver->getJointNames().size(), 0.0);
  for (const auto & name : asked.solver->getJointNames()) std::printf("%s ", name.c_str());
  std::printf("\n");
  std::string line, what;
  while (std::getline(std::cin, line))
  {
    std::istringstream in(line);
    in >> what;
    asked.answer(what, in);
    std::printf("\n");
  }
  asked.solver.reset();
  asked.model.reset();
  rclcpp::shutdown();
  return 0;
}
