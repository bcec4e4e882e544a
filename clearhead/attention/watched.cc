// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/watched.h"

#include "clearhead/attention/weights.h"

namespace clearhead::attention {

using capture::Stage;

void watched_attention(const AttentionConfig& config, const AttentionInput& input, const AttentionSpans& output,
                       FusedAttention& fused, const capture::Watch& watch) {
  fused.run(config, input, output);
  const auto show = [&](Stage stage) {
    if (!watch.wants(stage)) return;
    const RebuiltWeights source(config, input, {output.row_reference, output.row_sum}, stage);
    watch.observer->observe_source(stage, watch.layer, source);
  };
  show(Stage::raw_scores);
  show(Stage::scores);
  show(Stage::kernel_scores);
  const size_t batch = input.batch, heads = config.num_heads;
  watch.show(Stage::row_reference, {batch, heads, input.query_len}, output.row_reference);
  watch.show(Stage::row_sum, {batch, heads, input.query_len}, output.row_sum);
  show(Stage::weights);
}

}  // namespace clearhead::attention
