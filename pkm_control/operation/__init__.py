# SPDX-License-Identifier: Apache-2.0
"""What is asked of a running controller: motions are judged and admitted, an operator is answered. No ROS."""
