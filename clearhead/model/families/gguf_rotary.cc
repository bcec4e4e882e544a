// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/model/families/gguf_config.h"

namespace clearhead::model {
namespace {

constexpr Meaning<RotaryScaling> kScalings[] = {{"none", RotaryScaling::none},
                                                {"linear", RotaryScaling::linear},
                                                {"yarn", RotaryScaling::yarn},
                                                {"longrope", RotaryScaling::longrope}};
constexpr const char *kLong = "rope_factors_long.weight", *kShort = "rope_factors_short.weight";

// The factors that a llama of longrope has as tensors; they and the factor both divide.
void read_longrope(const GgufConfig& gguf, double factor, RotaryConfig& rotary) {
  auto long_factors = gguf.numbers(kLong), short_factors = gguf.numbers(kShort);
  if (rotary.scaling != RotaryScaling::longrope) {
    if (!long_factors && !short_factors) return;
    base::fail(gguf.where(), fmt::format("rope.scaling.type longrope beside {}", long_factors ? kLong : kShort),
               "another or none");
  }
  if (!long_factors || !short_factors) {
    base::fail(gguf.where(), fmt::format("{} and {} with rope.scaling.type longrope", kLong, kShort),
               long_factors || short_factors ? "one of them" : "neither");
  }
  for (auto* factors : {&*long_factors, &*short_factors}) {
    for (double& each : *factors) each *= factor;
  }
  rotary.long_factors = std::move(*long_factors);
  rotary.short_factors = std::move(*short_factors);
  rotary.factor = 1;
}

// What yarn alone has; attention: the factor that multiplies what it implies.
void read_yarn(GgufConfig& gguf, double attention, RotaryConfig& rotary) {
  rotary.beta_fast = gguf.number("rope.scaling.yarn_beta_fast", rotary.beta_fast);
  rotary.beta_slow = gguf.number("rope.scaling.yarn_beta_slow", rotary.beta_slow);
  const double mix = gguf.number("rope.scaling.yarn_ext_factor", -1);  // below 0: not said
  if (mix >= 0 && mix != 1) base::fail(gguf.where(), "rope.scaling.yarn_ext_factor of 1", fmt::format("{}", mix));
  const bool given = gguf.contains("rope.scaling.yarn_attn_factor");  // the attention_factor of config.json
  const double implied = given ? gguf.number("rope.scaling.yarn_attn_factor") : rotary.effective_attention_factor();
  if (given || attention != 1) rotary.attention_factor = implied * attention;
}

}  // namespace

RotaryConfig read_rotary_gguf(GgufConfig& gguf, size_t head_dim, size_t context_len) {
  RotaryConfig rotary;
  rotary.dim = gguf.count("rope.dimension_count", head_dim);
  rotary.base = gguf.number("rope.freq_base", rotary.base);
  rotary.scaling = gguf.meaning("rope.scaling.type", kScalings, "linear");
  const double old_factor = gguf.number("rope.scale_linear", 0);  // before there was a type
  const double factor = gguf.number("rope.scaling.factor", old_factor);
  if (factor != 0 && rotary.scaling != RotaryScaling::none) rotary.factor = factor;  // 0: not said
  if (rotary.scaling == RotaryScaling::linear && rotary.factor == 1) rotary.scaling = RotaryScaling::none;
  const size_t original_len = gguf.count("rope.scaling.original_context_length", 0);  // 0: not said
  rotary.original_len = original_len == 0 ? context_len : original_len;
  const double attention = gguf.number("rope.scaling.attn_factor", 1);
  if (rotary.scaling == RotaryScaling::yarn) {
    read_yarn(gguf, attention, rotary);
  } else if (attention != 1 || rotary.scaling == RotaryScaling::longrope) {
    rotary.attention_factor = attention;
  }
  read_longrope(gguf, rotary.factor, rotary);
  gguf.ignore({"rope.scaling.finetuned"});  // where the file came from
  return rotary;
}

}  // namespace clearhead::model
