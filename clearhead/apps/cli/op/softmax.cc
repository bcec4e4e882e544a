// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "clearhead/apps/cli/op/operators.h"
#include "clearhead/base/error.h"

namespace clearhead::apps {
namespace {

// One line of count values, each stride behind the one before, in place.
void softmax_line(double* line, size_t count, size_t stride) {
  double largest = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < count; ++i) largest = std::fmax(largest, line[i * stride]);
  double sum = 0;
  for (size_t i = 0; i < count; ++i) {
    double& value = line[i * stride];
    if (std::isinf(value) && value < 0) {
      value = 0;
      continue;
    }
    value = std::exp(value - largest);
    sum += value;
  }
  for (size_t i = 0; i < count && sum != 0; ++i) line[i * stride] /= sum;
}

}  // namespace

Outputs softmax_operator(const OpRequest& request, Inputs& inputs, Attributes& attributes) {
  const std::string where = "op softmax";
  const int64_t asked = attributes.integer("axis").value_or(-1);
  attributes.check_all_known();
  const tensor::TensorView input = inputs.required_floating("input");
  inputs.check_all_known();
  const std::array<std::string_view, 1> names = {"output"};
  Outputs outputs(where, request.outputs, names, names);

  const tensor::Shape& shape = input.shape();
  const auto rank = static_cast<int64_t>(shape.rank());
  if (asked < -rank || asked >= rank) {
    base::refuse(where, fmt::format("axis from {} to {} for input {}", -rank, rank - 1, shape.text()),
                 fmt::format("{}", asked));
  }
  const auto axis = static_cast<size_t>(asked < 0 ? asked + rank : asked);
  tensor::Tensor values = tensor::to_dtype(input, tensor::DType::f64);
  size_t stride = 1;
  for (size_t inner = axis + 1; inner < shape.rank(); ++inner) stride *= shape[inner];
  const size_t count = shape[axis], lines = count == 0 ? 0 : values.elements() / count;
  for (size_t line = 0; line < lines; ++line) {
    softmax_line(values.as<double>().data() + line / stride * stride * count + line % stride, count, stride);
  }
  outputs.add("output", values, input.dtype());
  return outputs;
}

}  // namespace clearhead::apps
