// SPDX-License-Identifier: Apache-2.0
#include "clearhead/apps/cli/op/operator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "clearhead/apps/cli/op/operators.h"
#include "clearhead/base/error.h"

namespace clearhead::apps {
namespace {

struct Operator {
  std::string_view name;
  Outputs (*run)(const OpRequest&, Inputs&, Attributes&);
};

constexpr Operator kOperators[] = {
    {"attention", attention_operator},
    {"multi_head_attention", multi_head_attention_operator},
    {"rotary_embedding", rotary_embedding_operator},
    {"softmax", softmax_operator},
};

}  // namespace

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const Operator& one : kOperators) names.emplace_back(one.name);
  return names;
}

void run_operator(const OpRequest& request) {
  for (const Operator& one : kOperators) {
    if (one.name != request.name) continue;
    const std::string where = "op " + request.name;
    Attributes attributes(where, request.attributes);
    const auto file = format::SafetensorsFile::open(request.input);
    Inputs inputs(where, file);
    one.run(request, inputs, attributes).write(request.output);
    return;
  }
  base::refuse("op", fmt::format("an operator of {}", fmt::join(operator_names(), ", ")), base::quoted(request.name));
}

}  // namespace clearhead::apps
