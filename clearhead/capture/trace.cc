// SPDX-License-Identifier: Apache-2.0
#include "clearhead/capture/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "clearhead/base/error.h"
#include "clearhead/base/utf8.h"
#include "clearhead/base/version.h"
#include "clearhead/capture/trace_json.h"
#include "clearhead/capture/trace_writer.h"
#include "clearhead/format/safetensors.h"

namespace clearhead::capture {
namespace {

// Stages outside the layers stand under layer 0.
std::pair<size_t, Stage> key_of(Stage stage, size_t layer) {
  return {info(stage).place == Place::in_layer ? layer : 0, stage};
}

// The way back from Trace::tensor_name, for exactly the names that it gives.
std::optional<std::pair<size_t, Stage>> parse_tensor_name(std::string_view name) {
  size_t layer = 0;
  std::string_view stage_name = name;
  constexpr std::string_view kPrefix = "layers.";
  if (name.starts_with(kPrefix)) {
    const char* const end = name.data() + name.size();
    const auto [dot, problem] = std::from_chars(name.data() + kPrefix.size(), end, layer);
    if (problem != std::errc{} || dot == end || *dot != '.') return std::nullopt;
    stage_name = name.substr(static_cast<size_t>(dot + 1 - name.data()));
  }
  const auto stage = stage_named(stage_name);
  if (!stage || Trace::tensor_name(*stage, layer) != name) return std::nullopt;
  return std::pair{layer, *stage};
}

void check_utf8(std::string_view where, std::string_view what, std::string_view text) {
  const auto at = base::first_invalid_utf8(text);
  if (at) base::fail(where, fmt::format("valid UTF-8 in {}", what), fmt::format("invalid bytes at {}", *at));
}

void check_indices(std::string_view where, std::string_view what, const std::vector<size_t>& indices, size_t limit) {
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= limit) base::fail(where, fmt::format("{} below {}", what, limit), fmt::format("{}", indices[i]));
    if (i > 0 && indices[i] <= indices[i - 1]) {
      base::fail(where, fmt::format("{} that rise", what), fmt::format("{} after {}", indices[i], indices[i - 1]));
    }
  }
}

void check_tokens(std::string_view where, const TraceInfo& trace_info) {
  if (trace_info.tokens.empty()) base::fail(where, "at least one token", "none");
  for (size_t i = 0; i < trace_info.tokens.size(); ++i) {
    const TraceToken& token = trace_info.tokens[i];
    check_utf8(where, fmt::format("the text of token {}", i), token.text);
    check_utf8(where, fmt::format("the piece of token {}", i), token.piece);
    if (token.begin > token.end || token.end > trace_info.text.size()) {
      base::fail(where, fmt::format("offsets of token {} inside the text of {} bytes", i, trace_info.text.size()),
                 fmt::format("[{}, {}]", token.begin, token.end));
    }
  }
}

void check_info(std::string_view where, const TraceInfo& trace_info) {
  check_utf8(where, "version", trace_info.version);
  check_utf8(where, "model", trace_info.model);
  check_utf8(where, "text", trace_info.text);
  check_utf8(where, "attention", trace_info.attention);
  if (!is_json_object(trace_info.attention)) {
    base::fail(where, "attention to be a JSON object", base::quoted(trace_info.attention));
  }
  check_tokens(where, trace_info);
  if (trace_info.written != 0 && trace_info.written >= trace_info.tokens.size()) {
    base::fail(where, fmt::format("fewer than {} written tokens", trace_info.tokens.size()),
               fmt::format("{}", trace_info.written));
  }
  if (trace_info.declared_len != 0 && trace_info.declared_len < trace_info.tokens.size()) {
    base::fail(where, fmt::format("a declared length of {} tokens or more", trace_info.tokens.size()),
               fmt::format("{}", trace_info.declared_len));
  }
  if (trace_info.num_heads == 0 || trace_info.num_kv_heads == 0 ||
      trace_info.num_heads % trace_info.num_kv_heads != 0) {
    base::fail(where, "num_kv_heads that divides num_heads",
               fmt::format("{} and {}", trace_info.num_kv_heads, trace_info.num_heads));
  }
  check_indices(where, "layers", trace_info.layers, trace_info.num_layers);
  check_indices(where, "heads", trace_info.heads, trace_info.num_heads);
}

}  // namespace

std::vector<size_t> TraceInfo::kv_heads() const {
  std::vector<size_t> result;
  for (size_t head : heads) {
    const size_t kv_head = head / (num_heads / num_kv_heads);
    if (result.empty() || result.back() != kv_head) result.push_back(kv_head);
  }
  return result;
}

Trace::Trace(TraceInfo trace_info) : info_(std::move(trace_info)) {
  if (info_.version.empty()) info_.version = base::kVersion;
  if (info_.num_kv_heads == 0) info_.num_kv_heads = info_.num_heads;
}

bool Trace::has(Stage stage, size_t layer) const { return entries_.contains(key_of(stage, layer)); }

tensor::TensorView Trace::tensor(Stage stage, size_t layer) const {
  const auto found = entries_.find(key_of(stage, layer));
  if (found == entries_.end()) {
    base::fail("trace", fmt::format("{} to be recorded", tensor_name(stage, layer)), "a trace without it",
               fmt::format("name the stage {} when recording", capture::info(stage).name));
  }
  return found->second.values;
}

void Trace::add(Stage stage, size_t layer, tensor::Tensor values) {
  if (values.dtype() != tensor::DType::f32) {
    base::fail("trace", fmt::format("F32 for {}", tensor_name(stage, layer)), tensor::name_of(values.dtype()));
  }
  const tensor::TensorView view = values;
  keep(key_of(stage, layer), {std::move(values), view});
}

