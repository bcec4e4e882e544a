// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/config.h"

#include <fmt/format.h>

#include <cmath>
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
  if (!std::isfinite(effective_scale())) {
    base::refuse("attention", "a finite scale", fmt::format("{}", effective_scale()));
  }
}

std::string AttentionConfig::json() const {
  return fmt::format(
      R"({{"num_heads": {}, "num_kv_heads": {}, "head_dim": {}, "value_dim": {}, "scale": {}, "causal": "{}", )"
      R"("key_offset": {}}})",
      num_heads, num_kv_heads, head_dim, value_dim, effective_scale(), name_of(causal), key_offset);
}

}  // namespace clearhead::attention
