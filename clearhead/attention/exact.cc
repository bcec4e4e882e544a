// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/exact.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "clearhead/attention/exact_block.h"
#include "clearhead/attention/key_value_cache.h"
#include "clearhead/attention/sizes.h"
#include "clearhead/base/error.h"
#include "clearhead/base/parallel.h"
#include "clearhead/kernels/tile.h"

namespace clearhead::attention {

namespace {

// The sequences of an input whose keys stand in caches.
void list_cached_sequences(const AttentionConfig& config, const AttentionInput& input,
                           std::vector<Sequence>& sequences) {
  check_size("key", {0}, input.key.size());
  check_size("value", {0}, input.value.size());
  check_size("caches", {input.batch}, input.caches.size());
  list_sequences(config, {input.batch, input.query_len, input.key_len}, input.sequences, sequences);
  for (Sequence& one : sequences) {
    const KeyValueCache& cache = *input.caches[one.batch];
    if (!cache.fits(config)) base::refuse("attention", "a cache for the heads and sizes of the config", "another");
    if (one.key_begin != 0 || one.key_len != cache.key_len()) {
      base::refuse("attention", fmt::format("a sequence of the {} keys of its cache", cache.key_len()),
                   fmt::format("keys from {} to {}", one.key_begin, one.key_begin + one.key_len));
    }
    one.evicted = cache.evicted();
  }
}

}  // namespace

void list_checked_sequences(const AttentionConfig& config, const AttentionInput& input,
                            std::vector<Sequence>& sequences) {
  config.check();
  check_size("query", {input.batch, input.query_len, config.num_heads, config.head_dim}, input.query.size());
  if (!input.caches.empty()) return list_cached_sequences(config, input, sequences);
  check_size("key", {input.batch, input.key_len, config.num_kv_heads, config.head_dim}, input.key.size());
  check_size("value", {input.batch, input.key_len, config.num_kv_heads, config.value_dim}, input.value.size());
  list_sequences(config, {input.batch, input.query_len, input.key_len}, input.sequences, sequences);
}

std::vector<Sequence> checked_sequences(const AttentionConfig& config, const AttentionInput& input) {
  std::vector<Sequence> sequences;
  list_checked_sequences(config, input, sequences);
  return sequences;
}

AttentionOutput exact_attention(const AttentionConfig& config, const AttentionInput& input, capture::Observer* observer,
                                size_t layer) {
  const std::vector<Sequence> sequences = checked_sequences(config, input);
  AttentionOutput output;
  output.head_output = tensor::Tensor({input.batch, input.query_len, config.num_heads, config.value_dim});
  output.row_reference = tensor::Tensor({input.batch, config.num_heads, input.query_len});
  output.row_sum = tensor::Tensor({input.batch, config.num_heads, input.query_len});
  std::ranges::fill(output.row_reference.as<float>(), kUnseen);  // of queries that are in no sequence
  ExactStages stages({input.batch, config.num_heads, input.query_len, input.key_len}, observer, layer);

  const bool evicted = std::ranges::any_of(sequences, [](const Sequence& one) { return one.evicted > 0; });
  if (stages.any() && evicted)
    base::refuse("attention", "all keys, to show every score", "a cache that has evicted some");

  PackedKeys packed;
  packed.pack(config, input, sequences);
  const size_t value_room = padded_value_dim(config);
  const ExactWork work{config,     input,  sequences, packed, {config, input, ScoreRecipe(config)},
                       value_room, output, stages};
  std::vector<ExactBlock::Place> places;
  for (size_t index = 0; index < sequences.size(); ++index) {
    const size_t blocks = (sequences[index].query_len + kQueryBlock - 1) / kQueryBlock;
    for (size_t unit = 0; unit < config.num_heads * blocks; ++unit) {
      places.push_back({index, unit / blocks, unit % blocks});
    }
  }
  std::vector<ExactScratch> scratch(base::num_threads(), ExactScratch(config, value_room));
  base::parallel_for(places.size(),
                     [&](size_t unit) { ExactBlock(work, scratch[base::thread_index()], places[unit]).run(); });
  if (observer != nullptr) stages.show(output.row_reference, output.row_sum, *observer, layer);
  return output;
}

}  // namespace clearhead::attention
