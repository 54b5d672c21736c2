# SPDX-License-Identifier: Apache-2.0
"""A robot's recorded functions for optimisers and learners: `on_casadi`, `on_jax`; as kernels of GPUs: `on_gpu`."""
