// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "clearhead/views/lesson_builder.h"

namespace clearhead::views {

using capture::Stage;

void LessonBuilder::add_text_steps() {
  LessonStep& question = add_step("question", {}, is_alone() ? "question_alone" : "");
  const LessonFocus& focus = options_.focus;
  question.numbers.push_back(number(Stage::weights, {0, focus.head, focus.query, focus.key}, "p"));
  LessonStep& tokens = add_step("tokens", {fmt::format("text -> [{}]", seq_)});
  tokens.picture = TokenTable{};
}

void LessonBuilder::add_embedding_steps() {
  const std::string rows = fmt::format("[{}, {}]", seq_, d_model_);
  const std::vector<size_t> row = {0, options_.focus.query};
  LessonStep& token = add_step("token_embedding", {fmt::format("[{}] -> {}", seq_, rows)});
  quote_vector(token, Stage::token_embedding, row, "E");
  const bool placed = trace_.has(Stage::position_embedding);
  if (placed) {
    LessonStep& position = add_step("position_embedding", {rows});
    quote_vector(position, Stage::position_embedding, row, "P");
  }
  LessonStep& sum = placed ? add_step("embedding", {fmt::format("{} + {} -> {}", rows, rows, rows)})
                           : add_step("embedding", {rows}, "embedding_alone");
  quote_vector(sum, Stage::embedding, row, "x");
  if (options_.pre_norm) quote_vector(add_step("attention_input", {rows}), Stage::attention_input, row, "x'");
}

void LessonBuilder::add_projection_step(Stage stage, size_t token, size_t head_index) {
  const size_t count = stage == Stage::query ? num_heads_ : num_kv_heads_;
  const size_t width = count * (stage == Stage::value ? value_dim_ : head_dim_);
  const std::string name(capture::info(stage).name);
  LessonStep& step =
      add_step(name, {fmt::format("[{}, {}] x [{}, {}] -> [{}, {}]", seq_, d_model_, d_model_, width, seq_, width)});
  quote_vector(step, stage, {0, token, head_index}, name.substr(0, 1));
}

void LessonBuilder::add_role_steps() {
  add_step("roles", {});
  add_projection_step(Stage::query, options_.focus.query, options_.focus.head);
  add_projection_step(Stage::key, options_.focus.key, kv_head_);
  add_projection_step(Stage::value, options_.focus.key, kv_head_);
  LessonStep& split = add_step(
      "split", {fmt::format("[{}, {}] -> [{}, {}, {}]", seq_, num_heads_ * head_dim_, seq_, num_heads_, head_dim_)});
  StripList strips;
  for (size_t head = 0; head < num_heads_; ++head) {
    strips.labels.push_back(head_label(head, head));
    strips.strips.push_back(vector(Stage::query, {0, options_.focus.query, head}));
  }
  split.picture = std::move(strips);
}

void LessonBuilder::add_score_steps() {
  const std::string table = fmt::format("[{}, {}, {}]", num_heads_, seq_, seq_);
  LessonStep& raw = add_step("raw_scores", {fmt::format("[{}, {}, {}] x [{}, {}, {}] -> {}", num_heads_, seq_,
                                                        head_dim_, num_heads_, head_dim_, seq_, table)});
  quote_row(raw, Stage::raw_scores, "q.k");

  const std::string scaled = fmt::format("{} / {}", table, values_.at("root"));
  const std::string cap = values_.at("cap");
  LessonStep& scores = add_step("scores",
                                {options_.soft_cap ? fmt::format("{} tanh({} / {}) -> {}", cap, scaled, cap, table)
                                                   : fmt::format("{} -> {}", scaled, table)},
                                options_.score_scale ? "scores_scale" : "");
  quote_row(scores, Stage::scores, "s");
  scores.numbers.push_back(derived("unscaled p", unscaled_weight(),
                                   options_.soft_cap
                                       ? fmt::format("softmax({} tanh(raw_scores row / {}))[key]", cap, cap)
                                       : "softmax(raw_scores row)[key]"));
  if (options_.causal) add_mask_step();

  LessonStep& weights = add_step("weights", {fmt::format("softmax {} -> {}", table, table)});
  quote_row(weights, Stage::weights, "p");
  const auto& bars = std::get<BarList>(weights.picture).values;
  weights.numbers.push_back(
      derived("sum", std::accumulate(bars.begin(), bars.end(), 0.0), "sum of the row of weights"));
  const std::vector<size_t> row = {0, options_.focus.head, options_.focus.query};
  weights.numbers.push_back(number(Stage::row_reference, row, "r"));
  weights.numbers.push_back(number(Stage::row_sum, row, "l"));
}

void LessonBuilder::add_output_steps() {
  const LessonFocus& focus = options_.focus;
  const std::string one_head =
      fmt::format("[{}, {}] x [{}, {}] -> [{}, {}]", seq_, seq_, seq_, value_dim_, seq_, value_dim_);
  LessonStep& sum = add_step("head_output", {one_head}, is_alone() ? "head_output_alone" : "");
  quote_vector(sum, Stage::head_output, {0, focus.query, focus.head}, "o");
  BarList given;
  given.lengths = given.values = given_lengths();
  for (size_t j = 0; j < seq_; ++j) {
    given.tokens.push_back(j);
    sum.numbers.push_back(derived(fmt::format("|p v|[{}]", j), given.values[j], "weights * length of value"));
    sum.numbers.back().in_picture = true;
  }
  sum.picture = std::move(given);

  add_step("self_attention", {fmt::format("[{}, {}]", seq_, seq_)}).picture = WeightMap{focus.layer, focus.head};
  LessonStep& heads = add_step("heads", {fmt::format("{} heads: [{}, {}, {}]", num_heads_, num_heads_, seq_, seq_)},
                               sees_another_word() ? "" : "heads_no_word");
  heads.picture = HeadRows{focus.layer, focus.query};
  for (size_t head = 0; head < num_heads_; ++head) {
    const size_t key = strongest_key(trace_, focus.layer, head, focus.query);
    heads.numbers.push_back(number(Stage::weights, {0, head, focus.query, key}, fmt::format("head {}", head)));
    heads.numbers.back().in_picture = true;
  }

  LessonStep& concat = add_step(
      "concat", {fmt::format("[{}, {}, {}] -> [{}, {}]", seq_, num_heads_, value_dim_, seq_, num_heads_ * value_dim_)});
  StripList strips;
  for (size_t head = 0; head < num_heads_; ++head) {
    strips.labels.push_back(head_label(head, head));
    strips.strips.push_back(vector(Stage::head_output, {0, focus.query, head}));
  }
  concat.picture = std::move(strips);

  LessonStep& output =
      add_step("attention_output", {fmt::format("[{}, {}] x [{}, {}] -> [{}, {}]", seq_, num_heads_ * value_dim_,
                                                num_heads_ * value_dim_, d_model_, seq_, d_model_)});
  quote_vector(output, Stage::attention_output, {0, focus.query}, "y");
  BarList lengths;
  for (size_t head = 0; head < num_heads_; ++head) {
    double squares = 0;
    for (float x : vector(Stage::head_contribution, {0, focus.query, head})) squares += double(x) * x;
    lengths.values.push_back(std::sqrt(squares));
    output.numbers.push_back(
        derived(fmt::format("|c|[{}]", head), lengths.values.back(), "length of head_contribution"));
    output.numbers.back().in_picture = true;
  }
  lengths.lengths = lengths.values;
  output.picture = std::move(lengths);
}

}  // namespace clearhead::views
