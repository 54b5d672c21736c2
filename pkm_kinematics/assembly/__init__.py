# SPDX-License-Identifier: Apache-2.0
"""All assembly modes: every pose that a platform can take with its actuators locked.

`all_modes` picks a robot's method, and gives poses joint positions, statuses and labels; `method` says what a method
is, `methods/` has one object per method, and `result` their answers. `geometry/`, `homotopy/` and `search/` are the
mathematics, pure functions of arrays that know nothing of robots: `geometry/` finds all solutions, one function per
file, `search/` solutions of any closure system, and so without a certificate.
"""
