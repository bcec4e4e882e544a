// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <vector>

#include "clearhead/base/parallel.h"
#include "clearhead/linear/linear.h"
#include "clearhead/model/parameters.h"
#include "clearhead/model/rotary.h"

namespace clearhead::engine {

// Half a unit in the last place of 1: the relative error of one rounding to float.
constexpr double kRounding = 0x1p-24;
// Below the smallest normal float a result may be lost altogether.
constexpr double kSmallest = 0x1p-126;

// A stage recomputed in double, and how far the same computation in float may be away from it.
struct Bounded {
  std::vector<double> values;
  std::vector<double> bounds;  // [values.size()]; 0: every bit must agree

  explicit Bounded(size_t count) : values(count), bounds(count) {}
};

// What a sum of count products may be off: (count + 8) 2^-24 sum|terms| + 2^-126.
inline double sum_bound(size_t count, double magnitude) {
  return (static_cast<double>(count) + 8) * kRounding * magnitude + kSmallest;
}

// sum_i |a_i b_i|. Shapes: a, b [count].
double magnitude_of(std::span<const double> a, std::span<const double> b);

// parallel_for, but in place where all of it together takes so few steps that waking the threads takes longer.
template <class Body>
void for_each_unit(size_t units, size_t steps_per_unit, const Body& body) {
  constexpr size_t kFewSteps = 1 << 15;
  if (units * steps_per_unit > kFewSteps) return base::parallel_for(units, body);
  for (size_t unit = 0; unit < units; ++unit) body(unit);
}

// values, copied without a rounding.
Bounded exactly(std::span<const double> values);

// The sum of the terms, element by element. Shapes: each term [count].
Bounded add(std::initializer_list<std::span<const double>> terms);

// Rows of input through chosen outputs of a linear map, the inner dimension cut to [first, first + depth):
//
//   y_row,o = sum_k x_row,k W[outputs_o, first + k] + b[outputs_o]
//
// What the input may be off is carried through; empty: nothing.
// Shapes: input, input_bounds [rows, depth], outputs [n] indices of the map's outputs, result [rows, n].
struct Projection {
  const linear::PackedLinear& parameters;
  std::span<const size_t> outputs;
  size_t first, depth;
  bool with_bias;
};
Bounded project(std::span<const double> input, size_t rows, const Projection& projection,
                std::span<const double> input_bounds = {});

// Layer norm of every row; what x may be off is carried through it to first order:
//
//   |dy_i| <= |gain_i| / sqrt(variance + epsilon) (dx_i + mean(dx) + |n_i| mean(|n| dx)),   n = normalised x
//
// and the error that kernels/layer_norm.h states is added. Without biases it is an RMS norm: the same without means,
// with the error of kernels/rms_norm.h. Shapes: x and result [rows, d_model].
Bounded norm(const Bounded& x, const model::NormParameters& parameters, double epsilon);

// activation(x): what x may be off times the steepest slope, and the error that kernels/activation.h states.
Bounded activate(Bounded x, linear::Activation activation);

// The product, element by element, with what both may be off. Shapes: a, b [count].
Bounded multiply(const Bounded& a, const Bounded& b);

// Every head turned by the turn of its row: what the values may be off turns with them, and the error that
// kernels/rotary.h states is added. Shapes: x [seq, heads, head_dim].
Bounded turn(const Bounded& x, size_t heads, size_t head_dim, const model::RotaryTable& table);

}  // namespace clearhead::engine
