// SPDX-License-Identifier: Apache-2.0
// exp2, log2, tanh, erfc and the activations on vectors, for other kernels: the same operations on every target.
// Errors and bits are those of the array forms in elementary.h and activation.h.
// Coefficients: minimax fits in the relative error, made by tests/kernels/golden/fit_elementary.py; those of exp2 with
// the constant held at 1.
#if defined(CLEARHEAD_KERNELS_ELEMENTARY_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CLEARHEAD_KERNELS_ELEMENTARY_INL_H
#undef CLEARHEAD_KERNELS_ELEMENTARY_INL_H
#else
#define CLEARHEAD_KERNELS_ELEMENTARY_INL_H
#endif

#include <hwy/highway.h>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "clearhead/kernels/exp2_coefficients.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// c[0] + x (c[1] + x (c[2] + ...))
template <class D, class V, size_t kCount>
HWY_INLINE V polynomial(D d, V x, const float (&c)[kCount]) {
  V sum = hn::Set(d, c[kCount - 1]);
  for (size_t i = kCount - 1; i-- > 0;) sum = hn::MulAdd(sum, x, hn::Set(d, c[i]));
  return sum;
}

// 2^t for t < 127.5: 1 exactly at 0, exactly 0 below -126 and at -inf, NaN stays NaN.
// t = n + f with integer n and |f| <= 1/2; 2^f by a polynomial, 2^n by its bits.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp2_below_127(D d, V t) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  if constexpr (hn::MaxLanes(d) == 16) {  // the same numbers by fewer instructions, which only AVX-512 has
    const V whole = hn::Round(t);
    const V fraction = polynomial(d, hn::Sub(t, whole), kExp2Coefficients);
    const auto kept = _mm512_cmp_ps_mask(t.raw, _mm512_set1_ps(-126.0f), _CMP_NLT_UQ);
    return V{_mm512_maskz_scalef_ps(kept, fraction.raw, whole.raw)};
  }
#endif
  const hn::RebindToUnsigned<D> bits;
  const V shifter =
      hn::Set(d, 0x1.8p23f + 127.0f);  // sums near 1.5 * 2^23 have steps of 1: rounds, and the last bits are n + 127
  const V shifted = hn::Add(t, shifter);
  const V fraction = hn::Sub(t, hn::Sub(shifted, shifter));
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(bits, shifted)));
  const V result = hn::Mul(polynomial(d, fraction, kExp2Coefficients), power);
  return hn::IfThenZeroElse(hn::Lt(t, hn::Set(d, -126.0f)), result);
}

// 2^t for every t: as above, and +inf from 128 on.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp2(D d, V t) {
  const auto large = hn::Gt(t, hn::Set(d, 64.0f));  // shifted by 64, exactly, to stay in the range above
  const V shift = hn::IfThenElseZero(large, hn::Set(d, 64.0f));
  const V back = hn::IfThenElse(large, hn::Set(d, 0x1p64f), hn::Set(d, 1.0f));
  const V result = hn::Mul(exp2_below_127(d, hn::Sub(t, shift)), back);
  const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  return hn::IfThenElse(hn::Ge(t, hn::Set(d, 128.0f)), infinity, result);
}

// log2 of x = m 2^k with m in [sqrt 1/2, sqrt 2): k + log2(1 + f), f = m - 1.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log2(D d, V x) {
  static constexpr float kCoefficients[] = {1.442695f,      -7.213474e-1f, 4.8090896e-1f, -3.6070058e-1f, 2.879535e-1f,
                                            -2.3901485e-1f, 2.1548076e-1f, -2.067875e-1f, 1.258435e-1f};
  const hn::RebindToSigned<D> integers;
  const auto subnormal = hn::Lt(x, hn::Set(d, 0x1p-126f));
  const V normal = hn::IfThenElse(subnormal, hn::Mul(x, hn::Set(d, 0x1p24f)), x);
  const V shift = hn::IfThenElseZero(subnormal, hn::Set(d, -24.0f));
  const auto bits = hn::BitCast(integers, normal);
  const auto exponent = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(integers, 0x3f3504f3)));  // bits of sqrt 1/2
  const V fraction = hn::Sub(hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(exponent))), hn::Set(d, 1.0f));
  const V whole = hn::Add(hn::ConvertTo(d, exponent), shift);
  V result = hn::MulAdd(fraction, polynomial(d, fraction, kCoefficients), whole);
  const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  result = hn::IfThenElse(hn::Lt(x, infinity), result, x);  // +inf and NaN are their own logarithms
  result = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), result);
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), result);
}

