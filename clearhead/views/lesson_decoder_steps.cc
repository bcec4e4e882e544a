// SPDX-License-Identifier: Apache-2.0
// Steps that decoders have: shared key heads, positions that are turned in, the mask.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "clearhead/views/lesson_builder.h"

namespace clearhead::views {

using capture::Stage;

std::string LessonBuilder::head_label(size_t first, size_t last) const {
  const std::string word = texts_.text("head_word");
  return first == last ? fmt::format("{} {}", word, first) : fmt::format("{} {}-{}", word, first, last);
}

void LessonBuilder::add_shared_step() {
  if (num_kv_heads_ == num_heads_) return;
  LessonStep& step = add_step("shared_heads", {fmt::format("query [{}, {}, {}]", seq_, num_heads_, head_dim_),
                                               fmt::format("key [{}, {}, {}]", seq_, num_kv_heads_, head_dim_),
                                               fmt::format("value [{}, {}, {}]", seq_, num_kv_heads_, value_dim_)});
  const size_t group = num_heads_ / num_kv_heads_;
  StripList strips;
  for (size_t head = 0; head < num_kv_heads_; ++head) {
    const std::vector<size_t> index = {0, options_.focus.key, head};
    strips.labels.push_back(head_label(head * group, (head + 1) * group - 1));
    strips.strips.push_back(vector(Stage::key, index));
    step.numbers.push_back(number(Stage::key, {0, options_.focus.key, head, 0}, fmt::format("k{}[0]", head)));
  }
  step.picture = std::move(strips);
}

// A vector before and after its pairs were turned; the first pair and the last in numbers.
void LessonBuilder::add_rotated_step(Stage before, Stage after, size_t token, size_t head_index) {
  const std::string name(capture::info(after).name), symbol = before == Stage::query ? "q" : "k";
  const size_t count = before == Stage::query ? num_heads_ : num_kv_heads_;
  LessonStep& step = add_step(name, {fmt::format("[{}, {}, {}]", seq_, count, head_dim_)});
  const RotaryPairs pairs = *options_.rotary;
  for (const size_t pair : {size_t{0}, pairs.dim / 2 - 1}) {
    const std::array<size_t, 2> places =
        pairs.interleaved ? std::array{2 * pair, 2 * pair + 1} : std::array{pair, pair + pairs.dim / 2};
    std::array<double, 4> values{};
    for (size_t k = 0; k < 2; ++k) {
      const std::vector<size_t> index = {0, token, head_index, places[k]};
      const LessonNumber old = number(before, index, fmt::format("{}[{}]", symbol, places[k]));
      const LessonNumber turned = number(after, index, fmt::format("{}'[{}]", symbol, places[k]));
      values[k] = old.value;
      values[2 + k] = turned.value;
      if (!options_.head_norm) step.numbers.push_back(old);
      step.numbers.push_back(turned);
    }
    if (options_.head_norm || pairs.dim == 2) continue;  // what was turned is the normed pair, or there is but one
    const double sine = values[0] * values[3] - values[1] * values[2];
    const double cosine = values[0] * values[2] + values[1] * values[3];
    step.numbers.push_back(
        derived(fmt::format("turn of pair {} in degrees", pair), std::atan2(sine, cosine) * 180 / std::numbers::pi,
                fmt::format("angle from the pair in {} to that in {}", capture::info(before).name, name)));
  }
  step.picture = StripList{{texts_.text("before"), texts_.text("after")},
                           {vector(before, {0, token, head_index}), vector(after, {0, token, head_index})}};
}

void LessonBuilder::add_rotary_steps() {
  if (!options_.rotary) return;
  add_rotated_step(Stage::query, Stage::rotated_query, options_.focus.query, options_.focus.head);
  add_rotated_step(Stage::key, Stage::rotated_key, options_.focus.key, kv_head_);
}

void LessonBuilder::add_mask_step() {
  const LessonFocus& focus = options_.focus;
  LessonStep& step =
      add_step("causal_mask", {fmt::format("[{}, {}]", seq_, seq_)}, options_.window ? "causal_mask_window" : "");
  const std::vector<bool> seen = visible();
  step.numbers.push_back(derived("visible", static_cast<double>(std::ranges::count(seen, true)),
                                 "scores of the row that are not minus infinity"));
  for (size_t j = 0; j < seq_; ++j) {
    if (seen[j]) continue;
    step.numbers.push_back(number(Stage::weights, {0, focus.head, focus.query, j}, fmt::format("p[{}]", j)));
    break;
  }
  step.picture = MaskGrid{focus.layer, focus.head};
}

}  // namespace clearhead::views
