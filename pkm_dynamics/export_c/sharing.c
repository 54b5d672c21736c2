/* SPDX-License-Identifier: Apache-2.0 */
/* Drives that only pull, or only push, share a load as in `pkm_dynamics/kernels/sharing.py`: from efforts of least
   norm, and an orthonormal basis of the FREE efforts that do no work together, both recorded. */
//// SHARE
/* Solves A x = b for the leading n rows, by Cholesky; x replaces b. 0 where A is not positive definite. */
static int solve_positive(REAL A[FREE][FREE], REAL b[FREE], int n)
{
    for (int c = 0; c < n; c++) {
        for (int k = 0; k < c; k++)
            A[c][c] -= A[c][k] * A[c][k];
        if (!(A[c][c] > ZERO))
            return 0;
        A[c][c] = SQRT(A[c][c]);
        for (int r = c + 1; r < n; r++) {
            for (int k = 0; k < c; k++)
                A[r][c] -= A[r][k] * A[c][k];
            A[r][c] /= A[c][c];
        }
    }
    for (int r = 0; r < n; r++) {
        for (int k = 0; k < r; k++)
            b[r] -= A[r][k] * b[k];
        b[r] /= A[r][r];
    }
    for (int r = n - 1; r >= 0; r--) {
        for (int k = r + 1; k < n; k++)
            b[r] -= A[k][r] * b[k];
        b[r] /= A[r][r];
    }
    return 1;
}

/* Efforts of least norm within the drives' bounds that do the same work as `effort`, which they replace: by the dual
   method of Goldfarb and Idnani (1983). Row i of `null` is what drive i adds per unit of each effort without work. */
static int share(const REAL null[M * FREE], REAL effort[M])
{
    REAL z[FREE] = {ZERO}, step[FREE], normal[FREE], way[FREE], price[FREE], side[FREE], gram[FREE][FREE];
    REAL size = TINY;
    int held[FREE], count = 0;
    for (int i = 0; i < M; i++)
        size = larger(size, FABS(effort[i]));
    for (int changes = 0; changes < 200; changes++) {
        REAL worst = ZERO, sign = ONE;
        int chosen = -1, known = 0;
        for (int i = 0; i < M; i++) {
            REAL value = effort[i], length = ZERO;
            for (int c = 0; c < FREE; c++) {
                value += null[i * FREE + c] * z[c];
                length += null[i * FREE + c] * null[i * FREE + c];
            }
            const REAL below = effort_lower[i] - value, above = value - effort_upper[i];
            const REAL over = larger(below, above);
            if (over <= BROKEN * (FABS(value) + size))
                continue;
            if (!(length > ZERO))
                return PKM_EFFORT_LIMIT;
            if (over * over > worst * length) {
                worst = over * over / length;
                chosen = i;
                sign = below > above ? ONE : -ONE;
            }
        }
        for (int a = 0; a < count; a++) /* a bound that is held already: what is left is rounding */
            known = known || (held[a] == chosen && side[a] * sign > ZERO);
        if (chosen < 0 || known) {
            for (int i = 0; i < M; i++) {
                for (int c = 0; c < FREE; c++)
                    effort[i] += null[i * FREE + c] * z[c];
                effort[i] = smaller(larger(effort[i], effort_lower[i]), effort_upper[i]);
            }
            return PKM_OK;
        }
        for (int c = 0; c < FREE; c++)
            normal[c] = sign * null[chosen * FREE + c];
        REAL paid = ZERO;
        int full = 0;
        for (int tries = 0; tries < M + FREE + 1 && !full; tries++) {
            for (int a = 0; a < count; a++) { /* how the bound leans on those that are held */
                step[a] = ZERO;
                for (int c = 0; c < FREE; c++)
                    step[a] += side[a] * null[held[a] * FREE + c] * normal[c];
                for (int b = 0; b <= a; b++) {
                    gram[a][b] = ZERO;
                    for (int c = 0; c < FREE; c++)
                        gram[a][b] += side[a] * side[b] * null[held[a] * FREE + c] * null[held[b] * FREE + c];
                }
            }
            if (count > 0 && !solve_positive(gram, step, count))
                return PKM_DIVERGED;
            REAL free = ZERO, whole = ZERO, most = HUGE_VAL, value = effort[chosen];
            int blocked = -1;
            for (int c = 0; c < FREE; c++) {
                way[c] = normal[c];
                for (int a = 0; a < count; a++)
                    way[c] -= step[a] * side[a] * null[held[a] * FREE + c];
                free += way[c] * way[c];
                whole += normal[c] * normal[c];
                value += null[chosen * FREE + c] * z[c];
            }
            for (int a = 0; a < count; a++)
                if (step[a] > ZERO && price[a] / step[a] < most) {
                    blocked = a;
                    most = price[a] / step[a];
                }
            const int movable = free > BROKEN * whole && count < FREE;
            if (!movable && blocked < 0)
                return PKM_EFFORT_LIMIT;
            const REAL gap = sign > ZERO ? effort_lower[chosen] - value : value - effort_upper[chosen];
            REAL length = movable ? gap / free : HUGE_VAL;
            full = length <= most;
            length = full ? length : most;
            for (int c = 0; c < FREE && movable; c++)
                z[c] += length * way[c];
            for (int a = 0; a < count; a++)
                price[a] -= length * step[a];
            paid += length;
            if (full) {
                held[count] = chosen;
                side[count] = sign;
                price[count] = paid;
                count++;
            } else {
                count--;
                for (int a = blocked; a < count; a++) {
                    held[a] = held[a + 1];
                    side[a] = side[a + 1];
                    price[a] = price[a + 1];
                }
            }
        }
        if (!full)
            return PKM_DIVERGED;
    }
    return PKM_DIVERGED;
}
