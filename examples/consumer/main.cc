// SPDX-License-Identifier: Apache-2.0
// Says for each token of a text where one head looks most:
//
//   consumer TEXT [MODEL [LAYER [HEAD]]]
//
// MODEL is whatever `clearhead --model` takes; without it the toy, which needs no files.
#include <clearhead/base/error.h>
#include <clearhead/capture/selection.h>
#include <clearhead/capture/trace.h>
#include <clearhead/engine/session.h>

#include <algorithm>
#include <cstddef>
#include <iostream>

namespace {

using clearhead::capture::Stage;

void show(const char* text, const char* model, const char* layer_text, const char* head_text) {
  const auto session = clearhead::engine::Session::open(model);
  const auto layers = clearhead::capture::parse_index_set(layer_text, "LAYER", session.config().num_layers);
  const auto heads = clearhead::capture::parse_index_set(head_text, "HEAD", session.config().attention.num_heads);
  const auto trace = session.run(text, {.stages = {Stage::weights}, .layers = layers, .heads = heads});
  const auto& tokens = trace.info().tokens;
  const auto weights = trace.tensor(Stage::weights, layers.front()).as<float>();  // [1, heads, query, key]
  for (size_t query = 0; query < tokens.size(); ++query) {
    const auto row = weights.subspan(query * tokens.size(), tokens.size());
    const auto strongest = std::ranges::max_element(row);
    std::cout << tokens[query].text << " looks at " << tokens[static_cast<size_t>(strongest - row.begin())].text << ", "
              << *strongest << '\n';
  }
}

}  // namespace

int main(int count, char** arguments) try {
  const auto argument = [&](int index, const char* otherwise) { return index < count ? arguments[index] : otherwise; };
  show(argument(1, "The cat sat on the mat"), argument(2, "toy"), argument(3, "0"), argument(4, "0"));
  return 0;
} catch (const clearhead::base::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
