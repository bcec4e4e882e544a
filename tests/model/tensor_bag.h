// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "clearhead/format/checkpoint.h"
#include "clearhead/format/safetensors.h"
#include "clearhead/tensor/tensor.h"
#include "tests/support/temporary_folder.h"

namespace clearhead::model {

// A checkpoint in the making: tensors by name and a config.json, written to a folder of its own.
class TensorBag {
 public:
  // Normal numbers of the given spread around the given middle, of a fixed seed.
  void add(const std::string& name, tensor::Shape shape, float spread = 0.3f, float middle = 0) {
    tensor::Tensor values(std::move(shape));
    std::normal_distribution<float> normal(middle, spread);
    for (float& value : values.as<float>()) value = normal(random_);
    put(name, std::move(values));
  }
  void put(const std::string& name, tensor::Tensor values) { tensors_.insert_or_assign(name, std::move(values)); }
  void remove(const std::string& name) { tensors_.erase(name); }
  void rename(const std::string& from, const std::string& to) { tensors_.insert_or_assign(to, take(from)); }
  tensor::Tensor take(const std::string& name) { return std::move(tensors_.extract(name).mapped()); }
  const std::map<std::string, tensor::Tensor>& tensors() const { return tensors_; }

  // The values of one tensor in double, without gaps.
  std::vector<double> doubles(const std::string& name) const {
    const auto values = tensors_.at(name).as<float>();
    return {values.begin(), values.end()};
  }

  // Writes everything and opens it again. Without a config no config.json is written.
  std::shared_ptr<const format::Checkpoint> checkpoint(const std::string& config = "") const {
    std::vector<format::NamedTensor> named;
    for (const auto& [name, values] : tensors_) named.push_back({name, values});
    format::write_safetensors(folder_ / "model.safetensors", named);
    if (!config.empty()) tests::write_bytes(folder_ / "config.json", config);
    return std::make_shared<const format::Checkpoint>(format::Checkpoint::open(folder_.path()));
  }

  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  tests::TemporaryFolder folder_;
  std::map<std::string, tensor::Tensor> tensors_;
  std::mt19937 random_{20263};
};

}  // namespace clearhead::model