// tanh: x + x^3 P(x^2) for |x| < 0.6, else 1 - 2 / (e^2|x| + 1) with the sign of x.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh(D d, V x) {
  static constexpr float kCoefficients[] = {-3.33333e-1f, 1.3331936e-1f, -5.3784598e-2f, 2.0797668e-2f, -5.896135e-3f};
  const V one = hn::Set(d, 1.0f), limit = hn::Set(d, 20.0f);  // tanh(20) is 1 in float
  const V square = hn::Mul(x, x);
  const V small = hn::MulAdd(hn::Mul(x, square), polynomial(d, square, kCoefficients), x);
  const V size = hn::Abs(x);
  const V limited = hn::IfThenElse(hn::Gt(size, limit), limit, size);
  const V power = exp2_below_127(d, hn::Mul(limited, hn::Set(d, 2.88539008f)));  // 2 log2 e
  const V large = hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(power, one)));
  return hn::CopySign(hn::IfThenElse(hn::Lt(size, hn::Set(d, 0.6f)), small, large), x);  // small loses the sign of -0
}

// erfc(y) for y >= 0, given also exponent = -y^2 log2 e: 2^exponent P(s) / (y + 2), s = (y - 2) / (y + 2).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V erfc_positive(D d, V y, V exponent) {
  static constexpr float kCoefficients[] = {1.0215827f,     -6.871609e-1f,  2.7947006e-1f,
                                            -3.6435723e-2f, -2.1485878e-2f, 6.4379442e-3f,
                                            2.9829564e-3f,  -7.5372827e-4f, -4.6236435e-4f};
  const V inverse = hn::Div(hn::Set(d, 1.0f), hn::Add(y, hn::Set(d, 2.0f)));
  const V s = hn::MulAdd(inverse, hn::Set(d, -4.0f), hn::Set(d, 1.0f));
  return hn::Mul(exp2_below_127(d, exponent), hn::Mul(inverse, polynomial(d, s, kCoefficients)));
}

// erf: x + x P(x^2) for |x| < 1, else 1 - erfc(|x|) with the sign of x.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V erf(D d, V x) {
  static constexpr float kCoefficients[] = {1.2837917e-1f, -3.7612626e-1f, 1.1283579e-1f, -2.6853347e-2f,
                                            5.187162e-3f,  -7.997853e-4f,  7.806903e-5f};
  const V one = hn::Set(d, 1.0f), square = hn::Mul(x, x), size = hn::Abs(x);
  const V small = hn::MulAdd(x, polynomial(d, square, kCoefficients), x);
  const V rest = erfc_positive(d, size, hn::Mul(square, hn::Set(d, -1.44269504f)));
  return hn::CopySign(hn::IfThenElse(hn::Lt(size, one), small, hn::Sub(one, rest)), x);
}

// x Phi(x), Phi the normal distribution: from its tail Q = erfc(|x| / sqrt 2) / 2, so that small results keep their
// digits.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu(D d, V x) {
  const V y = hn::Mul(hn::Abs(x), hn::Set(d, 0.707106781f));
  const V exponent = hn::Mul(hn::Mul(x, x), hn::Set(d, -0.72134752f));  // -log2 e / 2
  const V tail = hn::Mul(hn::Set(d, 0.5f), erfc_positive(d, y, exponent));
  const V limited = hn::Min(x, hn::Set(d, 20.0f));  // the tail at 20 is 0; infinity times 0 is none
  return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::NegMulAdd(limited, tail, x), hn::Mul(x, tail));
}

// x / (1 + 2^t)
template <class D, class V = hn::Vec<D>>
HWY_INLINE V times_sigmoid(D d, V x, V t) {
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), exp2(d, t)));
}

// x sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3)), which is x / 2 (1 + tanh(sqrt(2 / pi) (...)))
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_tanh(D d, V x) {
  const V factor = hn::MulAdd(hn::Mul(x, x), hn::Set(d, -0.102943240f), hn::Set(d, -2.30220820f));
  return times_sigmoid(d, x, hn::Mul(x, factor));
}

// x sigmoid(x)
template <class D, class V = hn::Vec<D>>
HWY_INLINE V silu(D d, V x) {
  return times_sigmoid(d, x, hn::Mul(x, hn::Set(d, -1.44269504f)));
}

// max(x, 0); NaN stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V relu(D d, V x) {
  return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();
#endif
