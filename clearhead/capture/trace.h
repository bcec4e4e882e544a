// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clearhead/capture/selection.h"
#include "clearhead/capture/stage.h"
#include "clearhead/capture/weight_source.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::format {
class SafetensorsFile;
}

namespace clearhead::capture {

// One token as the views know it. Offsets are bytes of the text; a special token has begin == end.
struct TraceToken {
  std::string text;
  std::string piece;
  int64_t id = 0;
  size_t begin = 0, end = 0;
  bool special = false;
  bool continues_word = false;
  int64_t type_id = 0;

  bool operator==(const TraceToken&) const = default;
};

// What a trace says about itself (its __metadata__).
struct TraceInfo {
  std::string version;             // of Clearhead; a new trace has that of this library
  std::string model;               // as the user named it
  std::string text;                // valid UTF-8; invalid bytes of the input stand as U+FFFD
  std::vector<TraceToken> tokens;  // [seq]
  size_t declared_len = 0;         // tokens for which positions were turned; 0: as many as tokens
  size_t written = 0;          // of the tokens, so many at the end the model chose; the others are those of the text
  std::string attention;       // the attention configuration, as JSON
  size_t num_layers = 0;       // of the model
  size_t num_heads = 0;        // of the model
  size_t num_kv_heads = 0;     // of the model; divides num_heads
  std::vector<size_t> layers;  // recorded layers
  std::vector<size_t> heads;   // recorded heads, in the order of the head axis

  // The kv heads that the recorded heads read, in the order of the head axis of key and value.
  std::vector<size_t> kv_heads() const;

  // Whether a token sees nothing that stands behind it, by the attention configuration; no if that does not say.
  bool causal() const;

  bool operator==(const TraceInfo&) const = default;
};

// What was seen of one run: tensors by stage and layer, in memory or in a mapped file, and stages that are rebuilt when
// somebody looks. Complete once made; views read it and never see the model.
class Trace {
 public:
  Trace() = default;
  // Without a version or num_kv_heads, trace_info gets this library's version and as many kv heads as heads.
  explicit Trace(TraceInfo trace_info);

  const TraceInfo& info() const { return info_; }

  bool has(Stage stage, size_t layer = 0) const;
  // Valid as long as the trace lives and nothing takes its place.
  // Throws: Error naming the stage if it was not recorded.
  tensor::TensorView tensor(Stage stage, size_t layer = 0) const;
  // Keeps values, in the place of older ones. Throws: Error unless they are F32.
  void add(Stage stage, size_t layer, tensor::Tensor values);
  size_t bytes() const;  // of all tensors

  // Whether source gives a stage of [batch, heads, query, key]: it was recorded, or can be rebuilt.
  bool shows(Stage stage, size_t layer) const;
  // Throws: Error naming the stage if nobody can show it, or if it is none of [batch, heads, query, key].
  const WeightSource& source(Stage stage, size_t layer) const;
  // Lets a stage be seen that was not recorded. The source may read tensors of this trace, which stay where they are.
  void attach(Stage stage, size_t layer, std::unique_ptr<const WeightSource> source);

  // Names as in the file: "embedding", "layers.3.weights". layer counts inside the layers only.
  static std::string tensor_name(Stage stage, size_t layer);

  // Throws: Error, beginning with where, at the first thing that does not fit the rest: a list that is not sorted or
  // goes past its limit, offsets outside the text, text that is not UTF-8, a tensor whose shape is not that of its
  // stage with these tokens and heads.
  void check(std::string_view where) const;

  // A safetensors file, with the stages that are rebuilt; appears whole or not at all.
  // Throws: Error, also if the trace does not pass check.
  void write(const std::filesystem::path& path) const;
  // The file stays mapped as long as the trace lives. Everything in it is checked: names, shapes against the metadata,
  // token list. Throws: Error.
  static Trace read(const std::filesystem::path& path);
  // The same for bytes that came from elsewhere; where names them in errors.
  static Trace read(std::vector<std::byte> bytes, const std::string& where);

 private:
  using Key = std::pair<size_t, Stage>;
  struct Entry {
    tensor::Tensor owned;  // empty if the values stand in the file
    tensor::TensorView values;
  };

  static Trace from_file(format::SafetensorsFile file, std::string_view where);
  void check_tensors(std::string_view where) const;
  void keep(const Key& key, Entry entry);

  TraceInfo info_;
  std::shared_ptr<const format::SafetensorsFile> file_;  // that entries stand in, or nullptr
  std::map<Key, Entry> entries_;
  std::map<Key, std::unique_ptr<const WeightSource>> sources_;  // of all stages of [batch, heads, query, key]
};

}  // namespace clearhead::capture
