# SPDX-License-Identifier: Apache-2.0
"""Prints the coefficients of clearhead/kernels/elementary-inl.h (all but those of exp2). Needs numpy and mpmath.

Each function is fitted by a polynomial of least largest relative error (Lawson's reweighted least squares on a Chebyshev
grid); coefficients are rounded to float one after the other, lowest power first, and the rest fitted again.

    python tests/kernels/golden/fit_elementary.py
"""

import mpmath as mp
import numpy as np

mp.mp.dps = 40


def least_largest_error(target, weight, powers, low, high, points=1500, rounds=300):
    grid = (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * (np.arange(points) + 0.5) / points)
    weights = np.array([weight(x) for x in grid])
    matrix = np.array([[x**k for k in powers] for x in grid]) * weights[:, None]
    values = np.array([float(target(mp.mpf(x))) for x in grid]) * weights
    emphasis = np.ones(points) / points
    for _ in range(rounds):
        root = np.sqrt(emphasis)
        solution = np.linalg.lstsq(matrix * root[:, None], values * root, rcond=None)[0]
        emphasis *= np.abs(matrix @ solution - values)
        emphasis /= emphasis.sum()
    return solution


def fit(name, target, weight, degree, low, high):
    """Fits sum_k c_k x^k to target over [low, high], errors counted times weight."""
    done = []
    for k in range(degree + 1):
        rest = lambda x: target(x) - sum(mp.mpf(c) * x**i for i, c in enumerate(done))
        solution = least_largest_error(rest, weight, range(k, degree + 1), low, high)
        done.append(float(np.float32(solution[0])))
    error = max(
        abs(float(target(mp.mpf(x)) - sum(mp.mpf(c) * mp.mpf(x) ** i for i, c in enumerate(done))) * weight(x))
        for x in np.linspace(low, high, 3001)
    )
    print(f"{name}: error {error:.1e}", [np.format_float_scientific(np.float32(c)) for c in done])


def log2_ratio(f):  # log2(1 + f) / f
    return mp.log1p(f) / mp.log(2) / f if f != 0 else 1 / mp.log(2)


def tanh_rest(z):  # (tanh(x) / x - 1) / z, z = x^2
    return (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z


def erf_rest(z):  # erf(x) / x - 1, z = x^2
    return mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1


def scaled_erfc(s):  # erfc(y) e^(y^2) (y + 2), s = (y - 2) / (y + 2)
    y = 2 * (1 + s) / (1 - s)
    return mp.erfc(y) * mp.exp(y * y) * (y + 2)


fit("log2", log2_ratio, lambda f: 1 / float(log2_ratio(mp.mpf(f))), 8, np.sqrt(0.5) - 1, np.sqrt(2) - 1)
fit("tanh", tanh_rest, lambda z: z, 4, 1e-9, 0.36)
fit("erf", erf_rest, lambda z: 1 / (1 + float(erf_rest(mp.mpf(z)))), 6, 1e-9, 1.0)
fit("erfc", scaled_erfc, lambda s: 1 / float(scaled_erfc(mp.mpf(s))), 8, -1.0, (9.4 - 2) / (9.4 + 2))
