# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a robot description."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from pkm_runtime.errors import UsageError


class DescriptionError(UsageError):
    """An unusable robot description: the element, its problem and the remedy, long quotations shortened."""

    def __init__(self, element: str, problem: str, remedy: str) -> None:
        super().__init__(element, problem, remedy)
        self.element = self.about

    def of_file(self, path: object) -> DescriptionError:
        """The same, with the name of the file before the element, unless that is a file itself."""
        element = self.element if self.element.startswith("file ") else f"{path}: {self.element}"
        return DescriptionError(element, self.problem, self.remedy)


def or_near(name: str, known: Iterable[str], remedy: str) -> str:
    """A remedy, after the question whether a known name like the wrong one was meant."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]!r}? Else {remedy}" if near else remedy


NEAR = 0.75  # likeness of names, by difflib: `collision_checking` of others is no `collision`


def refuse_near(name: str, known: Collection[str], label: str, what: str = "element") -> None:
    """Refuse a name that is nearly a known one, or is one but for case, hyphens and underscores."""
    if name in known:
        return
    plain = {_plain(one): one for one in known}
    near = difflib.get_close_matches(_plain(name), plain, n=1, cutoff=NEAR)
    near += [one for one in plain if sorted(one) == sorted(_plain(name))]  # such as ryp
    if near:
        raise DescriptionError(label, f"{what} {name!r} is not known", f"did you mean {plain[near[0]]!r}?")


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
