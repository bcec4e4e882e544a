// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "clearhead/linear/half_panels.h"
#include "clearhead/linear/integer_panels.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::linear {

// One linear map as a file stores it.
struct LinearParameters {
  tensor::TensorView weight;               // [out, in], or [in, out] if transposed; any floating type, any alignment
  std::optional<tensor::TensorView> bias;  // [out], any floating type
  bool transposed = false;                 // [in, out] is how GPT-2 stores them ("Conv1D")
};

// The parameters of y = x W^T + b, packed once for the product: panels of 16 outputs, the last one filled up with
// zeros, in the type that they are stored in: F32, F16, BF16 or integers with scales; F64, and parts of several types,
// in F32. Movable; what it was made from is not needed any more.
class PackedLinear {
 public:
  PackedLinear() = default;
  // Throws: Error if a type is not floating, weight is not [out, in] with both at least 1, or bias is not [out].
  explicit PackedLinear(const tensor::TensorView& weight, const std::optional<tensor::TensorView>& bias = std::nullopt,
                        bool transposed = false);

  // Several maps of the same input as one: their outputs one after the other. A part without bias has bias 0 if another
  // has one. Throws: Error as above, also if there is no part or their inputs differ.
  static PackedLinear stack(std::span<const LinearParameters> parts);

  // Parameters of few bits stay so. Output i is row row_of(i) of weight [rows, in], and element row_of(i) of bias.
  // Throws: Error as above.
  static PackedLinear from_blocks(const tensor::BlockView& weight, const std::optional<tensor::TensorView>& bias,
                                  size_t outputs, const std::function<size_t(size_t i)>& row_of);

  size_t in_features() const { return in_features_; }
  size_t out_features() const { return out_features_; }
  size_t bytes() const;  // what it keeps in memory

  std::span<const float> panels() const;                       // [ceil(out / 16), in, 16]; empty unless they are floats
  const HalfPanels& halves() const { return halves_; }         // empty unless they are F16 or BF16
  const IntegerPanels& integers() const { return integers_; }  // empty unless they are integers
  // The panels as floats, in room if they are something else.
  std::span<const float> panels_as_floats(std::vector<float>& room) const;
  std::span<const float> bias() const { return bias_; }  // [out], empty if there is none

  // One parameter, for those who want to look at it. out < out_features(), in < in_features().
  float weight_at(size_t out, size_t in) const;
  float bias_at(size_t out) const { return bias_.empty() ? 0.0f : bias_[out]; }

 private:
  struct Free {
    void operator()(float* panels) const { std::free(panels); }
  };

  size_t in_features_ = 0, out_features_ = 0;
  std::unique_ptr<float[], Free> panels_;
  HalfPanels halves_;
  IntegerPanels integers_;
  std::vector<float> bias_;
};

}  // namespace clearhead::linear
