// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/lesson_builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "clearhead/tensor/tensor.h"

namespace clearhead::views {
namespace {

constexpr size_t kQuotedNumbers = 6;

// Flat place of an index in a shape, the missing last axes taken as 0.
size_t flat_place(const tensor::Shape& shape, const std::vector<size_t>& index) {
  size_t place = 0;
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    place = place * shape[axis] + (axis < index.size() ? index[axis] : 0);
  }
  return place;
}

}  // namespace

std::string short_number(double value) {
  if (std::abs(value) >= 1000) return fmt::format("{:.0f}", value);
  if (std::abs(value) >= 0.001 || value == 0) return fmt::format("{:.4g}", value);
  return fmt::format("{:.1e}", value);
}

LessonBuilder::LessonBuilder(const capture::Trace& trace, const LessonOptions& options)
    : trace_(trace), options_(options), texts_(options.language) {
  const size_t layer = options.focus.layer;
  const auto query = trace.tensor(capture::Stage::query, layer).shape();
  const auto key = trace.tensor(capture::Stage::key, layer).shape();
  const auto value = trace.tensor(capture::Stage::value, layer).shape();
  seq_ = query[1];
  num_heads_ = query[2];
  head_dim_ = query[3];
  num_kv_heads_ = key[2];
  value_dim_ = value[3];
  d_model_ = trace.tensor(capture::Stage::attention_output, layer).shape()[2];
  kv_head_ = options.focus.head / (num_heads_ / num_kv_heads_);
  fill_values();
}

void LessonBuilder::fill_values() {
  const LessonFocus& focus = options_.focus;
  const auto& info = trace_.info();
  const size_t layer = focus.layer;
  const auto at = [&](capture::Stage stage, std::vector<size_t> index) {
    return short_number(number(stage, std::move(index), "").value);
  };
  values_ = {
      {"text", info.text},
      {"model", info.model},
      {"token", info.tokens[focus.query].text},
      {"key", info.tokens[focus.key].text},
      {"n", std::to_string(seq_)},
      {"layer", std::to_string(layer)},
      {"head", std::to_string(focus.head)},
      {"heads", std::to_string(num_heads_)},
      {"head_dim", std::to_string(head_dim_)},
      {"d_model", std::to_string(d_model_)},
      {"query_width", std::to_string(num_heads_ * head_dim_)},
      {"position", std::to_string(focus.query)},
      {"root", short_number(options_.score_scale ? 1 / double(*options_.score_scale) : std::sqrt(double(head_dim_)))},
      {"whole_root", short_number(std::sqrt(double(d_model_)))},
      {"weight", at(capture::Stage::weights, {0, focus.head, focus.query, focus.key})},
      {"reference", at(capture::Stage::row_reference, {0, focus.head, focus.query})},
      {"row_sum", at(capture::Stage::row_sum, {0, focus.head, focus.query})},
      {"unscaled", short_number(unscaled_weight())}};
  values_["cap"] = short_number(options_.soft_cap ? double(*options_.soft_cap) : 0);
  values_["cap_rule"] = options_.soft_cap ? texts_.text("rule_cap", values_) : "";
  values_["window"] = std::to_string(options_.window.value_or(0));
  values_["unscaled_rule"] = texts_.text(is_alone() ? "unscaled_alone" : "unscaled", values_);
  fill_counts();
  const size_t group = num_heads_ / num_kv_heads_;
  values_.insert({{"kv_heads", std::to_string(num_kv_heads_)},
                  {"kv_head", std::to_string(kv_head_)},
                  {"group", std::to_string(group)},
                  {"group_heads", head_label(kv_head_ * group, (kv_head_ + 1) * group - 1)},
                  {"half", std::to_string(options_.rotary ? options_.rotary->dim / 2 : 0)},
                  {"key_position", std::to_string(focus.key)},
                  {"visible", std::to_string(std::ranges::count(visible(), true))}});
  values_["turned_rule"] =
      texts_.text(options_.rotary && options_.rotary->interleaved ? "turned_neighbours" : "turned_halves", values_);
  values_["normed_rule"] = options_.head_norm ? texts_.text("rule_head_norm") : "";
  values_["split_rule"] = texts_.text(options_.input_split ? "split_input" : "split_projection");
  const bool types = trace_.has(capture::Stage::token_type_embedding);
  values_["sum_rule"] =
      texts_.text(types ? "rule_types" : "rule_sum") + (options_.embedding_norm ? texts_.text("rule_norm") : "");
  values_["scaled_rule"] = options_.embedding_scaled ? texts_.text("rule_scaled") : "";
}

// Words for a number of things.
void LessonBuilder::fill_counts() {
  const std::string count = seq_ == 1 ? "one" : "several";
  values_["tokens"] = texts_.text("tokens_" + count, values_);
  values_["vectors"] = texts_.text("vectors_" + count, values_);
}

LessonStep& LessonBuilder::add_step(const std::string& name, std::vector<std::string> shapes,
                                    const std::string& words) {
  const std::string& texts = words.empty() ? name : words;
  LessonStep step;
  step.name = name;
  step.title = texts_.text(texts + ".title", values_);
  step.plain = texts_.text(texts + ".plain", values_);
  step.shapes = std::move(shapes);
  if (const auto stage = capture::stage_named(name)) step.formula = capture::info(*stage).formula;
  steps_.push_back(std::move(step));
  return steps_.back();
}