void Trace::keep(const Key& key, Entry entry) {
  sources_.erase(key);
  const bool square = is_square(key.second) && entry.values.shape().rank() == 4;
  if (square) sources_.emplace(key, std::make_unique<StoredWeights>(entry.values));
  entries_.insert_or_assign(key, std::move(entry));
}

size_t Trace::bytes() const {
  size_t sum = 0;
  for (const auto& [key, entry] : entries_) sum += entry.values.bytes().size();
  return sum;
}

bool Trace::shows(Stage stage, size_t layer) const { return sources_.contains(key_of(stage, layer)); }

const WeightSource& Trace::source(Stage stage, size_t layer) const {
  const auto found = sources_.find(key_of(stage, layer));
  if (found == sources_.end()) {
    base::fail("trace", fmt::format("{} to be recorded or rebuilt", tensor_name(stage, layer)), "a trace without it",
               fmt::format("name the stage {} when recording", capture::info(stage).name));
  }
  return *found->second;
}

void Trace::attach(Stage stage, size_t layer, std::unique_ptr<const WeightSource> source) {
  entries_.erase(key_of(stage, layer));
  sources_.insert_or_assign(key_of(stage, layer), std::move(source));
}

std::string Trace::tensor_name(Stage stage, size_t layer) {
  const StageInfo& row = capture::info(stage);
  return row.place == Place::in_layer ? fmt::format("layers.{}.{}", layer, row.name) : std::string(row.name);
}

void Trace::check(std::string_view where) const {
  check_info(where, info_);
  check_tensors(where);
}

void Trace::check_tensors(std::string_view where) const {
  const size_t seq = info_.tokens.size();
  std::map<std::string_view, size_t> sizes = {{"batch", 1},
                                              {"seq", seq},
                                              {"query", seq},
                                              {"key", seq},
                                              {"heads", info_.heads.size()},
                                              {"kv_heads", info_.kv_heads().size()}};
  for (const auto& [key, entry] : entries_) {
    const tensor::TensorView& values = entry.values;
    const auto [layer, stage] = key;
    const std::string name = tensor_name(stage, layer);
    if (capture::info(stage).place == Place::in_layer && !std::ranges::binary_search(info_.layers, layer)) {
      base::fail(where, fmt::format("tensors of recorded layers only"), base::quoted(name));
    }
    const std::vector<std::string_view> words = axes(stage);
    std::vector<size_t> expected;
    for (size_t axis = 0; axis < words.size(); ++axis) {
      // What the tokens and heads do not decide (d_model, head_dim, ...) is as in the first tensor that has it.
      const size_t found = axis < values.shape().rank() && values.shape()[axis] > 0 ? values.shape()[axis] : 1;
      expected.push_back(sizes.try_emplace(words[axis], found).first->second);
    }
    if (values.shape() != tensor::Shape(expected)) {
      base::fail(where,
                 fmt::format("{} of shape {} = {}", base::quoted(name), capture::info(stage).shape,
                             tensor::Shape(expected).text()),
                 values.shape().text());
    }
  }
}

void Trace::write(const std::filesystem::path& path) const {
  check("trace");
  std::map<Key, tensor::Shape> shapes;
  for (const auto& [key, entry] : entries_) shapes.emplace(key, entry.values.shape());
  for (const auto& [key, source] : sources_) {
    shapes.emplace(key, tensor::Shape{source->batch(), source->num_heads(), source->query_len(), source->key_len()});
  }
  std::vector<format::PlannedTensor> planned;
  for (const auto& [key, shape] : shapes) {
    planned.push_back({tensor_name(key.second, key.first), tensor::DType::f32, shape});
  }
  format::SafetensorsOutput output(path, planned, metadata_of(info_));
  size_t index = 0;
  for (const auto& [key, shape] : shapes) {
    const auto entry = entries_.find(key);
    if (entry != entries_.end()) {
      output.write(index, 0, entry->second.values.bytes());
    } else {
      write_source(*sources_.at(key), {}, output, index);
    }
    ++index;
  }
  output.commit();
}

Trace Trace::read(const std::filesystem::path& path) {
  return from_file(format::SafetensorsFile::open(path), base::quoted(path.string(), 400));
}

Trace Trace::read(std::vector<std::byte> bytes, const std::string& where) {
  return from_file(format::SafetensorsFile::read(std::move(bytes), where), where);
}

Trace Trace::from_file(format::SafetensorsFile file, std::string_view where) {
  Trace trace;
  trace.file_ = std::make_shared<const format::SafetensorsFile>(std::move(file));
  trace.info_ = info_from_metadata(trace.file_->metadata(), where);
  check_info(where, trace.info_);
  for (const format::TensorEntry& entry : trace.file_->entries()) {
    const auto key = parse_tensor_name(entry.name);
    if (!key) {
      base::fail(where, "tensors named like \"embedding\" or \"layers.0.weights\", after the stage table",
                 base::quoted(entry.name));
    }
    if (entry.dtype != tensor::DType::f32) {
      base::fail(where, fmt::format("F32 for {}", base::quoted(entry.name)), base::quoted(entry.dtype_name));
    }
    const tensor::TensorView stored = trace.file_->view(entry.name);
    const bool aligned = reinterpret_cast<uintptr_t>(stored.bytes().data()) % alignof(float) == 0;
    if (aligned) {
      trace.keep(*key, {{}, stored});
    } else {
      trace.add(key->second, key->first, tensor::clone(stored));
    }
  }
  trace.check_tensors(where);
  return trace;
}

}  // namespace clearhead::capture
