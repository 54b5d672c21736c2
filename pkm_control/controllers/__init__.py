# SPDX-License-Identifier: Apache-2.0
"""Controllers: reference and measured motion of the platform in, actuator efforts out."""
