# SPDX-License-Identifier: Apache-2.0
"""The tests of `in_jax.py`, in a process of their own: JAX has threads, and other tests fork."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest


def judge(*options: str) -> None:
    """Run the tests in JAX; what they say is shown where they fail."""
    if find_spec("jax") is None:
        pytest.skip("jax is not installed; ./pkm test installs it")
    tests = str(Path(__file__).with_name("in_jax.py"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, tests]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


def test_everyday() -> None:
    judge()


@pytest.mark.slow
def test_every_robot() -> None:
    judge("-m", "slow")
