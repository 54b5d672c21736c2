# SPDX-License-Identifier: Apache-2.0
"""Controllers: reference and measured motion of the platform in, actuator efforts out."""

from pkm_control.controllers.adaptive import Adaptive
from pkm_control.controllers.computed_torque import ComputedTorque
from pkm_control.controllers.controller import Controller, Measured, Reference
from pkm_control.controllers.pd_gravity import PdGravity

__all__ = ["Adaptive", "ComputedTorque", "Controller", "Measured", "PdGravity", "Reference"]
