# SPDX-License-Identifier: Apache-2.0
"""Control laws: reference and measured motion of the platform in, actuator efforts or positions out."""
