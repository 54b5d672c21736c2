# SPDX-License-Identifier: Apache-2.0
"""A simulated machine that differs from its description, as all machines do; `docs/control.md` has the numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from pkm_description.mechanism import Inertial, Mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.realism import DELAY, HEAVIER, LINEAR_STEP, NOISE_STEPS, SEED, STEPS_PER_TURN, VELOCITY_NOISE
from pkm_hardware.simulated.drive_parts import Encoder
from pkm_hardware.simulated.simulated_machine import SimulatedMachine


def realistic_machine(
    mechanism: Mechanism, command_timeout: float = math.inf, payload: Inertial | None = None
) -> SimulatedMachine:
    """A machine with encoders, a delay, links heavier than described, and drives that give way where the description
    says how; the same each time. Without a `write` for longer than `command_timeout` [s], brakes close. `payload`, in
    the platform's frame, is unknown to the controller.
    """
    limits = ActuatorLimits.of(mechanism)
    return SimulatedMachine(
        Dynamics(heavier(mechanism, HEAVIER)),
        limits,
        encoder=realistic_encoder(limits),
        command_timeout=command_timeout,
        payload=payload,
        delay=DELAY,
        flexible=True,
    )


def realistic_encoder(limits: ActuatorLimits) -> Encoder:
    """Encoders with the steps and the noise of `pkm_hardware.realism`, for rotary or linear drives."""
    slides = np.array([unit == "m" for unit in limits.length_units])
    resolution = np.where(slides, LINEAR_STEP, 2.0 * math.pi / STEPS_PER_TURN)
    turning, sliding = VELOCITY_NOISE
    return Encoder(resolution, NOISE_STEPS * resolution, np.where(slides, sliding, turning), SEED)


def heavier(mechanism: Mechanism, factor: float) -> Mechanism:
    """The same robot with the mass and inertia of every link times a factor > 0; drives and friction stay."""
    links = tuple(
        replace(
            link,
            inertial=replace(
                link.inertial, mass=factor * link.inertial.mass, inertia=factor * np.asarray(link.inertial.inertia)
            ),
        )
        for link in mechanism.links
    )
    return replace(mechanism, links=links)
