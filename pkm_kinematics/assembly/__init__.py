# SPDX-License-Identifier: Apache-2.0
"""All assembly modes: one all-solutions method per file, pure functions over arrays, nothing of a robot's name.

Locked actuators turn limbs into constraints on the platform; which method applies depends on the platform's freedoms:

* `translation`: fixed orientation, three or more spheres (Delta, linear delta, orthoglide): at most 2.
* `planar`: a point on circles in a plane (five-bar): at most 2.
* `planar_platform`: a rigid platform in a plane on circles, lines and angles (3-RRR, 3-RPR): at most 6.
* `spherical`: rotations about a fixed point with three angles (agile eye class): at most 8.
* `schoenflies`: three translations and an angle on four or more spheres (H4, Par4): at most 16.
* `six_distances`, `rigid_body`: free rigid body on six spheres, planes and directions (Gough-Stewart): at most 40.
* `multistart`, `continuation`: any closure system given by functions, by search, and so without a certificate.

Each returns `modes.AssemblyModes`.
"""
