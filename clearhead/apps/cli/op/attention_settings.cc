// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string_view>

#include "clearhead/apps/cli/op/attention_problem.h"
#include "clearhead/base/error.h"

namespace clearhead::apps {
namespace {

constexpr std::string_view kWhere = "op attention";
constexpr int64_t kFirstOpset = 23, kWindowOpset = 25, kLastOpset = 25;

// Types by the numbers that ONNX gives them.
constexpr int64_t kFloat = 1, kFloat16 = 10, kDouble = 11, kBFloat16 = 16;

// Keys on one side; nothing for -1, which is all of them.
std::optional<size_t> read_window(Attributes& attributes, const std::string& name, int64_t opset) {
  const std::optional<int64_t> window = attributes.integer(name);
  if (!window) return std::nullopt;
  if (opset < kWindowOpset) {
    base::refuse(kWhere, fmt::format("attribute {} from opset {} on", name, kWindowOpset),
                 fmt::format("opset {}", opset));
  }
  if (*window < -1) {
    base::refuse(kWhere, fmt::format("attribute {} to be -1 (all) or the number of keys", name),
                 fmt::format("{}", *window));
  }
  return *window == -1 ? std::nullopt : std::optional(static_cast<size_t>(*window));
}

std::optional<ScoreOutput> read_score_output(Attributes& attributes) {
  const std::optional<int64_t> mode = attributes.integer("qk_matmul_output_mode");
  if (!mode) return std::nullopt;
  if (*mode < 0 || *mode > 3) {
    base::refuse(kWhere, "attribute qk_matmul_output_mode from 0 to 3", fmt::format("{}", *mode));
  }
  return static_cast<ScoreOutput>(*mode);
}

// Whether the softmax must be computed in double; in float it is whatever the attribute says.
bool read_precision(Attributes& attributes) {
  const int64_t type = attributes.integer("softmax_precision").value_or(kFloat);
  if (type != kFloat && type != kFloat16 && type != kDouble && type != kBFloat16) {
    base::refuse(kWhere,
                 fmt::format("attribute softmax_precision of {} (float), {} (float16), {} (double), {} (bfloat16)",
                             kFloat, kFloat16, kDouble, kBFloat16),
                 fmt::format("{}", type));
  }
  return type == kDouble;
}

// What the products are computed in; an attribute of our own.
attention::Precision read_product_precision(Attributes& attributes) {
  const std::string name = attributes.text("precision").value_or("float");
  if (name == "float") return attention::Precision::single;
  if (name == "bfloat16") return attention::Precision::bfloat16;
  base::refuse(kWhere, "attribute precision of float or bfloat16", base::quoted(name));
}

std::optional<float> read_soft_cap(Attributes& attributes) {
  const double cap = attributes.number("softcap").value_or(0);
  if (cap < 0) base::refuse(kWhere, "attribute softcap to be 0 (none) or more", fmt::format("{}", cap));
  return cap == 0 ? std::nullopt : std::optional(static_cast<float>(cap));
}

}  // namespace

AttentionSettings read_attention_settings(Attributes& attributes) {
  AttentionSettings settings;
  settings.opset = attributes.integer("opset").value_or(kLastOpset);
  if (settings.opset < kFirstOpset || settings.opset > kLastOpset) {
    base::refuse(kWhere, fmt::format("attribute opset from {} to {}", kFirstOpset, kLastOpset),
                 fmt::format("{}", settings.opset));
  }
  settings.causal = attributes.flag("is_causal").value_or(false);
  if (const auto scale = attributes.number("scale")) settings.scale = static_cast<float>(*scale);
  settings.soft_cap = read_soft_cap(attributes);
  settings.num_heads = attributes.count("q_num_heads");
  settings.num_kv_heads = attributes.count("kv_num_heads");
  settings.score_output = read_score_output(attributes);
  settings.in_double = read_precision(attributes);
  settings.precision = read_product_precision(attributes);
  settings.left_window = read_window(attributes, "left_window_size", settings.opset);
  settings.right_window = read_window(attributes, "right_window_size", settings.opset);
  settings.statistics = read_statistic_settings(attributes);
  attributes.check_all_known();
  return settings;
}

}  // namespace clearhead::apps
