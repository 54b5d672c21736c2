# SPDX-License-Identifier: Apache-2.0
"""How a node gets its robot, from the topic /robot_description or the parameter of that name; who publishes it."""

from __future__ import annotations

import hashlib
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial

from rclpy.node import Node
from std_msgs.msg import String

from pkm_description.from_urdf import shared_mechanism
from pkm_description.mechanism import Mechanism
from pkm_description.ros.parameters import declare
from pkm_description.ros.periodic import steady_timer
from pkm_description.ros.process import run_node
from pkm_description.ros.topics import DESCRIPTION_IN, EVENTS, LATCHED, ROBOT_DESCRIPTION
from pkm_description.urdf.xml_text import LETTERS, check_length
from pkm_runtime.errors import PkmError, shortened

_FROM_NOW_ON = EVENTS  # not what is latched already
_DEAF_FOR = 2.0  # s, after a text that is far too long
_REMIND_EVERY = 3.0  # s
_END = 1  # exit code of a node that waited in vain
_SILENT_FOR = 2.0  # s, of building a robot


class RobotDescription:
    """Waits for the description and calls `ready(mechanism)` with each new one; reports a missing one.

    A new description while the robot moves would give nodes different robots. So a node refuses it while `busy` returns
    a reason, which it does while readings or references come. The text is plain URDF+ and nothing else: no name, no
    path, no xacro (`shared_mechanism`). An unusable one is logged and the node keeps its robot. Without any within the
    parameter `description_patience` the node ends with exit code 1.

    `problem` says why there is no robot, `refused` why the last description was refused; both are empty otherwise.
    """

    def __init__(self, node: Node, ready: Callable[[Mechanism], None], busy: Callable[[], str] = lambda: "") -> None:
        self._node = node
        self._busy = busy
        self._ready = ready
        self._seen = b""  # digest of the text that came last and was looked at: the text itself may be huge
        self._fault = ""  # of that text
        self.refused = ""
        self.mechanism: Mechanism | None = None
        self._topic = node.resolve_topic_name(ROBOT_DESCRIPTION)
        self.problem = f"no robot description has come on {self._topic} yet"
        text = declare(
            node,
            "robot_description",
            "",
            "URDF+ text to begin with; the topic robot_description is heard too",
            fixed=True,
        )
        patience = "how long to wait for the first one before the node ends, s; 0: for ever"
        self._patience = declare(node, "description_patience", 0.0, patience, (0.0, 3600.0), fixed=True)
        self._since = time.monotonic()
        self._reminder = steady_timer(node, _REMIND_EVERY, self._remind)
        self._subscription = node.create_subscription(String, ROBOT_DESCRIPTION, self._heard, DESCRIPTION_IN)
        if text:
            self._take(text)

    def _heard(self, message: String) -> None:
        self._take(message.data)
        if len(message.data) > LETTERS:  # the middleware keeps room for another one as long as the subscription lives
            self._node.destroy_subscription(self._subscription)
            self._deaf = steady_timer(self._node, _DEAF_FOR, self._listen_again)

    def _listen_again(self) -> None:
        """Subscribe again, after all nodes of this process have released the buffer that they share."""
        self._deaf.cancel()
        self._subscription = self._node.create_subscription(String, ROBOT_DESCRIPTION, self._heard, _FROM_NOW_ON)

    def _take(self, text: str) -> None:
        try:
            check_length(text, "the text")
        except PkmError as error:
            self._seen = b""
            self._refuse(str(error))
            return
        seen = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
        if seen == self._seen:
            self.refused = self._fault
            return
        busy = self._busy() if self.mechanism is not None else ""
        if busy:
            self.refused = busy
            self._node.get_logger().error(f"another robot description is refused: {busy}")
            return
        self._seen = seen
        teller = threading.Timer(_SILENT_FOR, self._say_why_it_takes_long)
        teller.daemon = True
        teller.start()
        try:
            mechanism = shared_mechanism(text)
            self._ready(mechanism)
        except PkmError as error:
            self._refuse(str(error))
            return
        except Exception as error:  # whatever a text brings about, it is not to end the node
            self._node.get_logger().error(traceback.format_exc())
            self._refuse(f"{type(error).__name__}: {shortened(str(error))}")
            return
        finally:
            teller.cancel()
        self.mechanism = mechanism
        self.problem = self.refused = self._fault = ""
        self._reminder.cancel()
        self._node.get_logger().info(f"robot '{mechanism.name}' with {len(mechanism.actuated_joints)} actuated joints")

    def _say_why_it_takes_long(self) -> None:
        self._node.get_logger().info("building the robot; after an update, compiling kernels can take a minute")

    def _refuse(self, why: str) -> None:
        self._node.get_logger().error(f"the robot description cannot be used: {why}")
        self.refused = self._fault = why
        if self.mechanism is None:
            self.problem = f"the robot description cannot be used: {why}"

    def _remind(self) -> None:
        if self._seen or not self._patience or time.monotonic() - self._since < self._patience:
            self._node.get_logger().warning(self.problem)
            return
        self._reminder.cancel()
        known = [one.node_name for one in self._node.get_publishers_info_by_topic(self._topic)]
        whose = (
            f"{', '.join(known)} says nothing" if known else "robot_state_publisher, or who else describes it, is dead"
        )
        self._node.get_logger().error(f"{self.problem}, in {self._patience:g} s: {whose}")
        self._node.exit_code = _END  # type: ignore[attr-defined]  # which `run_nodes` looks at


class DescriptionNode(Node):
    """Latches the text that it is given; its starter has expanded the robot's file."""

    def __init__(self) -> None:
        super().__init__("description")
        text = declare(self, "robot_description", "", "URDF+ text, the output of xacro for a robot's file", fixed=True)
        if not text:
            self.get_logger().error("the parameter robot_description is empty: there is no robot")
        self._publisher = self.create_publisher(String, ROBOT_DESCRIPTION, LATCHED)
        self._publisher.publish(String(data=text))


main = partial(run_node, DescriptionNode)
