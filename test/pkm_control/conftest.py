# SPDX-License-Identifier: Apache-2.0
"""The Delta, built once for all tests of the control package."""

import pytest

from pkm_control.motion.limits import ActuatorLimits
from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_kinematics import Kinematics


@pytest.fixture(scope="session")
def mechanism():
    return load_mechanism("delta")


@pytest.fixture(scope="session")
def kinematics(mechanism):
    return Kinematics(mechanism)


@pytest.fixture(scope="session")
def dynamics(kinematics):
    return Dynamics(kinematics)


@pytest.fixture(scope="session")
def limits(mechanism):
    return ActuatorLimits.of(mechanism)
