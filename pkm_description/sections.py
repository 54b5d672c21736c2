# SPDX-License-Identifier: Apache-2.0
"""Materials and cross-sections of beams: area [m^2], second moments about y and z, torsion constant [m^4].

The section's y is along its width. The torsion constant of a rectangle is Saint-Venant's, by the approximation in Young
and Budynas, "Roark's formulas for stress and strain", 7th ed., table 10.1; that of thin walls Bredt's.
"""

from __future__ import annotations

from math import pi

# Young's and shear modulus [Pa], usual values at room temperature; carbon is a tube of mostly lengthwise fibres.
MATERIALS = {
    "steel": (210e9, 80.8e9),
    "stainless_steel": (193e9, 75e9),
    "cast_iron": (110e9, 44e9),
    "aluminium": (70e9, 26.3e9),
    "titanium": (114e9, 43e9),
    "brass": (100e9, 37e9),
    "carbon": (120e9, 5e9),
}

Numbers = tuple[float, float, float, float]  # A, Iy, Iz, J


def tube(radius: float, inner: float = 0.0) -> Numbers:
    """A round tube or bar."""
    bending = 0.25 * pi * (radius**4 - inner**4)
    return pi * (radius**2 - inner**2), bending, bending, 2.0 * bending


def rectangle(width: float, height: float) -> Numbers:
    """A solid rectangle, its width along y."""
    a, b = max(width, height), min(width, height)
    torsion = a * b**3 * (1.0 / 3.0 - 0.21 * b / a * (1.0 - b**4 / (12.0 * a**4)))
    return width * height, width * height**3 / 12.0, height * width**3 / 12.0, torsion


def hollow_section(width: float, height: float, thickness: float) -> Numbers:
    """A rectangular tube of one wall thickness, its width along y."""
    full, hole = rectangle(width, height), rectangle(width - 2.0 * thickness, height - 2.0 * thickness)
    area, iy, iz = (a - b for a, b in zip(full[:3], hole[:3], strict=True))
    wide, high = width - thickness, height - thickness
    return area, iy, iz, 2.0 * thickness * (wide * high) ** 2 / (wide + high)
