# SPDX-License-Identifier: Apache-2.0
"""The workspace of a five-bar, and its limits: joint limits, stretched limbs, or a bound of your own.

Every border point is accurate to a tenth of a millimetre, and names the condition that fails beyond it.
"""

from pkm_analysis import Analysis
from pkm_description import load_mechanism


def main(picture: str = "08_workspace.png") -> None:
    """Find and draw the part of the workspace with a margin from singularities."""
    analysis = Analysis(load_mechanism("five_bar"))
    anywhere = analysis.workspace(tolerance=1e-4)
    good = analysis.workspace(requirements=["isotropy > 0.3"], tolerance=1e-4)
    print(anywhere)
    print(f"{good.size / anywhere.size:.0%} of it has a condition above 0.3")
    assert good.size < anywhere.size
    good.plot(picture)


if __name__ == "__main__":
    main()
