// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/format/safetensors.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::apps {

// The input tensors of one operator, asked for by name; what nobody asked for is refused at the end.
class Inputs {
 public:
  // where names the operator in errors ("op attention").
  Inputs(std::string where, const format::SafetensorsFile& file) : where_(std::move(where)), file_(file) {}

  // Throws: Error (usage) naming the input if it is not in the file.
  tensor::TensorView required(const std::string& name);
  // A floating tensor.
  tensor::TensorView required_floating(const std::string& name);
  // Whole numbers, one for each row of the batch.
  std::optional<std::vector<int64_t>> find_counts(const std::string& name, size_t batch);
  // Nothing if absent.
  std::optional<tensor::TensorView> find(const std::string& name);
  std::optional<tensor::TensorView> find_floating(const std::string& name);

  // Throws: Error (usage) for a tensor of the file that was not asked for.
  void check_all_known() const;

  // Throws: Error (usage) unless the tensor has this shape; meaning says it in words ("[batch, key, kdim]").
  void check_shape(std::string_view name, const tensor::TensorView& view, const tensor::Shape& shape,
                   std::string_view meaning) const;
  [[noreturn]] void refuse_shape(std::string_view name, const tensor::TensorView& view,
                                 std::string_view expected) const;

 private:
  tensor::TensorView floating(const std::string& name, const tensor::TensorView& view) const;

  std::string where_;
  const format::SafetensorsFile& file_;
  std::set<std::string> asked_;
};

// The outputs of one operator: which are wanted, then what they are.
class Outputs {
 public:
  // wanted: what the user named, or nothing for the defaults.
  // Throws: Error (usage) for a name that is not among names or is given twice.
  Outputs(const std::string& where, const std::vector<std::string>& wanted, std::span<const std::string_view> names,
          std::span<const std::string_view> defaults);

  bool wants(std::string_view name) const;
  // Keeps the tensor if it is wanted, converted to dtype.
  void add(std::string_view name, const tensor::TensorView& values, tensor::DType dtype);
  // One that was added.
  const tensor::Tensor& get(const std::string& name) const { return tensors_.at(name); }
  // Throws: Error (failure) if the file cannot be written.
  void write(const std::filesystem::path& path) const;

 private:
  std::vector<std::string> wanted_;
  std::map<std::string, tensor::Tensor> tensors_;
};

// Numbers as a run in that precision reads them: F32 or F64, an aligned copy.
tensor::Tensor to_real(const tensor::TensorView& view, tensor::DType real);

// The type that a first input is computed in: F64 in double, every other in float.
tensor::DType real_of(tensor::DType first);

// An F64 tensor of these numbers.
tensor::Tensor from_doubles(std::span<const double> values, tensor::Shape shape);

// Rows of a followed by rows of b along axis 1: [batch, a, ...] and [batch, b, ...] become [batch, a + b, ...].
// Both of one type, with equal other axes.
tensor::Tensor join_positions(const tensor::Tensor& a, const tensor::Tensor& b);

// Axes 1 and 2 exchanged: [a, b, c, d] becomes [a, c, b, d].
tensor::Tensor swap_middle_axes(const tensor::Tensor& values);

}  // namespace clearhead::apps
