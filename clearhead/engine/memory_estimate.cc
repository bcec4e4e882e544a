// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/memory_estimate.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/base/checked.h"
#include "clearhead/base/error.h"
#include "clearhead/capture/stage.h"
#include "clearhead/engine/verify_layer_rows.h"
#include "clearhead/engine/verify_stages.h"

namespace clearhead::engine {
namespace {

using capture::Stage;

size_t sum(size_t a, size_t b) { return base::checked_add(a, b).value_or(kUncountable); }
size_t product(size_t a, size_t b) { return base::checked_product(std::array{a, b}).value_or(kUncountable); }

// How many heads and kv heads of a layer count.
struct HeadCounts {
  size_t heads, kv_heads;
};

HeadCounts selected_heads(const attention::AttentionConfig& config, const capture::Selection& selection) {
  if (!selection.heads) return {config.num_heads, config.num_kv_heads};
  std::set<size_t> kv_heads;
  for (size_t head : *selection.heads) kv_heads.insert(config.kv_head_of(head));
  return {selection.heads->size(), kv_heads.size()};
}

size_t axis_size(const model::ModelConfig& config, std::string_view word, size_t seq_len, const HeadCounts& counts) {
  if (word == "seq" || word == "query" || word == "key") return seq_len;
  if (word == "heads") return counts.heads;
  if (word == "kv_heads") return counts.kv_heads;
  if (word == "head_dim") return config.attention.head_dim;
  if (word == "value_dim") return config.attention.value_dim;
  if (word == "d_model") return config.d_model;
  if (word == "d_ff") return config.d_ff;
  if (word == "vocab") return config.vocab_size;
  return 1;  // batch
}

size_t stage_bytes(const model::ModelConfig& config, Stage stage, size_t seq_len, const HeadCounts& counts) {
  size_t bytes = sizeof(float);
  for (std::string_view word : capture::axes(stage)) {
    bytes = product(bytes, axis_size(config, word, seq_len, counts));
  }
  return bytes;
}

size_t recorded_bytes(const model::Transformer& transformer, size_t seq_len, const capture::Selection& selection) {
  const HeadCounts counts = selected_heads(transformer.config().attention, selection);
  size_t bytes = 0;
  for (Stage stage : std::set<Stage>(selection.stages.begin(), selection.stages.end())) {
    if (!transformer.has(stage)) continue;
    size_t times = 1;
    if (capture::info(stage).place == capture::Place::in_layer) {
      times = selection.layers ? selection.layers->size() : transformer.config().num_layers;
    }
    bytes = sum(bytes, product(times, stage_bytes(transformer.config(), stage, seq_len, counts)));
  }
  return bytes;
}

size_t passing_bytes(const model::Transformer& transformer, size_t seq_len, const capture::Selection& selection) {
  const model::ModelConfig& config = transformer.config();
  const HeadCounts all{config.attention.num_heads, config.attention.num_kv_heads};
  // Names of the workspace's rooms by a stage of their size: hidden, middle, wide, and those of attention. Keys
  // and values stand there once more, packed.
  std::vector<Stage> held = {Stage::embedding,
                             Stage::attention_block_output,
                             Stage::feed_forward_hidden,
                             Stage::query,
                             Stage::key,
                             Stage::key,
                             Stage::value,
                             Stage::value,
                             Stage::head_output,
                             Stage::row_sum,
                             Stage::row_reference};
  for (Stage stage :
       {Stage::token_embedding, Stage::token_type_embedding, Stage::position_embedding, Stage::head_contribution}) {
    if (std::ranges::find(selection.stages, stage) != selection.stages.end()) held.push_back(stage);
  }
  size_t bytes = 0;
  for (Stage stage : held) {
    if (transformer.has(stage)) bytes = sum(bytes, stage_bytes(config, stage, seq_len, all));
  }
  return bytes;
}

// How many values with bounds, each as many as the stage has, stand side by side while verify recomputes it.
size_t held_at_once(const model::ModelConfig& config, Stage stage) {
  switch (stage) {
    case Stage::logits: return 1;
    case Stage::head_contribution: return 2;
    case Stage::feed_forward_hidden: return config.gated ? 3 : 1;
    default: return 3;
  }
}

}  // namespace

size_t verify_bytes(const model::Transformer& transformer, size_t seq_len) {
  const model::ModelConfig& config = transformer.config();
  const HeadCounts all{config.attention.num_heads, config.attention.num_kv_heads};
  size_t kept = 0, largest = 0;
  for (const capture::StageInfo& row : capture::stages()) {
    if (!transformer.has(row.stage) || capture::is_square(row.stage)) continue;
    const size_t as_double = product(stage_bytes(config, row.stage, seq_len, all), sizeof(double) / sizeof(float));
    if (!is_only_shown(row.stage)) kept = sum(kept, as_double);
    largest = std::max(largest, product(as_double, 2 * held_at_once(config, row.stage)));
  }
  const size_t rows = product(std::max(kScoresTogether, seq_len), kBytesOfAScore);
  return sum(sum(kept, largest), rows);
}

size_t RunBytes::total() const { return sum(parameters, sum(recorded, passing)); }

RunBytes estimate_run(const model::Transformer& transformer, size_t seq_len, const capture::Selection& selection) {
  return {transformer.resident_bytes(), recorded_bytes(transformer, seq_len, selection),
          passing_bytes(transformer, seq_len, selection)};
}

std::optional<size_t> free_memory() {
  std::ifstream file("/proc/meminfo");
  std::string line;
  while (std::getline(file, line)) {
    constexpr std::string_view kKey = "MemAvailable:";
    if (!line.starts_with(kKey)) continue;
    return static_cast<size_t>(std::strtoull(line.c_str() + kKey.size(), nullptr, 10)) * 1024;
  }
  return std::nullopt;
}

}  // namespace clearhead::engine
