// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "clearhead/capture/selection.h"
#include "clearhead/capture/stage.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::capture {

// One token as the views know it. Offsets are bytes of the text; a special token has begin == end.
struct TraceToken {
  std::string text;
  std::string piece;
  int64_t id = 0;
  size_t begin = 0, end = 0;
  bool special = false;
  bool continues_word = false;
};

// What a trace says about itself (its __metadata__).
struct TraceInfo {
  std::string version;              // of Clearhead
  std::string model;                // as the user named it
  std::string text;                 // valid UTF-8; invalid bytes of the input stand as U+FFFD
  std::vector<TraceToken> tokens;   // [seq]
  std::string attention;            // the attention configuration, as JSON
  size_t num_layers = 0;            // of the model
  size_t num_heads = 0;             // of the model
  std::vector<size_t> layers;       // recorded layers
  std::vector<size_t> heads;        // recorded heads, in the order of the head axis
};

// What was seen of one run: tensors by stage and layer. Complete once made; views read it and never see the model.
class Trace {
 public:
  Trace() = default;
  explicit Trace(TraceInfo trace_info) : info_(std::move(trace_info)) {}

  const TraceInfo& info() const { return info_; }

  bool has(Stage stage, size_t layer = 0) const;
  // Throws: Error naming the stage if it was not recorded.
  const tensor::Tensor& tensor(Stage stage, size_t layer = 0) const;
  void add(Stage stage, size_t layer, tensor::Tensor values);
  size_t bytes() const;  // of all tensors

  // Names as in the file: "embedding", "layers.3.weights".
  static std::string tensor_name(Stage stage, size_t layer);

  // A safetensors file; appears whole or not at all. Throws: Error.
  void write(const std::filesystem::path& path) const;
  // Everything in the file is checked: names, shapes against the metadata, token list. Throws: Error.
  static Trace read(const std::filesystem::path& path);

 private:
  TraceInfo info_;
  std::map<std::pair<size_t, Stage>, tensor::Tensor> tensors_;
};

}  // namespace clearhead::capture
