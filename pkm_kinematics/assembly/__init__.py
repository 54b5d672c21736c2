# SPDX-License-Identifier: Apache-2.0
"""All assembly modes: every pose that a platform can take with its actuators locked.

* `choose`: which method a robot gets; `method`: what a method is; `methods/`: one object per method.
* `result`: what a method answers; `all_modes`: poses with their joint positions, statuses and labels.
* `geometry/`, `homotopy/`, `search/`: the mathematics, pure functions of arrays that know nothing of robots.

In `geometry/`, one all-solutions function per file:

* `translation`: fixed orientation, three or more spheres (Delta, linear Delta): at most 2.
* `planar`: a point on circles in a plane (five-bar): at most 2.
* `planar_platform`: a rigid platform in a plane on circles, lines and angles (3-RRR, 3-RPR): at most 6.
* `spherical`: rotations about a fixed point with three angles (agile eye class): at most 8.
* `schoenflies`: three translations and an angle on four or more spheres (H4, Par4): at most 16.
* `surfaces`: a point on planes, spheres, cylinders and tori (orthoglide, 3-RPC, 3-URU): at most 16.
* `six_distances`, `rigid_body`: free rigid body on six spheres, planes and directions (Gough-Stewart): at most 40.
* `folded_plate`: places of a plate between limbs and platform that is folded over.

In `search/`, any closure system given by functions, and so without a certificate: `multistart`, `released_equations`.
"""
