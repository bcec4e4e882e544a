// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <span>
#include <string_view>

#include "clearhead/base/error.h"

namespace clearhead::attention {
namespace {

std::string_view name_of(Causal causal) {
  switch (causal) {
    case Causal::none: return "none";
    case Causal::top_left: return "top_left";
    case Causal::offset: return "offset";
  }
  return {};
}

std::string_view name_of(Precision precision) { return precision == Precision::single ? "float" : "bfloat16"; }

std::string text_of(const std::optional<size_t>& window) { return window ? fmt::format("{}", *window) : "null"; }

// JSON knows no infinity.
std::string text_of(float value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

std::string text_of(std::span<const float> values) {
  std::vector<std::string> texts;
  for (float value : values) texts.push_back(text_of(value));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

void check_per_head(std::string_view what, std::span<const float> values, size_t num_heads) {
  if (values.empty() || values.size() == num_heads) return;
  base::refuse("attention", fmt::format("{} {}, one a head", num_heads, what), fmt::format("{}", values.size()));
}

}  // namespace

float AttentionConfig::effective_scale() const {
  return scale ? *scale : static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

void AttentionConfig::check() const {
  const auto positive = [](std::string_view name, size_t count) {
    if (count == 0) base::refuse("attention", fmt::format("at least 1 for {}", name), "0");
  };
  positive("num_heads", num_heads);
  positive("num_kv_heads", num_kv_heads);
  positive("head_dim", head_dim);
  positive("value_dim", value_dim);
  if (num_heads % num_kv_heads != 0) {
    base::refuse("attention", "num_heads to be a multiple of num_kv_heads",
                 fmt::format("{} heads and {} kv heads", num_heads, num_kv_heads));
  }
  const auto finite = [](std::string_view what, float value) {
    if (!std::isfinite(value)) base::refuse("attention", fmt::format("a finite {}", what), fmt::format("{}", value));
  };
  finite("scale", effective_scale());
  if (soft_cap && !(*soft_cap > 0 && std::isfinite(effective_scale() / *soft_cap) && std::isfinite(*soft_cap * 2))) {
    base::refuse("attention", "a soft cap greater than 0 that the scale can be divided by",
                 fmt::format("{}", *soft_cap));
  }
  check_per_head("ALiBi slopes", alibi_slopes, num_heads);
  for (float slope : alibi_slopes) finite("ALiBi slope", slope);
  check_per_head("sinks", sinks, num_heads);
  for (float sink : sinks) {
    if (std::isnan(sink) || sink == std::numeric_limits<float>::infinity()) {
      base::refuse("attention", "a sink that is finite or -infinity", fmt::format("{}", sink));
    }
  }
}

std::string AttentionConfig::json() const {
  return fmt::format(
      R"({{"num_heads": {}, "num_kv_heads": {}, "head_dim": {}, "value_dim": {}, "scale": {}, "causal": "{}", )"
      R"("key_offset": {}, "left_window": {}, "right_window": {}, "soft_cap": {}, "alibi_slopes": {}, "sinks": {}, )"
      R"("precision": "{}"}})",
      num_heads, num_kv_heads, head_dim, value_dim, effective_scale(), name_of(causal), key_offset,
      text_of(left_window), text_of(right_window), soft_cap ? text_of(*soft_cap) : "null", text_of(alibi_slopes),
      text_of(sinks), name_of(precision));
}

}  // namespace clearhead::attention
