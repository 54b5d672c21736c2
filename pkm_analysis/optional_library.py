# SPDX-License-Identifier: Apache-2.0
"""Libraries that only some questions need."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from pkm_analysis.analysis_errors import AnalysisError


def optional_library(module: str, package: str, purpose: str) -> Any:
    """Import a module; `AnalysisError` names the pip package and the purpose where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise AnalysisError(
            purpose, f"they need {package}, which is not installed", f"{sys.executable} -m pip install {package}"
        ) from error
