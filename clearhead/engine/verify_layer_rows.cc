// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/verify_layer_rows.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "clearhead/base/interrupt.h"
#include "clearhead/engine/verify_compare.h"
#include "clearhead/engine/verify_rows.h"

namespace clearhead::engine {
namespace {

using capture::Stage;
using Values = std::vector<double>;

constexpr Stage kStages[] = {Stage::raw_scores, Stage::scores,  Stage::kernel_scores, Stage::row_reference,
                             Stage::row_sum,    Stage::weights, Stage::head_output};

bool is_score(Stage stage) {
  return stage == Stage::raw_scores || stage == Stage::scores || stage == Stage::kernel_scores;
}

bool is_there(const capture::Trace& trace, Stage stage, size_t layer) {
  return trace.has(stage, layer) || trace.shows(stage, layer);
}

// Calls visit(block) for the rows of each head in turn.
template <class Visit>
void for_each_block(const HeadRows& rows, const Visit& visit) {
  const size_t queries = std::max<size_t>(1, kScoresTogether / std::max<size_t>(1, rows.seq));
  for (size_t index = 0; index < rows.heads.size(); ++index) {
    for (size_t query = 0; query < rows.seq; query += queries) {
      base::check_interrupt();
      HeadRows block = rows;
      block.first = index * rows.seq + query;
      block.some = std::min(queries, rows.seq - query);
      visit(block);
    }
  }
}

// What the trace has of these rows; index is the place of their head on the trace's axis.
Values found_rows(const capture::Trace& trace, Stage stage, size_t layer, const HeadRows& block, size_t index) {
  const size_t seq = block.seq, query = block.query_of(0), count = block.count();
  if (capture::is_square(stage)) {
    std::vector<float> rows(count * seq);
    trace.source(stage, layer).tile({0, index, query, count, 0, seq}, rows);
    return {rows.begin(), rows.end()};
  }
  const tensor::TensorView whole = trace.tensor(stage, layer);
  const auto values = whole.as<float>();
  if (stage != Stage::head_output) {
    const auto rows = values.subspan(index * seq + query, count);
    return {rows.begin(), rows.end()};
  }
  const size_t heads = whole.shape()[2], value_dim = whole.shape()[3];
  Values rows;
  for (size_t i = query; i < query + count; ++i) {
    const auto part = values.subspan((i * heads + index) * value_dim, value_dim);
    rows.insert(rows.end(), part.begin(), part.end());
  }
  return rows;
}

// The index in the stage's shape of an element of a block's row.
std::vector<size_t> place_of(Stage stage, const HeadRows& block, size_t index, size_t at, size_t width) {
  const size_t query = block.query_of(at / width), inside = at % width;
  if (stage == Stage::head_output) return {0, query, index, inside};
  if (!capture::is_square(stage)) return {0, index, query};
  return {0, index, query, inside};
}

void add(StageCheck& check, const HeadRows& block, size_t index, const Values& found, const Bounded& expected) {
  const size_t width = found.size() / block.count();
  for (size_t at = 0; at < found.size(); ++at) {
    if (!note_difference(check, found[at], expected.values[at], expected.bounds[at])) continue;
    check.at = place_of(check.stage, block, index, at, width);
  }
}

Bounded scores_of(Stage stage, const HeadRows& block, const Values& query, const Values& key) {
  if (stage == Stage::raw_scores) return raw_scores(block, query, key);
  return scores(block, query, key, stage == Stage::kernel_scores ? std::numbers::log2e : 1);
}

Bounded from_kernel_scores(Stage stage, const HeadRows& block, const Values& kernel_scores,
                           std::span<const double> row_reference, const Values* value) {
  if (stage == Stage::row_reference) return row_references(block, kernel_scores);
  if (stage == Stage::row_sum) return row_sums(block, kernel_scores, row_reference);
  if (stage == Stage::weights) return weights(block, kernel_scores);
  return head_outputs(block, kernel_scores, *value);
}

HeadRows rows_of(const StageInputs& inputs, const attention::AttentionConfig& config) {
  return {config, inputs.heads, inputs.kv_heads, inputs.tokens.size()};
}

// The stages that hold what attention reads.
struct QueryAndKey {
  Stage query, key;
};

QueryAndKey query_and_key(const model::Transformer& model) {
  if (model.has(Stage::rotated_query)) return {Stage::rotated_query, Stage::rotated_key};
  return {Stage::query, Stage::key};
}

double largest_of(std::span<const double> values) {
  double largest = 0;
  for (double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

// One stage that is compared with the truth: all that is allowed is a share of the largest value, known at the end.
struct Drifting {
  StageCheck check;
  double largest = 0;

  void finish() {
    const double bound = check.stage == Stage::row_reference ? 0 : drift_bound(largest);
    if (check.stage != Stage::row_reference) check.worst_share /= bound;
    check.tolerance = bound;
  }
};

// The place of a head of the model on the trace's axis; nothing if it was not recorded.
std::optional<size_t> place_of_head(const capture::Trace& trace, size_t head) {
  const auto& heads = trace.info().heads;
  const auto found = std::ranges::lower_bound(heads, head);
  if (found == heads.end() || *found != head) return std::nullopt;
  return static_cast<size_t>(found - heads.begin());
}

}  // namespace

bool is_of_rows(Stage stage) { return std::ranges::find(kStages, stage) != std::end(kStages); }

StageCheck check_rows(const StageInputs& inputs, const capture::Trace& trace, Stage stage, size_t layer) {
  StageCheck check{.stage = stage, .layer = layer};
  const attention::AttentionConfig config = inputs.model.config().attention_of(layer);
  const HeadRows rows = rows_of(inputs, config);
  const auto [query_stage, key_stage] = query_and_key(inputs.model);
  const Values* query = is_score(stage) ? inputs.find(query_stage, layer) : nullptr;
  const Values* key = is_score(stage) ? inputs.find(key_stage, layer) : nullptr;
  const Values* value = stage == Stage::head_output ? inputs.find(Stage::value, layer) : nullptr;
  const bool possible =
      is_score(stage) ? query != nullptr && key != nullptr
                      : trace.shows(Stage::kernel_scores, layer) && (stage != Stage::head_output || value != nullptr);
  check.skipped = !possible || rows.heads.empty() || rows.seq == 0;
  if (check.skipped) return check;
  for_each_block(rows, [&](const HeadRows& block) {
    const size_t index = block.index_of(0);
    const Values found = found_rows(trace, stage, layer, block, index);
    if (is_score(stage)) return add(check, block, index, found, scores_of(stage, block, *query, *key));
    const Values kernel_scores = found_rows(trace, Stage::kernel_scores, layer, block, index);
    Values reference;
    if (stage == Stage::row_sum && trace.has(Stage::row_reference, layer)) {
      reference = found_rows(trace, Stage::row_reference, layer, block, index);
    }
    add(check, block, index, found, from_kernel_scores(stage, block, kernel_scores, reference, value));
  });
  return check;
}

RowsEndToEnd check_rows_end_to_end(const StageInputs& inputs, const capture::Trace& trace, size_t layer) {
  const attention::AttentionConfig config = inputs.model.config().attention_of(layer);
  const HeadRows rows = rows_of(inputs, config);
  const auto [query_stage, key_stage] = query_and_key(inputs.model);
  const Values &query = *inputs.find(query_stage, layer), &key = *inputs.find(key_stage, layer);
  const Values& value = *inputs.find(Stage::value, layer);
  const size_t value_dim = rows.config.value_dim, heads = rows.heads.size();
  std::vector<Drifting> wanted;
  RowsEndToEnd result;
  for (Stage stage : kStages) {
    if (!is_there(trace, stage, layer)) continue;
    StageCheck check{.stage = stage, .layer = layer};
    check.skipped = trace.info().heads.empty();
    check.skipped ? result.checks.push_back(check) : wanted.push_back({check});
  }
  const auto of_summaries = [](const Drifting& one) {
    return one.check.stage == Stage::row_reference || one.check.stage == Stage::row_sum;
  };
  double largest_score = 0;
  if (std::ranges::any_of(wanted, of_summaries)) {
    for_each_block(rows, [&](const HeadRows& block) {
      largest_score = std::max(largest_score, largest_of(scores_of(Stage::kernel_scores, block, query, key).values));
    });
  }
  result.head_output.resize(rows.seq * heads * value_dim);
  for_each_block(rows, [&](const HeadRows& block) {
    const size_t head = block.index_of(0);
    const auto place = place_of_head(trace, rows.heads[head]);
    const Values kernel_scores = scores_of(Stage::kernel_scores, block, query, key).values;
    const Bounded output = head_outputs(block, kernel_scores, value);
    for (size_t at = 0; at < output.values.size(); ++at) {
      const size_t i = block.query_of(at / value_dim);
      result.head_output[(i * heads + head) * value_dim + at % value_dim] = output.values[at];
    }
    for (Drifting& one : wanted) {
      const Stage stage = one.check.stage;
      Bounded truth = stage == Stage::head_output ? output
                      : is_score(stage)           ? scores_of(stage, block, query, key)
                                                  : from_kernel_scores(stage, block, kernel_scores, {}, &value);
      one.largest = std::max(one.largest, largest_of(truth.values));
      if (!place) continue;
      const Values found = found_rows(trace, stage, layer, block, *place);
      std::ranges::fill(truth.bounds, stage == Stage::row_reference ? 0.0 : 1.0);
      for (size_t row = 0; row < found.size() && of_summaries(one); ++row) {
        const ScoreRow scores{std::span(kernel_scores).subspan(row * rows.seq, rows.seq), block.sink(head),
                              drift_share() * largest_score};
        truth.values[row] = settled(found[row], stage, scores);
      }
      add(one.check, block, *place, found, truth);
    }
  });
  for (Drifting& one : wanted) {
    one.finish();
    result.checks.push_back(one.check);
  }
  return result;
}

}  // namespace clearhead::engine
