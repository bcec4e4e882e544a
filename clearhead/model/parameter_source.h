// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/format/checkpoint.h"
#include "clearhead/linear/linear.h"
#include "clearhead/model/parameters.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::model {

// How a file stores the matrix of y = x W^T + b.
enum class Orientation {
  out_in,  // [outputs, inputs], as here and as PyTorch's Linear
  in_out,  // [inputs, outputs], as the Conv1D of the GPT-2 checkpoints
};

// Where a linear map stands in a file. A tensor may hold several maps side by side along its outputs (query, key and
// value in one): the one meant has the outputs [first_output, first_output + outputs) of stored_outputs.
struct StoredLinear {
  std::string weight, bias;  // names; an empty bias: the map has none
  size_t outputs = 0, inputs = 0;
  Orientation orientation = Orientation::out_in;
  size_t first_output = 0;
  size_t stored_outputs = 0;  // 0: outputs
  // Where output i is stored, if not at first_output + i; for Orientation::out_in only.
  std::function<size_t(size_t i)> row = {};
  std::optional<tensor::Shape> shape = {};  // of the matrix in the file, if its axes are others (a convolution's)
  std::string output_gain = "";             // name of numbers [outputs] that multiply outputs; empty: none
};

// The parameters of a checkpoint as a family asks for them: by name, with the shape that the config implies. What
// is packed is copied and its file pages are given back; embedding tables stay in the mapped file, which they keep
// open. It remembers what was asked for.
class ParameterSource {
 public:
  // prefix stands in front of every name in the file.
  ParameterSource(std::shared_ptr<const format::Checkpoint> checkpoint, std::string prefix);

  bool contains(std::string_view name) const { return checkpoint_->contains(prefix_ + std::string(name)); }

  // The first of the names that the file has; if it has none, the first.
  std::string first_of(std::initializer_list<std::string> names) const;

  // Throws: Error naming the tensor if it is missing, has another shape, or is of a type without fractions.
  linear::PackedLinear linear(const StoredLinear& stored);
  // The map name.weight [outputs, inputs] with the bias name.bias.
  linear::PackedLinear linear(const std::string& name, size_t outputs, size_t inputs) {
    return linear({.weight = name + ".weight", .bias = name + ".bias", .outputs = outputs, .inputs = inputs});
  }
  NormParameters norm(const std::string& gain, const std::string& bias, size_t d_model);
  // The norm of gain name.weight and bias name.bias.
  NormParameters norm(const std::string& name, size_t d_model) {
    return norm(name + ".weight", name + ".bias", d_model);
  }
  // An RMS norm, whose gain is what is stored plus offset.
  NormParameters rms_norm(const std::string& gain, size_t d_model, float offset = 0);
  // A table; leading: it is stored with one more axis, of 1.
  EmbeddingTable table(const std::string& name, size_t rows, size_t d_model, bool leading = false);
  // The map over the vocabulary, which is read when it is first asked for.
  VocabularyMap vocabulary(const std::string& name, size_t rows, size_t d_model);
  // A list of numbers, or a tensor of a shape. Throws: as above.
  std::vector<float> numbers(const std::string& name, size_t count);
  tensor::Tensor values(const std::string& name, const tensor::Shape& shape) { return take(name, shape); }

  // The file or folder, as errors name it.
  const std::string& where() const { return checkpoint_->where(); }
  // Whether the file is a GGUF, which has names and orders of its own.
  bool is_gguf() const { return checkpoint_->gguf_metadata() != nullptr; }

  // Names a tensor that is no parameter (a buffer) or belongs to a part that is not computed; with the prefix or, as
  // heads beside the body are stored, without it.
  void ignore(const std::string& name) { asked_for_.insert({prefix_ + name, name}); }

  // Names of the tensors in the file that nobody asked for.
  std::vector<std::string> unused() const;

 private:
  // Checks type, shape and scales of a tensor and remembers its name.
  void check(const std::string& name, const tensor::Shape& shape);
  // A tensor where it lies or, if its type is of blocks, its values in storage.
  tensor::TensorView find(const std::string& name, const tensor::Shape& shape, tensor::Tensor& storage);
  tensor::Tensor take(const std::string& name, const tensor::Shape& shape);
  void release(const std::string& name);

  std::shared_ptr<const format::Checkpoint> checkpoint_;
  std::string prefix_;
  std::set<std::string, std::less<>> asked_for_;
};

}  // namespace clearhead::model
