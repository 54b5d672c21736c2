# SPDX-License-Identifier: Apache-2.0
"""Accurate simulation: the equations of motion integrated in task space, in joint space or in the actuators."""

from pkm_dynamics.simulation.simulate import Simulated, simulate

__all__ = ["Simulated", "simulate"]
