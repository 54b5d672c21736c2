# SPDX-License-Identifier: Apache-2.0
"""Names and quality of service of every topic. All names are relative, so that a robot lives in any namespace.

Streams (states, commands, references) are offered reliably and requested as best effort with a queue of one: any
publisher and subscriber match them, and a late reader gets the newest value. Recorders request all of a stream and have
a second to take it in before anything is lost. The description is latched. Slower topics have short, reliable queues.
"""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

ROBOT_DESCRIPTION = "robot_description"  # std_msgs/String, latched: URDF+ text
ACTUATED_JOINT_STATES = "actuated_joint_states"  # sensor_msgs/JointState: the driven joints as measured
JOINT_STATES = "joint_states"  # sensor_msgs/JointState: every joint, passive ones too
PLATFORM_STATE = "platform_state"  # pkm_interfaces/PlatformState
PLATFORM_PATH = "platform_path"  # nav_msgs/Path: where the platform has been, for RViz
PLANNED_PATH = "planned_path"  # nav_msgs/Path, latched: what the platform is to take
ANALYSIS_LAYERS = "analysis_layers"  # visualization_msgs/MarkerArray, latched: workspaces and singularities, for RViz
PLATFORM_TRAJECTORY = "platform_trajectory"  # pkm_interfaces/PlatformTrajectory: a motion to follow, without an answer
MULTI_DOF_TRAJECTORY = "multi_dof_trajectory"  # trajectory_msgs/MultiDOFJointTrajectory: the same, of one joint
OUTPUTS = "outputs"  # pkm_interfaces/Outputs, latched: the machine's outputs as motions have set them
PAYLOAD = "payload"  # geometry_msgs/InertiaStamped, latched: what the platform carries, as motions say
ACTUATOR_LIMITS = "actuator_limits"  # trajectory_msgs/JointTrajectory, latched: what the controller permits
JOG_TWIST = "jog_twist"  # geometry_msgs/TwistStamped, base frame: how the platform shall move, renewed within 0.25 s
JOY = "joy"  # sensor_msgs/Joy, as the package joy publishes it: a joystick in somebody's hand
JOG_POSE = "jog_pose"  # geometry_msgs/PoseStamped, base frame: where the platform shall go; a newer one replaces it
PLATFORM_REFERENCE = "platform_reference"  # pkm_interfaces/PlatformReference: what the platform should do now
CONTROLLER_STATE = "controller_state"  # pkm_interfaces/ControllerState
REFERENCE_EFFORTS = "reference_efforts"  # sensor_msgs/JointState: inverse dynamics of the reference
OBSERVED_LEGS = "observed_legs"  # pkm_interfaces/ObservedLegs: directions of the legs, from a camera
OBSERVED_EFFORTS = "observed_efforts"  # sensor_msgs/JointState: inverse dynamics from the observed legs
JOINT_COMMANDS = "joint_commands"  # sensor_msgs/JointState: what the drives are to do
FORCE_TORQUE = "force_torque"  # geometry_msgs/WrenchStamped: what a sensor feels being done to the platform
CONVEYOR_STATES = "conveyor_states"  # sensor_msgs/JointState: travel and speed of belts, as the controller knows them
EMERGENCY_STOP = "emergency_stop"  # std_msgs/Empty: any message takes the machine out of power, until it is reset
HARDWARE_COMMANDS = "hardware/joint_commands"  # the same two, as the hardware names them: the topics that
HARDWARE_STATES = "hardware/joint_states"  # JointStateTopicSystem of the <ros2_control> block speaks
FORWARDED_COMMANDS = "forwarded_commands"  # sensor_msgs/JointState: what a forward controller was given, with stamps
MACHINE_STATE = "hardware/state"  # lifecycle_msgs/State, latched: whether the drives follow commands
COMMANDERS_STATE = "commanders/state"  # lifecycle_msgs/State, latched: whether ros2_control passes commands on
LOOP_STATISTICS = "~/loop_statistics"  # pkm_interfaces/LoopStatistics
DIAGNOSTICS = "/diagnostics"  # diagnostic_msgs/DiagnosticArray; global, as everywhere in ROS

SOLVE_INVERSE = "solve_inverse"  # services
SOLVE_FORWARD = "solve_forward"
INVERSE_DYNAMICS = "inverse_dynamics"
DIRECT_DYNAMICS = "direct_dynamics"
ENABLE = "hardware/enable"  # std_srvs/Trigger: have the drives follow commands; the platform is held where it is
DISABLE = "hardware/disable"  # std_srvs/Trigger: turn the drives off
STOP_DRIVES = "hardware/emergency_stop"  # std_srvs/Trigger: turn the drives off at once, until a reset
RESET = "hardware/reset"  # std_srvs/Trigger: out of a fault; the drives stay off
PAUSE = "pause"  # std_srvs/Trigger: halt a motion on its path
RESUME = "resume"  # std_srvs/Trigger: go on with it
STOP = "stop"  # std_srvs/Trigger: end whatever moves, by a smooth deceleration, and hold
TAKE_OVER = "take_over"  # std_srvs/Trigger: the same, before another motion; what moved is told so
RECOVER = "recover"  # std_srvs/Trigger: out of a stop, or back inside the limits, as far as that is possible
SET_SPEED_OVERRIDE = "set_speed_override"  # pkm_interfaces/SetSpeedOverride: a fraction of the plan
CHANGE_WORKING_MODE = "change_working_mode"  # pkm_interfaces/ChangeWorkingMode: other configuration of the limbs
PLAY_MOTION = "play_motion"  # pkm_interfaces/PlayMotion: plan a motion and run it
RECORD_MEASUREMENT = "record_measurement"  # pkm_interfaces/RecordMeasurement: a row for pkm calibrate
FOLLOW_TRAJECTORY = "follow_platform_trajectory"  # action

_RELIABLE = {"history": HistoryPolicy.KEEP_LAST, "reliability": ReliabilityPolicy.RELIABLE}
_LATCHED = _RELIABLE | {"durability": DurabilityPolicy.TRANSIENT_LOCAL}
LATCHED = QoSProfile(depth=1, **_LATCHED)
# a queue of one keeps only the last of several publishers' texts, which may be unusable
DESCRIPTION_IN = QoSProfile(depth=10, **_LATCHED)
LATCHED_EVENTS = QoSProfile(depth=1000, **_LATCHED)  # for subscribers that need each change, not only the newest state
STREAM_OUT = QoSProfile(depth=1000, **_RELIABLE)
STREAM_IN = QoSProfile(depth=1, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.BEST_EFFORT)
EVENTS = QoSProfile(depth=10, **_RELIABLE)
MANY_AT_ONCE = QoSProfile(depth=1000, **_RELIABLE)
STREAM_RECORD = QoSProfile(depth=10000, **_RELIABLE)
