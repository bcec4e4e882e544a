// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "clearhead/apps/cli/op/operator.h"
#include "clearhead/format/safetensors.h"
#include "clearhead/tensor/compare.h"
#include "tests/support/error_text.h"
#include "tests/support/hashed_values.h"
#include "tests/support/temporary_folder.h"

namespace clearhead::tests {

using Tensors = std::map<std::string, tensor::Tensor>;

inline tensor::Tensor numbers(tensor::Shape shape, const std::vector<float>& values) {
  tensor::Tensor tensor(std::move(shape));
  std::copy(values.begin(), values.end(), tensor.as<float>().begin());
  return tensor;
}

inline tensor::Tensor truths(tensor::Shape shape, const std::vector<bool>& values) {
  tensor::Tensor tensor(tensor::DType::bool_, std::move(shape));
  std::copy(values.begin(), values.end(), tensor.as<bool>().begin());
  return tensor;
}

inline tensor::Tensor hashed_tensor(uint64_t seed, tensor::Shape shape, float factor = 1.0f) {
  const size_t count = shape.elements();
  return numbers(std::move(shape), hashed_values(seed, count, factor));
}

inline std::vector<float> floats(const tensor::Tensor& tensor) {
  const tensor::Tensor values = tensor::to_dtype(tensor, tensor::DType::f32);
  return {values.as<float>().begin(), values.as<float>().end()};
}

// Runs an operator on tensors, by way of two files, and gives what it wrote.
class OpRun {
 public:
  Tensors operator()(const std::string& name, const Tensors& inputs, const std::string& attributes = "{}",
                     const std::vector<std::string>& outputs = {}) const {
    std::vector<format::NamedTensor> named;
    for (const auto& [input, tensor] : inputs) named.push_back({input, tensor.view()});
    format::write_safetensors(folder_ / "in", named);
    std::filesystem::remove(folder_ / "out");
    apps::run_operator({name, folder_ / "in", folder_ / "out", attributes, outputs});
    const auto file = format::SafetensorsFile::open(folder_ / "out");
    Tensors written;
    for (const auto& entry : file.entries()) written[entry.name] = tensor::clone(file.view(entry.name));
    return written;
  }

  // What is complained of; nothing must have been written then.
  std::string error(const std::string& name, const Tensors& inputs, const std::string& attributes = "{}",
                    const std::vector<std::string>& outputs = {}) const {
    const std::string text = error_text([&] { (*this)(name, inputs, attributes, outputs); });
    return text + (std::filesystem::exists(folder_ / "out") ? " (and wrote a file)" : "");
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace clearhead::tests
