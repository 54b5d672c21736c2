# SPDX-License-Identifier: Apache-2.0
"""All assembly modes: every pose that a platform can take with its actuators locked.

`all_modes` picks a robot's method, and gives poses joint positions, statuses and labels; `method` says what a method
is, the `limb_` files and `whole_search` have one object per method, and `result` their answers. The mathematics are
pure functions of arrays that know nothing of robots: `geometry/` finds all solutions, with the homotopies of `roots`
and `quadrics`; `closure_search` finds some of any closure system, without a certificate.
"""
