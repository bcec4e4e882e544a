// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace clearhead::capture {

// Everything that can be seen, in the order of the computation. The table behind it (stages()) is the one source of
// the names in traces, JSON, command line and documentation.
enum class Stage {
  token_embedding,
  position_embedding,
  token_type_embedding,
  embedding,
  attention_input,
  query,
  key,
  value,
  rotated_query,
  rotated_key,
  raw_scores,
  scores,
  kernel_scores,
  row_reference,
  row_sum,
  weights,
  head_output,
  head_contribution,
  attention_output,
  attention_block_output,
  feed_forward_input,
  feed_forward_hidden,
  feed_forward_output,
  layer_output,
  logits,
};

// Where a stage stands: once before all layers, once in each layer, once after them.
enum class Place { before_layers, in_layer, after_layers };

struct StageInfo {
  Stage stage;
  std::string_view name;
  Place place;
  std::string_view shape;           // with the words of the glossary: "[batch, seq, d_model]"
  std::optional<size_t> head_axis;  // axis that counts heads, if there is one (kv heads for key and value)
  std::string_view formula;
  std::string_view sentence;  // what it is, in plain words
  std::string_view source;    // paper or document that defines it
};

// The table, in the order of Stage.
std::span<const StageInfo> stages();

const StageInfo& info(Stage stage);

// The words of the stage's shape: "batch", "seq", "kv_heads", "head_dim".
std::vector<std::string_view> axes(Stage stage);

// Whether the stage is [batch, heads, query, key]: it grows with the square of the length and can be rebuilt.
bool is_square(Stage stage);

// Nothing for an unknown name.
std::optional<Stage> stage_named(std::string_view name);

}  // namespace clearhead::capture
