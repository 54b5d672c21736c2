# SPDX-License-Identifier: Apache-2.0
"""Results as JSON."""

import json
import math
from typing import Any


def json_text(value: Any) -> str:
    """A value as indented JSON, arrays as lists; null for infinities and NaN, which JSON lacks."""
    return json.dumps(_strict(value), indent=1, ensure_ascii=False)


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strict(entry) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        return _strict(value.tolist())
    if isinstance(value, list | tuple):
        return [_strict(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
