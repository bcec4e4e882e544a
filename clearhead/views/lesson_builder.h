// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "clearhead/views/lesson.h"
#include "clearhead/views/lesson_texts.h"

namespace clearhead::views {

// What all steps of one lesson share: the trace, the focus, sizes, words, and ways to quote numbers from the trace.
class LessonBuilder {
 public:
  LessonBuilder(const capture::Trace& trace, const LessonOptions& options);

  // Steps in groups, in the order in which they are told.
  void add_text_steps();       // question, tokens
  void add_embedding_steps();  // token_embedding, position_embedding, embedding, attention_input
  void add_role_steps();       // roles, query, key, value, split
  void add_shared_step();      // shared_heads, where several heads share a key head
  void add_rotary_steps();     // rotated_query, rotated_key, where positions are turned in
  void add_score_steps();      // raw_scores, scores, causal_mask, weights
  void add_output_steps();     // head_output, self_attention, heads, concat, attention_output

  std::vector<LessonStep> take() { return std::move(steps_); }

 private:
  // A step with its words filled in; formula comes from the stage table if name is a stage. words: the texts to take,
  // if not those of its name.
  LessonStep& add_step(const std::string& name, std::vector<std::string> shapes, const std::string& words = "");

  // One number of the trace.
  LessonNumber number(capture::Stage stage, std::vector<size_t> index, std::string label) const;
  // The first few numbers of a vector that starts at index (the last axis varies).
  void quote_vector(LessonStep& step, capture::Stage stage, std::vector<size_t> index, const std::string& symbol) const;
  // The vector itself.
  std::vector<float> vector(capture::Stage stage, const std::vector<size_t>& index) const;
  // One row of a [batch, heads, query, key] stage: numbers, and a picture with lengths in that order.
  void quote_row(LessonStep& step, capture::Stage stage, const std::string& symbol) const;
  // A number that is computed from numbers of the trace.
  static LessonNumber derived(std::string label, double value, std::string rule);

  void add_projection_step(capture::Stage stage, size_t token, size_t head_index);
  void add_rotated_step(capture::Stage before, capture::Stage after, size_t token, size_t head_index);
  void add_mask_step();
  std::string head_label(size_t first, size_t last) const;  // "head 3", "head 3-5"
  std::vector<bool> visible() const;                        // [key] that the query of the focus may see
  bool is_alone() const;                                    // may the query see itself only?
  bool sees_another_word() const;
  void fill_values();
  void fill_counts();
  double unscaled_weight() const;
  std::vector<double> given_lengths() const;  // [key] weight times length of the value

  const capture::Trace& trace_;
  LessonOptions options_;
  LessonTexts texts_;
  TextValues values_;
  size_t seq_, d_model_, num_heads_, num_kv_heads_, head_dim_, value_dim_, kv_head_;
  std::vector<LessonStep> steps_;
};

// "0.893", "12.4", "-0.0213": four significant digits at most.
std::string short_number(double value);

}  // namespace clearhead::views
