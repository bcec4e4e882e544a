// SPDX-License-Identifier: Apache-2.0
// 10 MB of mixed text, every token of it: minilm, multilingual-e5-small and the two small tokenizers of byte pairs
// against the tokenizers library, smollm2 against llama.cpp (golden/make_golden.py, golden/make_llama_golden.py).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "clearhead/format/gguf.h"
#include "clearhead/text/gguf_tokenizer.h"
#include "tests/support/model_folder.h"
#include "tests/text/mixed_text.h"

namespace clearhead::text {
namespace {

const std::string kData = CLEARHEAD_TEST_DATA "/";

void expect_mixed(const Tokenizer& tokenizer, const std::string& name, bool offsets) {
  static const std::vector<std::string> texts = tests::MixedText::of(kData + "bert_golden.json");
  tests::expect_mixed_golden(tokenizer, texts, kData + name + "_mixed.json", offsets);
}

TEST(Mixed, EveryIdAndOffsetOfMinilm) {
  expect_mixed(Tokenizer::from_file(tests::minilm_folder() / "tokenizer.json"), "bert", true);
}

TEST(Mixed, EveryIdAndOffsetOfMultilingualE5) {
  expect_mixed(Tokenizer::from_file(tests::e5_folder() / "tokenizer.json"), "unigram", true);
}

TEST(Mixed, EveryIdAndOffsetOfBytePairs) {
  for (const std::string name : {"byte_bpe", "fallback_bpe"}) {
    expect_mixed(Tokenizer::from_file(kData + name + ".json"), name, true);
  }
}

TEST(Mixed, EveryIdOfSmollm2IsThatOfLlamaCpp) {
  const auto file = format::GgufFile::open(tests::smollm2_file());
  expect_mixed(gguf_tokenizer(file.metadata()), "smollm2", false);
}

}  // namespace
}  // namespace clearhead::text
