// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/rebuilt.h"

#include <memory>
#include <set>
#include <utility>

#include "clearhead/attention/weights.h"

namespace clearhead::engine {
namespace {

using capture::Stage;

// The stages that hold what attention reads.
std::pair<Stage, Stage> query_and_key(const model::Transformer& transformer) {
  if (transformer.has(Stage::rotated_query)) return {Stage::rotated_query, Stage::rotated_key};
  return {Stage::query, Stage::key};
}

}  // namespace

capture::Selection with_stages_of(const model::Transformer& transformer, const capture::Selection& selection) {
  capture::Selection has = selection;
  std::erase_if(has.stages, [&](Stage stage) { return !transformer.has(stage); });
  return has;
}

capture::Selection rebuildable(const model::Transformer& transformer, const capture::Selection& selection) {
  std::set<Stage> stages;
  for (Stage stage : selection.stages) {
    if (!transformer.has(stage)) continue;
    if (!capture::is_square(stage)) {
      stages.insert(stage);
      continue;
    }
    const auto [query, key] = query_and_key(transformer);
    stages.insert({query, key});
    if (stage == Stage::weights) stages.insert({Stage::row_reference, Stage::row_sum});
  }
  return {{stages.begin(), stages.end()}, selection.layers, selection.heads};
}

void attach_rebuilt(const model::Transformer& transformer, const std::vector<Stage>& stages, capture::Trace& trace) {
  const auto [query, key] = query_and_key(transformer);
  const std::vector<size_t>& heads = trace.info().heads;
  const size_t seq_len = trace.info().tokens.size();
  for (Stage stage : stages) {
    if (!capture::is_square(stage)) continue;
    for (size_t layer : trace.info().layers) {
      const attention::AttentionInput input{.batch = 1,
                                            .query_len = seq_len,
                                            .key_len = seq_len,
                                            .query = trace.tensor(query, layer).as<float>(),
                                            .key = trace.tensor(key, layer).as<float>(),
                                            .value = {},
                                            .mask = {}};
      attention::KeptRows rows;
      if (stage == Stage::weights) {
        rows = {trace.tensor(Stage::row_reference, layer).as<float>(), trace.tensor(Stage::row_sum, layer).as<float>()};
      }
      trace.attach(stage, layer,
                   std::make_unique<attention::RebuiltWeights>(transformer.config().attention_of(layer), input, rows,
                                                               stage, heads));
    }
  }
}

}  // namespace clearhead::engine
