# SPDX-License-Identifier: Apache-2.0
"""Bounds of what is computed from matrices over boxes: singular values, solutions, products.

A matrix over a box is an `Affine`: a point matrix at the centre, one for each parameter, and a radius for the
remainder. Singular values are bounded at the corners of the box: the largest is a convex function of the matrix, and
the smallest eigenvalue of a symmetric matrix a concave one, so that affine matrices have their extremes there. This
holds for coinciding singular values too, as at an isotropic pose.

Rounding is included: sums of n products are off by at most (n + 2) 2^-53 of the sum of their absolute values (Higham,
Accuracy and Stability of Numerical Algorithms, section 3.1), and eigenvalues are those of LAPACK with the residual of
its eigenvectors added, not trusted for themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from pkm_description.mechanism import Array

UNIT = 2.0**-53
MORE = 1.0 + 1e-12  # covers the rounding of a bound that is a sum of a few hundred positive numbers itself
TINY = 1e-290
FLOOR = 1e-6  # of the largest part of a solution: what the others are taken for at least
DOUBLINGS = 8  # of the number of terms of a geometric series


@dataclass(frozen=True, eq=False)
class Form:
    """Matrices or vectors within `radius`, entry by entry, of `middle`: or of an affine form, see `slopes`."""

    middle: Array
    radius: Array
    slopes: Array | None = None  # of the middle, times coordinates from -1 to 1, the first axis; the same for all forms

    @staticmethod
    def of(bounds: Array) -> Form:
        """From bounds along the last axis; infinite ones give a middle of zero and an infinite radius."""
        finite = np.isfinite(bounds).all(axis=-1)
        lower, upper = np.where(finite, bounds[..., 0], 0.0), np.where(finite, bounds[..., 1], 0.0)
        middle = 0.5 * lower + 0.5 * upper
        radius = np.maximum(upper - middle, middle - lower) * MORE + np.abs(middle) * 2.0 * UNIT + TINY
        return Form(middle, np.where(finite, radius, np.inf))

    @staticmethod
    def exactly(A: Array) -> Form:
        """Without a radius."""
        return Form(A, np.zeros_like(A))

    @staticmethod
    def joined(parts: list[Form], axis: int) -> Form:
        """Some that lie side by side along an axis, which counts from the last."""
        slopes = [one.slopes for one in parts if one.slopes is not None]
        middle, radius = (np.concatenate([getattr(one, name) for one in parts], axis) for name in ("middle", "radius"))
        return Form(middle, radius, np.concatenate(slopes, axis) if slopes else None)

    @cached_property
    def tilt(self) -> Array | float:
        """By how much the coordinates move the middle at most."""
        return 0.0 if self.slopes is None else np.abs(self.slopes).sum(axis=0) * MORE

    @cached_property
    def spread(self) -> Array:
        """Distance from the middle at most."""
        return np.asarray((self.radius + self.tilt) * MORE)

    def __matmul__(self, other: Form) -> Form:
        n = self.middle.shape[-1]
        size, others = np.abs(self.middle), np.abs(other.middle)
        with np.errstate(invalid="ignore"):
            radius = size @ other.radius + self.radius @ (others + other.spread)
        slopes: Array | None = None
        if self.slopes is not None and other.slopes is not None:
            radius = radius + self.tilt @ other.spread
            slopes = self.slopes @ other.middle + self.middle @ other.slopes
        elif self.slopes is not None:
            radius = radius + self.tilt @ other.radius
            slopes = self.slopes @ other.middle
        elif other.slopes is not None:
            slopes = self.middle @ other.slopes
        rounding = (n + 6) * UNIT * ((size + self.tilt) @ (others + other.tilt))
        radius = np.where(np.isnan(radius), np.inf, radius + rounding) * MORE + TINY
        return Form(self.middle @ other.middle, radius, slopes)

    def __add__(self, other: Form) -> Form:
        middle = self.middle + other.middle
        slopes = self.slopes if other.slopes is None else other.slopes
        if self.slopes is not None and other.slopes is not None:
            slopes = self.slopes + other.slopes
        size = np.abs(middle) + self.tilt + other.tilt
        return Form(middle, (self.radius + other.radius + 4.0 * UNIT * size) * MORE + TINY, _over(slopes, middle))

    def __neg__(self) -> Form:
        return Form(-self.middle, self.radius, None if self.slopes is None else -self.slopes)

    def __sub__(self, other: Form) -> Form:
        return self + -other

    @property
    def T(self) -> Form:
        """Transpose of the last two axes."""
        return self._each(lambda A: np.swapaxes(A, -1, -2))

    def __getitem__(self, at: Any) -> Form:
        each = at if isinstance(at, tuple) else (at,)
        slopes = None if self.slopes is None else self.slopes[(slice(None), *each)]
        return Form(self.middle[at], self.radius[at], slopes)

    @property
    def lower(self) -> Array:
        """Lower bounds of the entries."""
        return np.asarray(self.middle - self.spread - UNIT * (np.abs(self.middle) + self.spread) - TINY)

    @property
    def upper(self) -> Array:
        """Upper bounds of the entries."""
        return np.asarray(self.middle + self.spread + UNIT * (np.abs(self.middle) + self.spread) + TINY)

    @property
    def magnitude(self) -> Array:
        """The largest absolute values."""
        return np.asarray((np.abs(self.middle) + self.spread) * MORE)

    def _each(self, do: Callable[[Array], Array]) -> Form:
        return Form(do(self.middle), do(self.radius), None if self.slopes is None else do(self.slopes))


def _over(slopes: Array | None, middle: Array) -> Array | None:
    return None if slopes is None else np.broadcast_to(slopes, (len(slopes), *middle.shape))


@dataclass(frozen=True, eq=False)
class Affine:
    """Matrices (n, r, c) over boxes: centre + slopes times parameters within `half` + a remainder within `rest`."""

    centre: Array  # (n, r, c)
    slopes: Array  # (n, k, r, c)
    half: Array  # (n, k)
    rest: Array  # (n, r, c)

    @staticmethod
    def of(centre: Array, slopes: Array, half: Array) -> Affine:
        """From bounds of the matrix at the centre (n, r, c, 2) and of its derivatives over the box (n, k, r, c, 2)."""
        middle, tilt = Form.of(centre), Form.of(slopes)
        with np.errstate(invalid="ignore"):
            spread = np.where(half[..., None, None] > 0.0, tilt.radius * half[..., None, None], 0.0)
        return Affine(middle.middle, tilt.middle, half, (middle.radius + spread.sum(axis=1)) * MORE + TINY)

    @staticmethod
    def constant(A: Array, half: Array) -> Affine:
        """A matrix (r, c), or one for each box (n, r, c), that is the same all over boxes of sides `half` (n, k)."""
        (n, k), shape = half.shape, A.shape[-2:]
        zero = np.zeros((n, *shape))
        return Affine(zero + A, np.zeros((n, k, *shape)), half, zero)

    def __add__(self, other: Affine) -> Affine:
        size = self._size() + other._size() + self.rest + other.rest
        rest = (self.rest + other.rest + 2.0 * UNIT * size) * MORE + TINY
        return Affine(self.centre + other.centre, self.slopes + other.slopes, self.half, rest)

    def __neg__(self) -> Affine:
        return Affine(-self.centre, -self.slopes, self.half, self.rest)

    def __matmul__(self, other: Affine) -> Affine:
        """Matrix product; what is of the second order in the parameters is in the remainder."""
        c, slopes = self.centre, self.slopes @ other.centre[:, None] + self.centre[:, None] @ other.slopes
        size, others = np.abs(c), np.abs(other.centre)
        moved = np.einsum("nkrc,nk->nrc", np.abs(self.slopes), self.half) * MORE
        by = np.einsum("nkrc,nk->nrc", np.abs(other.slopes), self.half) * MORE
        n, k = c.shape[-1], self.half.shape[1]
        with np.errstate(invalid="ignore"):  # infinite times zero
            rest = size @ other.rest + self.rest @ (others + by + other.rest) + moved @ (by + other.rest)
        rest += (2 * n + k + 6) * UNIT * ((size + moved) @ (others + by))
        return Affine(c @ other.centre, slopes, self.half, rest * MORE + TINY)

    def or_less(self, other: Affine) -> Affine:
        """Of each entry the bounds with the smaller remainder."""
        less = other.rest < self.rest
        slopes = np.where(less[:, None], other.slopes, self.slopes)
        centre, rest = np.where(less, other.centre, self.centre), np.where(less, other.rest, self.rest)
        return Affine(centre, slopes, self.half, rest)

    def __getitem__(self, at: Any) -> Affine:
        rows, columns = at
        parts = [A[..., rows, :][..., columns] for A in (self.centre, self.slopes, self.rest)]
        return Affine(parts[0], parts[1], self.half, parts[2])

    @property
    def T(self) -> Affine:
        """Transposes."""
        centre, slopes, rest = (np.swapaxes(A, -1, -2) for A in (self.centre, self.slopes, self.rest))
        return Affine(centre, slopes, self.half, rest)

    @property
    def known(self) -> Array:
        """Where bounds are finite (n,)."""
        return np.asarray(np.isfinite(self.rest).all(axis=(-1, -2)))

    def _corners(self) -> Array:
        return np.array(list(product((-1.0, 1.0), repeat=self.half.shape[1])))

    def _size(self) -> Array:
        return np.asarray((np.abs(self.centre) + np.einsum("nkrc,nk->nrc", np.abs(self.slopes), self.half)) * MORE)

    def largest(self) -> Array:
        """Upper bounds (n,) of the largest singular value; infinite where nothing is known."""
        size, k, r = self._size(), self.half.shape[1], self.centre.shape[1]
        at_corner = np.einsum("vk,nk,nkrc->nvrc", self._corners(), self.half, self.slopes) + self.centre[:, None]
        wrong = (k + 3) * UNIT * size
        gram = np.swapaxes(at_corner, -1, -2) @ at_corner
        off = (r + 2) * UNIT * (np.swapaxes(size, -1, -2) @ size)
        _, upper = eigenvalue_bounds(gram)
        squared = upper.max(axis=1) + _norm(off)
        rest = np.where(self.known[:, None, None], self.rest, 0.0)
        found = (np.sqrt(np.maximum(squared, 0.0)) + _norm(rest + wrong)) * MORE
        return np.where(self.known, found, np.inf)

    def smallest(self) -> Array:
        """Lower bounds (n,) of the smallest singular value, counting as many as columns.

        With L the affine part, L^T L is its value at the centre, plus a part that is affine in the parameters, plus a
        positive semidefinite one, which is left out.
        """
        size, k, r = self._size(), self.half.shape[1], self.centre.shape[1]
        turned = np.swapaxes(self.centre, -1, -2)
        gram = turned @ self.centre
        tilt = turned[:, None] @ self.slopes
        tilt = tilt + np.swapaxes(tilt, -1, -2)
        at_corner = np.einsum("vk,nk,nkrc->nvrc", self._corners(), self.half, tilt) + gram[:, None]
        off = (r + k + 6) * UNIT * 3.0 * (np.swapaxes(size, -1, -2) @ size)
        lower, _ = eigenvalue_bounds(at_corner)
        squared = lower.min(axis=1) - _norm(off)
        rest = np.where(self.known[:, None, None], self.rest, 0.0)
        root = np.sqrt(np.maximum(squared, 0.0)) * (1.0 - 4.0 * UNIT)
        return np.where(self.known, np.maximum(root - _norm(rest) * MORE, 0.0), 0.0)

    def regularity(self) -> Array:
        """One less the growth of v (n,), positive where all matrices over the box have full column rank; at most 1.

        With C the pseudo-inverse at the centre, C A differs from 1 by a matrix of which P bounds all entries. Where
        P v < v for a vector of positive numbers, the spectral radius of P is below one, and C A regular.
        """
        known = self.known[:, None, None]
        C = np.asarray(np.linalg.pinv(self.centre), dtype=float)
        c = C.shape[1]
        here = Form.exactly(C) @ Form(self.centre, np.where(known, self.rest, 0.0))
        P = (here + -Form.exactly(np.broadcast_to(np.eye(c), here.middle.shape))).magnitude
        tilt = Form.exactly(C[:, None]) @ Form.exactly(self.slopes)
        P = (P + np.einsum("nkrc,nk->nrc", tilt.magnitude, self.half)) * MORE
        v = np.ones((len(C), c, 1))
        for _ in range(8):
            v = P @ v + 1e-6 * v.max(axis=1, keepdims=True)
            v = v / v.max(axis=1, keepdims=True)
        return np.where(self.known, 1.0 - ((P @ v) / v).max(axis=(1, 2)) * MORE, -np.inf)

    def form(self) -> Form:
        """All matrices over the box."""
        sloped = np.einsum("nkrc,nk->nrc", np.abs(self.slopes), self.half)
        return Form(self.centre, (sloped + self.rest) * MORE + TINY)


def eigenvalue_bounds(A: Array) -> tuple[Array, Array]:
    """Lower bounds of the smallest and upper bounds of the largest eigenvalue of symmetric A (..., n, n), finite.

    With V the computed eigenvectors and l the values, A is V l V^T plus a residual, which moves eigenvalues by its norm
    at most (Weyl); and V l V^T has the eigenvalues l but for factors within the norm of V^T V - 1 of one (Ostrowski).
    """
    n = A.shape[-1]
    symmetric = 0.5 * (A + np.swapaxes(A, -1, -2))
    values, V = np.linalg.eigh(symmetric)
    size = np.abs(V)
    turned, sizes = np.swapaxes(V, -1, -2), np.swapaxes(size, -1, -2)
    residual = np.abs(symmetric - (V * values[..., None, :]) @ turned)
    residual += (n + 4) * UNIT * ((size * np.abs(values)[..., None, :]) @ sizes + np.abs(symmetric))
    residual += np.abs(symmetric - A) * MORE + 2.0 * UNIT * np.abs(A)
    unit = np.abs(turned @ V - np.eye(n)) + (n + 4) * UNIT * (sizes @ size)
    off = (_norm(residual) + np.abs(values).max(axis=-1) * _norm(unit)) * MORE + TINY
    return values[..., 0] - off, values[..., -1] + off


def solve(A: Form, b: Form) -> Form:
    """All solutions of A x = b, (..., n, n) and (..., n, c); of infinite radius where a matrix may be singular."""
    n = A.middle.shape[-1]
    safe = np.where(np.isfinite(A.spread).all(axis=(-1, -2), keepdims=True), A.middle, np.eye(n))
    with np.errstate(all="ignore"):
        C = _inverse(safe)
    defect = Form.exactly(np.broadcast_to(np.eye(n), C.shape)) + -(Form.exactly(C) @ A)
    first = Form.exactly(C) @ b
    with np.errstate(invalid="ignore", over="ignore"):
        radius = (first.spread + defect.magnitude @ fixed_point(defect.magnitude, first.magnitude)) * MORE + TINY
    good = np.isfinite(radius)
    return Form(np.where(good, first.middle, 0.0), np.where(good, radius, np.inf))


def fixed_point(E: Array, size: Array) -> Array:
    """Upper bounds (..., n, c) of all x with |x| <= size + E |x|; infinite columns where E may be no contraction."""
    with np.errstate(invalid="ignore", over="ignore"):
        least = size + FLOOR * size.max(axis=-2, keepdims=True) + TINY
        most, power = least, E
        for _ in range(DOUBLINGS):  # the sum of E^k least
            most, power = most + power @ most, power @ power
        most = most * (1.0 + FLOOR)
        good = ((least + E @ most) * MORE <= most).all(axis=-2, keepdims=True)  # so E < 1, and all x are within
        for _ in range(2):
            most = np.minimum(most, (size + E @ most) * MORE)
    return np.where(good & np.isfinite(most), most, np.inf)


def solve_affine(A: Affine, b: Affine) -> Affine:
    """All solutions (n, r, c) of A x = b over boxes, to the second order in their size; infinite `rest` if singular.

    x differs from that at the centre, x_c, by the solution for the right side (b - b_c) - (A - A_c) x_c.
    """
    over = A.form()
    roughly = solve(over, b.form())
    here = solve(Form.exactly(A.centre), Form.exactly(b.centre))
    change = Form.exactly(b.slopes) + -(Form.exactly(A.slopes) @ roughly[:, None])
    slopes = solve(Form(over.middle[:, None], over.radius[:, None]), change)
    with np.errstate(invalid="ignore"):
        rest = (b.rest + A.rest @ roughly.magnitude) * MORE
        left = solve(over, Form(np.zeros_like(here.middle), rest)).magnitude
        radius = here.radius + np.einsum("nkrc,nk->nrc", slopes.radius, A.half) + left
    return Affine(here.middle, slopes.middle, A.half, np.where(np.isfinite(radius), radius * MORE, np.inf))


def least_squares(K: Affine, b: Affine) -> Form:
    """The least squares solutions x (n, f, c) of K x = b over boxes, for tall matrices (n, m, f)."""
    m = K.centre.shape[1]
    if m == K.centre.shape[2]:
        return solve_affine(K, b).form()
    return solve_affine(_augmented(K), _padded(b, (0, K.centre.shape[2]))).form()[:, m:]


def least_norm(K: Affine, b: Affine) -> Form:
    """The x (n, m, c) of least norm with K^T x = b over boxes, for tall matrices (n, m, f)."""
    m = K.centre.shape[1]
    if m == K.centre.shape[2]:
        return solve_affine(K.T, b).form()
    return solve_affine(_augmented(K), _padded(b, (m, 0))).form()[:, :m]


def less(b: Affine, A: Affine, x: Array) -> Affine:
    """b - A x over boxes, for b (n, r, c), A (n, r, m) and x (m, c)."""
    there = Form.exactly(x)
    centre = Form.exactly(b.centre) + -(Form.exactly(A.centre) @ there)
    slopes = Form.exactly(b.slopes) + -(Form.exactly(A.slopes) @ there)
    rest = b.rest + A.rest @ np.abs(x) + centre.radius + np.einsum("nkrc,nk->nrc", slopes.radius, A.half)
    return Affine(centre.middle, slopes.middle, A.half, rest * MORE + TINY)


def _augmented(K: Affine) -> Affine:
    m, f = K.centre.shape[1:]

    def square(A: Array, unit: Array) -> Array:
        whole = np.zeros((*A.shape[:-2], m + f, m + f))
        whole[..., :m, :m] = unit
        whole[..., :m, m:] = A
        whole[..., m:, :m] = np.swapaxes(A, -1, -2)
        return whole

    none = np.zeros((m, m))
    return Affine(square(K.centre, np.eye(m)), square(K.slopes, none), K.half, square(K.rest, none))


def _padded(b: Affine, rows: tuple[int, int]) -> Affine:
    def pad(A: Array) -> Array:
        return np.pad(A, [*[(0, 0)] * (A.ndim - 2), rows, (0, 0)])

    return Affine(pad(b.centre), pad(b.slopes), b.half, pad(b.rest))


def _inverse(A: Array) -> Array:
    n = A.shape[-1]
    values = np.linalg.svd(A, compute_uv=False)
    regular = values[..., -1] > 1e-14 * values[..., 0]
    return np.asarray(np.linalg.inv(np.where(regular[..., None, None], A, np.eye(n))))


def _norm(A: Array) -> Array:
    return np.asarray(np.sqrt((A * A).sum(axis=(-1, -2))) * MORE + TINY)
