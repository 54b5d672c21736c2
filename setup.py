# SPDX-License-Identifier: Apache-2.0
"""Builds the ament_python package `pkm_control`: its Python packages and what ROS 2 looks for in share/.

pip builds a wheel from it, whose numerical part and command `pkm` need no ROS.

`colcon build` also compiles the kernels: else the nodes of the first launch would, all of them at once. A wheel holds
none, for they are made for the processor; `pkm warm` makes them where it was installed.
"""

import hashlib
import os
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.develop import develop
from setuptools.command.install import install

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


# Kinds of files beside the modules
SHIPPED = (
    "xacro",
    "urdf",
    "csv",
    "html",
    "xml",
    "css",
    "js",
    "mplstyle",
    "yaml",
    "c",
)


def state_of(folder: Path) -> str:
    """Digest of the sources in a folder and of what compiles them."""
    digest = hashlib.sha256(sys.version.encode())
    with suppress(PackageNotFoundError):
        digest.update(version("numba").encode())
    for source in sorted(folder.glob("pkm_*/**/*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def compile_kernels(folder: Path, forget: bool) -> None:
    """Compile the kernels of packages, beside their sources, where colcon builds and PKM_KERNELS is not 0.

    Where that fails, it is said, and the build goes on: kernels are then compiled when they are first called.

    Args:
        folder: that holds the packages.
        forget: what was compiled from other sources is removed, for kernels hold what they call.
    """
    if os.environ.get("COLCON") != "1" or os.environ.get("PKM_KERNELS") == "0":
        return
    stamp = folder / "pkm_kinematics" / "kernels" / "__pycache__" / "sources"
    state = state_of(folder)
    if stamp.exists() and stamp.read_text() == state:
        return
    if forget:
        for kernel in folder.glob("pkm_*/**/__pycache__/*.nb[ic]"):
            kernel.unlink()
    # colcon's own folders turn Python's prefix into that of the installation
    colcons = ("prefix_override", "colcon_distutils_commands")
    path = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p and Path(p).name not in colcons]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *path]), "OPENBLAS_NUM_THREADS": "1"}
    print(f"{NAME}: compiling kernels, which takes minutes; PKM_KERNELS=0 leaves it to the first launch", flush=True)
    try:
        program = [sys.executable, "-m", "pkm_bringup.warm_kernels", "--kinds"]
        subprocess.run(program, cwd=folder, env=environment, stderr=subprocess.STDOUT, check=True, timeout=3600)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(state)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"{NAME}: kernels are not compiled, so that the first launch takes minutes: {error}", file=sys.stderr)


class Install(install):
    """An installation with its kernels compiled."""

    def run(self) -> None:
        super().run()
        if not self.root:  # not into a package for other machines
            compile_kernels(Path(self.install_lib), forget=True)


class Develop(develop):
    """A link to the sources, with kernels compiled beside them."""

    def run(self) -> None:
        super().run()
        compile_kernels(Path.cwd(), forget=False)


setup(
    name=NAME,
    cmdclass={"install": Install, "develop": Develop},
    version="0.1.0",
    description="Kinematics, dynamics, simulation and control of parallel robots of any architecture",
    long_description=Path(__file__).resolve().with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author="The pkm_control project",
    maintainer="The pkm_control project",
    maintainer_email="maintainers@pkm-control.invalid",
    license="Apache-2.0",
    python_requires=">=3.10,<3.14",
    packages=find_packages(include=["pkm_*"], exclude=["pkm_interfaces*"]),
    package_data={
        "": ["py.typed", *(f"{place}*.{kind}" for place in ("", "**/") for kind in SHIPPED)],
    },
    data_files=shared_files(),
    install_requires=[*LIBRARIES, "matplotlib>=3.8,<3.12"],
    extras_require={
        "page": ["viser==1.1.1", "trimesh>=4.6,<6"],
        "analysis": ["scikit-image>=0.22,<0.27", "trimesh>=4.6,<6"],
        "cluster": ["dask[distributed]>=2025.1,<2027"],
        "collision": ["coal>=3,<4"],
        "identification": ["clarabel>=0.9,<1"],
        "casadi": ["casadi>=3.6,<4"],
        "jax": ["jax>=0.5,<0.12"],
        "gpu": ["cupy-cuda12x>=13,<15"],
        "dynamixel": ["dynamixel-sdk>=4.1,<5"],
        "usd": ["usd-core>=25.5,<27"],
        "completion": ["shtab"],
        "docs": ["sphinx>=8.1,<10", "myst-parser>=4,<6", "furo"],
        "test": [
            "pytest",
            "pytest-xdist",
            "pytest-rerunfailures",
            "hypothesis",
            "python-flint",
            "dask[distributed]",
            "pin",
            "mujoco",
            "usd-core",
            "toppra",
            "casadi",
            "jax",
        ],
    },
    zip_safe=False,
    entry_points={
        "console_scripts": [
            "pkm = pkm_bringup.cli:main",
            "check_pkm = pkm_kinematics.check:main",
            "kinematics_node = pkm_bringup.start:node",
            "dynamics_node = pkm_bringup.start:node",
            "layers_node = pkm_bringup.start:node",
            "joystick_node = pkm_bringup.start:node",
            "page_node = pkm_bringup.start:node",
            "motion_player_node = pkm_bringup.start:node",
            "controller_node = pkm_bringup.start:node",
            "control_node = pkm_bringup.start:node",
            "hardware_node = pkm_bringup.start:node",
            "description_node = pkm_bringup.start:node",
            "machine_watch_node = pkm_bringup.start:node",
        ],
    },
)
