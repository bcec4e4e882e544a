// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "clearhead/attention/fused.h"
#include "clearhead/attention/statistics.h"
#include "clearhead/measure/attention_shape.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::measure {

// What a run says about its rows beside the output.
//   none  log-sum-exp alone, which the output needs anyway
//   rows  entropy, strongest weight and key, mean distance, mass on the key itself, the one before and the one behind
//   all   the eight strongest keys, mass on the ends and on every fifth key, and a map of 64 x 64 cells as well
//   received  what each key is given by all queries: the run, and a second sweep behind it
enum class Evidence { none, rows, all, received };
inline constexpr Evidence kEvidence[] = {Evidence::none, Evidence::rows, Evidence::all, Evidence::received};
std::string_view name_of(Evidence evidence);

// One problem of core attention, ready to be run again and again on the same numbers.
class AttentionRun {
 public:
  // Normal random numbers, the same for every shape of that size.
  explicit AttentionRun(const AttentionShape& shape, attention::Precision precision = attention::Precision::single);
  // Given ones: F32, query [batch, query_len, heads, head_dim], key and value [batch, key_len, kv_heads, head_dim].
  // Throws: Error (usage) for another type or shape.
  AttentionRun(const AttentionShape& shape, const tensor::TensorView& query, const tensor::TensorView& key,
               const tensor::TensorView& value, attention::Precision precision = attention::Precision::single);

  const AttentionShape& shape() const { return shape_; }
  void run(Evidence evidence);
  // [batch, query_len, heads, head_dim], of the last run.
  std::span<const float> head_output() const { return output_.as<float>(); }

  // Whether the bits of the last rows are those of the exact path. Cheap at any length.
  bool is_right();

  // Bytes that a run with fresh working memory keeps at its height, beyond inputs, outputs and statistics. Nothing if
  // the system does not tell.
  std::optional<size_t> working_bytes(Evidence evidence);

 private:
  void make_room();
  attention::AttentionInput input() const;
  attention::AttentionSpans output();
  void receive();
  attention::RowStatistics* statistics_of(Evidence evidence);

  AttentionShape shape_;
  attention::AttentionConfig config_;
  // Where cache lines begin, as everybody keeps tensors.
  tensor::Tensor query_, key_, value_, output_, reference_, sum_, received_;
  attention::RowStatistics row_statistics_, all_statistics_;
  attention::FusedAttention fused_;
};

}  // namespace clearhead::measure
