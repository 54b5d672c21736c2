# SPDX-License-Identifier: Apache-2.0
"""Builds the ament_python package `pkm_control`: four Python packages and what ROS 2 looks for in share/."""

from pathlib import Path

from setuptools import find_packages, setup

NAME = "pkm_control"
SHARE = f"share/{NAME}"


def shared_files() -> list[tuple[str, list[str]]]:
    """Pair each directory below share/ with the files that go there; the tree in the source is kept."""
    pairs = [("share/ament_index/resource_index/packages", [f"resource/{NAME}"]), (SHARE, ["package.xml"])]
    for top in ("launch", "config", "rviz", "motions", "pkm_description/limbs", "pkm_description/robots"):
        for directory in [Path(top), *(d for d in sorted(Path(top).rglob("*")) if d.is_dir())]:
            files = sorted(str(f) for f in directory.glob("*") if f.is_file()) if directory.is_dir() else []
            if files:
                pairs.append((f"{SHARE}/{directory.as_posix()}", files))
    return pairs


setup(
    name=NAME,
    version="0.1.0",
    description="Kinematics, dynamics, simulation and control of parallel robots of any architecture",
    author="The pkm_control project",
    maintainer="The pkm_control project",
    maintainer_email="maintainers@pkm-control.invalid",
    license="Apache-2.0",
    python_requires=">=3.10",
    packages=find_packages(include=["pkm_description*", "pkm_kinematics*", "pkm_dynamics*", "pkm_control*"]),
    package_data={"": ["py.typed", "*.xacro", "**/*.xacro", "*.urdf", "**/*.urdf", "*.csv", "**/*.csv", "**/*.html"]},
    data_files=shared_files(),
    install_requires=["numpy", "scipy", "numba", "xacro", "PyYAML", "matplotlib"],
    extras_require={
        "page": ["viser", "trimesh"],
        "identification": ["clarabel"],
        "completion": ["shtab"],
        "test": ["pytest", "pytest-xdist", "hypothesis", "pin", "mujoco", "toppra"],
    },
    zip_safe=False,
    entry_points={
        "console_scripts": [
            "pkm = pkm_control.run.cli:main",
            "check_pkm = pkm_kinematics.check:main",
            "kinematics_node = pkm_kinematics.ros.kinematics_node:main",
            "dynamics_node = pkm_dynamics.ros.dynamics_node:main",
            "page_node = pkm_control.nodes.page_node:main",
            "motion_player_node = pkm_control.nodes.motion_player_node:main",
            "controller_node = pkm_control.nodes.controller_node:main",
            "hardware_node = pkm_control.nodes.hardware_node:main",
            "description_node = pkm_description.ros.description_node:main",
        ],
    },
)
