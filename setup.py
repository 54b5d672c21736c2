# SPDX-License-Identifier: Apache-2.0
"""Builds the ament_python package `pkm_control`: four Python packages and what ROS 2 looks for in share/.

pip builds a wheel from it, whose numerical part and command `pkm` need no ROS.
"""

from pathlib import Path

from setuptools import find_packages, setup

NAME = "pkm_control"
SHARE = f"share/{NAME}"
# The ranges of requirements/bare.txt; docs/installation.md says what was tried of them.
LIBRARIES = ["numpy>=1.26,<2.5", "scipy>=1.11,<1.18", "numba>=0.60,<0.69", "xacro>=2.1", "PyYAML>=6,<7"]


def shared_files() -> list[tuple[str, list[str]]]:
    """Pair each directory below share/ with the files that go there; the tree in the source is kept."""
    pairs = [("share/ament_index/resource_index/packages", [f"resource/{NAME}"]), (SHARE, ["package.xml"])]
    for top in ("launch", "config", "rviz", "pkm_description/limbs", "pkm_description/robots"):
        for directory in [Path(top), *(d for d in sorted(Path(top).rglob("*")) if d.is_dir())]:
            files = sorted(str(f) for f in directory.glob("*") if f.is_file()) if directory.is_dir() else []
            if files:
                pairs.append((f"{SHARE}/{directory.as_posix()}", files))
    return pairs


SHIPPED = ("xacro", "urdf", "csv", "html", "xml")  # kinds of files beside the modules

setup(
    name=NAME,
    version="0.1.0",
    description="Kinematics, dynamics, simulation and control of parallel robots of any architecture",
    long_description=Path("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author="The pkm_control project",
    maintainer="The pkm_control project",
    maintainer_email="maintainers@pkm-control.invalid",
    license="Apache-2.0",
    python_requires=">=3.10,<3.14",
    packages=find_packages(include=["pkm_description*", "pkm_kinematics*", "pkm_dynamics*", "pkm_control*"]),
    package_data={
        "": ["py.typed", "*.xacro", "**/*.xacro", "*.urdf", "**/*.urdf", "*.csv", "**/*.csv", "**/*.html", "**/*.xml"]
    },
    data_files=shared_files(),
    install_requires=[*LIBRARIES, "matplotlib>=3.8,<3.12"],
    extras_require={
        "page": ["viser==1.1.1", "trimesh>=4.6,<6"],
        "identification": ["clarabel>=0.9,<1"],
        "completion": ["shtab"],
        "docs": ["sphinx>=8.1,<10", "myst-parser>=4,<6", "furo"],
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
