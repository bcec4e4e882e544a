// SPDX-License-Identifier: Apache-2.0
// Normalizers and pre-tokenizers one by one against the tokenizers library, by golden/make_component_golden.py.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "clearhead/base/memory.h"
#include "clearhead/text/tokenizer.h"

namespace clearhead::text {
namespace {

// "id[begin,end) id[begin,end)". A golden's spans are the gap since the last token and the length.
std::string expected(const nlohmann::json& ids, const nlohmann::json& spans) {
  std::string result;
  int64_t last = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto gap = spans[2 * i].get<int64_t>(), length = spans[2 * i + 1].get<int64_t>();
    const int64_t begin = gap == 0 && length == 0 ? 0 : last + gap;
    result += std::to_string(ids[i].get<int64_t>()) + "[" + std::to_string(begin) + "," +
              std::to_string(begin + length) + ") ";
    if (gap != 0 || length != 0) last = begin + length;
  }
  return result;
}

std::string shown(const Encoding& encoding) {
  std::string result;
  for (const Token& token : encoding.tokens) {
    result += std::to_string(token.id) + "[" + std::to_string(token.begin) + "," + std::to_string(token.end) + ") ";
  }
  return result;
}

TEST(Golden, EveryIdAndOffsetOfComponents) {
  const auto cases = nlohmann::json::parse(base::read_file(CLEARHEAD_TEST_DATA "/components_golden.json", 1 << 20));
  ASSERT_GE(cases.size(), 2u);
  for (const auto& [json, rows] : cases.get<std::vector<std::pair<nlohmann::json, nlohmann::json>>>()) {
    const Tokenizer tokenizer = Tokenizer::from_json(json.dump(), "tokenizer.json");
    ASSERT_GE(rows.size(), 100u);
    for (const auto& row : rows) {
      const auto text = row[0].get<std::string>();
      EXPECT_EQ(shown(tokenizer.encode(text)), expected(row[1], row[2]))
          << text << " by " << json["normalizer"] << json["pre_tokenizer"];
      EXPECT_EQ(tokenizer.encode_ids(text), row[1].get<std::vector<int64_t>>()) << text;
    }
  }
}

}  // namespace
}  // namespace clearhead::text
