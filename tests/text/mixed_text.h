// SPDX-License-Identifier: Apache-2.0
// 10 MB of mixed text, and the digests of its tokens, as golden/mixed_text.py makes them too.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clearhead/base/memory.h"
#include "clearhead/base/utf8.h"
#include "clearhead/text/tokenizer.h"
#include "tests/support/thread_clock.h"

namespace clearhead::tests {

// Lines of whole texts of bert_golden.json, of pieces of them with and without marks strewn in, of characters of one
// page of Unicode, and of characters from anywhere.
class MixedText {
 public:
  // golden: the path of bert_golden.json.
  static std::vector<std::string> of(const std::string& golden) {
    MixedText source(golden);
    std::vector<std::string> texts;
    for (size_t size = 0; size < kBytes; size += texts.back().size()) texts.push_back(source.line());
    return texts;
  }

 private:
  static constexpr size_t kBytes = 10'000'000;

  explicit MixedText(const std::string& golden) {
    for (const auto& row : nlohmann::json::parse(base::read_file(golden, 1 << 20))) {
      texts_.push_back(row[0].get<std::string>());
    }
  }

  // splitmix64 (Steele et al. 2014, Fast Splittable Pseudorandom Number Generators).
  size_t below(size_t count) {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t value = state_;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return (value ^ value >> 31) % count;
  }

  std::string line() {
    const std::string_view between = std::vector<std::string_view>{"", " ", "\n"}[below(3)];
    const size_t parts = 1 + below(11);
    std::string text;
    for (size_t i = 0; i < parts; ++i) {
      if (i > 0) text += between;
      text += part();
    }
    return text;
  }

  std::string part() {
    const size_t kind = below(100);
    if (kind < 55) return texts_[below(texts_.size())];
    if (kind < 85) return piece(kind >= 75);
    return characters(kind < 95);
  }

  std::string piece(bool marked) {
    static constexpr std::pair<char32_t, char32_t> kMarks[] = {{0x300, 0x36f},     {0x591, 0x5bd},   {0x64b, 0x655},
                                                               {0x93c, 0x94d},     {0xe31, 0xe3a},   {0x302a, 0x302f},
                                                               {0x1d165, 0x1d169}, {0x200b, 0x200f}, {0xfe00, 0xfe0f}};
    const std::string& text = texts_[below(texts_.size())];
    std::vector<size_t> begins;
    for (size_t at = 0; at < text.size(); at += base::decode_utf8(std::string_view(text).substr(at)).length) {
      begins.push_back(at);
    }
    begins.push_back(text.size());
    const size_t first = below(begins.size()), last = std::min(first + 1 + below(20), begins.size() - 1);
    std::string result;
    for (size_t i = first; i < last; ++i) {
      result.append(text, begins[i], begins[i + 1] - begins[i]);
      if (!marked || below(5) >= 2) continue;
      const auto& [begin, end] = kMarks[below(std::size(kMarks))];
      base::append_utf8(result, begin + static_cast<char32_t>(below(end - begin + 1)));
    }
    return result;
  }

  std::string characters(bool of_one_page) {
    const size_t page = of_one_page ? below(0x1100) : 0;
    std::string result;
    for (size_t left = 1 + below(29); left > 0; --left) {
      const auto c = static_cast<char32_t>(of_one_page ? page * 256 + below(256) : below(0x110000));
      base::append_utf8(result, c >= 0xd800 && c < 0xe000 ? char32_t{0xfffd} : c);
      if (below(10) < 3) result += ' ';
    }
    return result;
  }

  std::vector<std::string> texts_;
  uint64_t state_ = 20240230;
};

// Of each thousand rows of numbers, FNV-1a of 64 bits over the numbers, each as one step, and a row's end as another.
class Digests {
 public:
  static constexpr size_t kBlock = 1000;

  void add(uint64_t number) { value_ = (value_ ^ number) * 0x100000001b3u; }
  void end_row() {
    add(UINT64_MAX);
    if (++rows_ % kBlock == 0) end_block();
  }
  std::vector<std::string> finish() {
    if (rows_ % kBlock != 0) end_block();
    return std::move(blocks_);
  }

 private:
  void end_block() {
    blocks_.push_back(fmt::format("{:016x}", value_));
    value_ = kStart;
  }

  static constexpr uint64_t kStart = 0xcbf29ce484222325u;
  uint64_t value_ = kStart;
  size_t rows_ = 0;
  std::vector<std::string> blocks_;
};

// Are the tokens of the mixed text those of a golden? offsets: their places too, which goldens of llama.cpp have not.
// Where a sanitizer looks on, only of the first texts.
inline void expect_mixed_golden(const text::Tokenizer& tokenizer, const std::vector<std::string>& texts,
                                const std::string& golden, bool offsets) {
  SCOPED_TRACE(golden);
  const auto expected = nlohmann::json::parse(base::read_file(golden, 1 << 20));
  Digests own, all;
  size_t tokens = 0;
  constexpr size_t kFewBlocks = 2;
  const size_t count = kSlower > 1 ? kFewBlocks * Digests::kBlock : texts.size();
  for (const std::string& text : std::span(texts).first(count)) {
    for (const char byte : text) own.add(static_cast<unsigned char>(byte));
    own.end_row();
    if (offsets) {
      for (const text::Token& token : tokenizer.encode(text).tokens) {
        for (const auto number : {static_cast<uint64_t>(token.id), uint64_t{token.begin}, uint64_t{token.end}}) {
          all.add(number);
        }
        ++tokens;
      }
    } else {
      for (const int64_t id : tokenizer.encode_ids(text)) {
        all.add(static_cast<uint64_t>(id));
        ++tokens;
      }
    }
    all.end_row();
  }
  const auto first_of = [&](const char* name, size_t blocks) {
    auto known = expected[name].get<std::vector<std::string>>();
    if (kSlower > 1) known.resize(blocks);
    return known;
  };
  const std::vector<std::string> text_digests = own.finish(), token_digests = all.finish();
  ASSERT_EQ(text_digests, first_of("text_digests", text_digests.size())) << "the text itself is another";
  if (count == texts.size()) {
    EXPECT_EQ(tokens, expected["tokens"]);
  }
  EXPECT_EQ(token_digests, first_of("token_digests", token_digests.size())) << "a digest is of a thousand texts";
}

}  // namespace clearhead::tests