LessonNumber LessonBuilder::number(capture::Stage stage, std::vector<size_t> index, std::string label) const {
  const bool in_layer = capture::info(stage).place == capture::Place::in_layer;
  const size_t layer = in_layer ? options_.focus.layer : 0;
  LessonNumber result;
  result.label = std::move(label);
  if (capture::is_square(stage)) {
    float value = 0;
    trace_.source(stage, layer).tile({index.at(0), index.at(1), index.at(2), 1, index.at(3), 1}, {&value, 1});
    result.value = value;
  } else {
    const tensor::TensorView values = trace_.tensor(stage, layer);
    result.value = values.as<float>()[flat_place(values.shape(), index)];
  }
  result.stage = stage;
  result.layer = layer;
  result.index = std::move(index);
  return result;
}

LessonNumber LessonBuilder::derived(std::string label, double value, std::string rule) {
  LessonNumber result;
  result.label = std::move(label);
  result.value = value;
  result.rule = std::move(rule);
  return result;
}

std::vector<float> LessonBuilder::vector(capture::Stage stage, const std::vector<size_t>& index) const {
  const bool in_layer = capture::info(stage).place == capture::Place::in_layer;
  if (capture::is_square(stage)) {
    const capture::WeightSource& source = trace_.source(stage, options_.focus.layer);
    std::vector<float> row(source.key_len());
    source.row(index.at(0), index.at(1), index.at(2), row);
    return row;
  }
  const tensor::TensorView values = trace_.tensor(stage, in_layer ? options_.focus.layer : 0);
  const size_t length = values.shape()[values.shape().rank() - 1];
  const auto part = values.as<float>().subspan(flat_place(values.shape(), index), length);
  return {part.begin(), part.end()};
}

void LessonBuilder::quote_vector(LessonStep& step, capture::Stage stage, std::vector<size_t> index,
                                 const std::string& symbol) const {
  const std::vector<float> values = vector(stage, index);
  index.push_back(0);
  for (size_t i = 0; i < std::min(kQuotedNumbers, values.size()); ++i) {
    index.back() = i;
    step.numbers.push_back(number(stage, index, fmt::format("{}[{}]", symbol, i)));
  }
  step.picture = VectorStrip{values};
}

void LessonBuilder::quote_row(LessonStep& step, capture::Stage stage, const std::string& symbol) const {
  BarList bars;
  for (size_t j = 0; j < seq_; ++j) {
    const std::vector<size_t> index = {0, options_.focus.head, options_.focus.query, j};
    step.numbers.push_back(number(stage, index, fmt::format("{}[{}]", symbol, j)));
    step.numbers.back().in_picture = true;
    bars.tokens.push_back(j);
    bars.values.push_back(step.numbers.back().value);
    bars.lengths.push_back(step.numbers.back().value);
  }
  step.picture = std::move(bars);
}

std::vector<bool> LessonBuilder::visible() const {
  std::vector<bool> seen;
  for (float score : vector(capture::Stage::scores, {0, options_.focus.head, options_.focus.query})) {
    seen.push_back(score != -std::numeric_limits<float>::infinity());
  }
  return seen;
}

bool LessonBuilder::is_alone() const { return std::ranges::count(visible(), true) == 1; }

bool LessonBuilder::sees_another_word() const {
  const std::vector<bool> seen = visible();
  for (size_t j = 0; j < seq_; ++j) {
    if (seen[j] && j != options_.focus.query && !trace_.info().tokens[j].special) return true;
  }
  return false;
}

// softmax of the raw scores: what the weight would be had nobody divided.
double LessonBuilder::unscaled_weight() const {
  const LessonFocus& focus = options_.focus;
  std::vector<float> raw = vector(capture::Stage::raw_scores, {0, focus.head, focus.query});
  if (const auto cap = options_.soft_cap) {
    for (float& score : raw) score = *cap * std::tanh(score / *cap);
  }
  const std::vector<bool> seen = visible();
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (size_t j = 0; j < seq_; ++j) {
    if (seen[j]) largest = std::max(largest, double(raw[j]));
  }
  for (size_t j = 0; j < seq_; ++j) {
    if (seen[j]) sum += std::exp(raw[j] - largest);
  }
  return std::exp(raw[focus.key] - largest) / sum;
}

std::vector<double> LessonBuilder::given_lengths() const {
  const LessonFocus& focus = options_.focus;
  const std::vector<float> weights = vector(capture::Stage::weights, {0, focus.head, focus.query});
  std::vector<double> lengths;
  for (size_t j = 0; j < seq_; ++j) {
    double squares = 0;
    for (float x : vector(capture::Stage::value, {0, j, kv_head_})) squares += double(x) * x;
    lengths.push_back(weights[j] * std::sqrt(squares));
  }
  return lengths;
}

std::vector<LessonStep> make_lesson(const capture::Trace& trace, const LessonOptions& options) {
  LessonBuilder builder(trace, options);
  builder.add_text_steps();
  builder.add_embedding_steps();
  builder.add_role_steps();
  builder.add_shared_step();
  builder.add_rotary_steps();
  builder.add_score_steps();
  builder.add_output_steps();
  return builder.take();
}

}  // namespace clearhead::views
