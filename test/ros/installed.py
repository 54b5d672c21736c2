# SPDX-License-Identifier: Apache-2.0
"""Which ROS packages a sourced installation has."""

from collections.abc import Sequence

from ament_index_python.packages import PackageNotFoundError, get_package_prefix


def not_installed(packages: Sequence[str]) -> list[str]:
    """Those of the packages that are not there."""
    found = []
    for package in packages:
        try:
            get_package_prefix(package)
        except (PackageNotFoundError, OSError):  # OSError: nothing is sourced
            found.append(package)
    return found
