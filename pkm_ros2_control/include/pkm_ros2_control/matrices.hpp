// SPDX-License-Identifier: Apache-2.0
// Matrices are row by row, and as small as robots are.
#ifndef PKM_ROS2_CONTROL__MATRICES_HPP_
#define PKM_ROS2_CONTROL__MATRICES_HPP_

#include <algorithm>
#include <cmath>

namespace pkm_ros2_control
{
// a += scale * A b, of A `rows` x `columns`
inline void add_product(int rows, int columns, const double * A, const double * b, double scale, double * a)
{
  for (int i = 0; i < rows; ++i)
    for (int k = 0; k < columns; ++k) a[i] += scale * A[i * columns + k] * b[k];
}

// B = A^-1 B by Gauss-Jordan with pivoting, A n x n, which is overwritten, B n x m; false where A is singular.
inline bool solve(int n, int m, double * A, double * B)
{
  constexpr double singular_below = 1e-12;  // pivot beside the largest: the exported functions refuse long before
  double largest = 0.0;
  for (int k = 0; k < n * n; ++k) largest = std::max(largest, std::fabs(A[k]));
  for (int c = 0; c < n; ++c)
  {
    int p = c;
    for (int i = c + 1; i < n; ++i)
      if (std::fabs(A[i * n + c]) > std::fabs(A[p * n + c])) p = i;
    if (!(std::fabs(A[p * n + c]) > singular_below * largest)) return false;
    if (p != c)
    {
      std::swap_ranges(A + c * n, A + c * n + n, A + p * n);
      std::swap_ranges(B + c * m, B + c * m + m, B + p * m);
    }
    for (int i = 0; i < n; ++i)
    {
      const double factor = i == c ? 0.0 : A[i * n + c] / A[c * n + c];
      for (int k = 0; k < n; ++k) A[i * n + k] -= factor * A[c * n + k];
      for (int k = 0; k < m; ++k) B[i * m + k] -= factor * B[c * m + k];
    }
  }
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < m; ++k) B[i * m + k] /= A[i * n + i];
  return true;
}
}  // namespace pkm_ros2_control

#endif  // PKM_ROS2_CONTROL__MATRICES_HPP_
