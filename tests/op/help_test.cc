// SPDX-License-Identifier: Apache-2.0
// What `clearhead op --help` says about an operator is what the operator knows.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "run_op.h"

namespace clearhead::tests {
namespace {

using Names = std::set<std::string>;

// The names in a text "a, b,\n  c".
Names names_in(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == ',' || c == '\n'; }, ' ');
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t first = text.find(begin), start = first + begin.size();
  EXPECT_NE(first, std::string::npos) << begin << " in " << text;
  return first == std::string::npos ? "" : text.substr(start, text.find(end, start) - start);
}

// The names that the error for an unknown one lists.
Names known_by(const std::string& error) { return names_in(between(error, " of ", "; found")); }

struct Minimal {
  std::string name;
  Tensors inputs;
  std::string attributes;  // without the last brace
};

std::vector<Minimal> minimal_inputs() {
  std::vector<Minimal> all(4);
  const auto square = [](uint64_t seed) { return hashed_tensor(seed, {1, 1, 2, 4}); };
  all[0].name = "attention", all[0].attributes = "{";
  for (const char* name : {"Q", "K", "V"}) all[0].inputs[name] = square(1);
  all[1].name = "multi_head_attention", all[1].attributes = R"({"num_heads": 1)";
  for (const char* name : {"query", "key", "value"}) all[1].inputs[name] = hashed_tensor(2, {2, 1, 4});
  all[1].inputs["in_proj_weight"] = hashed_tensor(3, {12, 4});
  all[1].inputs["out_proj.weight"] = hashed_tensor(4, {4, 4});
  all[2].name = "rotary_embedding", all[2].attributes = "{", all[2].inputs["X"] = square(5);
  for (const char* name : {"cos_cache", "sin_cache"}) all[2].inputs[name] = hashed_tensor(6, {1, 2, 2});
  all[3].name = "softmax", all[3].attributes = "{", all[3].inputs["input"] = square(7);
  return all;
}

TEST(OperatorHelp, NamesEveryInputAttributeAndOutputAndNoOther) {
  const std::string help = apps::operator_help();
  const OpRun run;
  Names operators;
  for (const Minimal& one : minimal_inputs()) {
    SCOPED_TRACE(one.name);
    operators.insert(one.name);
    const std::string own = between(help, "\n" + one.name + "\n", "\n\n") + "\n\n";
    const std::string separator = one.attributes == "{" ? "" : ", ";
    EXPECT_EQ(names_in(between(own, "attributes ", "\n  outputs")),
              known_by(run.error(one.name, one.inputs, one.attributes + separator + R"("zz": 1})")));
    Tensors more;
    for (const auto& [name, tensor] : one.inputs) more[name] = tensor::clone(tensor);
    more["zz"] = hashed_tensor(8, {1});
    EXPECT_EQ(names_in(between(own, "inputs ", "\n  attributes")),
              known_by(run.error(one.name, more, one.attributes + "}")));
    EXPECT_EQ(names_in(between(own, "outputs ", "\n\n")),
              known_by(run.error(one.name, one.inputs, one.attributes + "}", {"zz"})));
  }
  const auto all = apps::operator_names();
  EXPECT_EQ(operators, Names(all.begin(), all.end()));
}

}  // namespace
}  // namespace clearhead::tests
