# SPDX-License-Identifier: Apache-2.0
"""All assembly modes: every pose that a platform can take with its actuators locked.

`choose` picks a robot's method, `method` says what a method is, `methods/` has one object per method, `result` their
answers, and `all_modes` poses with joint positions, statuses and labels. `geometry/`, `homotopy/` and `search/` are the
mathematics, pure functions of arrays that know nothing of robots: `geometry/` finds all solutions, one function per
file, `search/` solutions of any closure system, and so without a certificate.
"""
