# SPDX-License-Identifier: Apache-2.0
"""Reads the file of a robot's compliance, for whatever robot it is, without anything heavy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pkm_runtime.errors import ConfigurationError

REMEDY = "write it with pkm analyse ROBOT stiffness --table FILE"


def compliance_values(path: str) -> dict[str, Any]:
    """What a file holds, for whatever robot; nothing for an empty path. Raises `ConfigurationError` as below."""
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    except OSError as error:
        raise ConfigurationError(path, "", str(error.strerror or error), "name a file that can be read") from error
    except ValueError as error:
        raise ConfigurationError(path, "", f"it is no JSON: {error}", REMEDY) from error
    if not isinstance(values, dict):
        raise ConfigurationError(path, "", "it is no table of compliance", REMEDY)
    return values
