// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/exact.h"

#include <algorithm>
#include <vector>

#include "clearhead/attention/exact_block.h"
#include "clearhead/attention/sizes.h"
#include "clearhead/base/parallel.h"
#include "clearhead/kernels/tile.h"

namespace clearhead::attention {

void list_checked_sequences(const AttentionConfig& config, const AttentionInput& input,
                            std::vector<Sequence>& sequences) {
  config.check();
  check_size("query", {input.batch, input.query_len, config.num_heads, config.head_dim}, input.query.size());
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
