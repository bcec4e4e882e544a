// SPDX-License-Identifier: Apache-2.0
#include "clearhead/measure/tokenizer_run.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string_view>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/base/memory.h"
#include "clearhead/format/checkpoint.h"
#include "clearhead/format/known_models.h"
#include "clearhead/text/gguf_tokenizer.h"

namespace clearhead::measure {
namespace {

constexpr size_t kWords = 20'000, kLineBytes = 200, kSentence = 14;

bool is_word(std::string_view piece) {
  return piece.size() > 1 && std::ranges::all_of(piece, [](char c) { return c >= 'a' && c <= 'z'; });
}

// Whole words of the vocabulary, which stand in the order of how frequent they are.
std::vector<std::string_view> words_of(const text::Tokenizer& tokenizer) {
  std::vector<std::string_view> words;
  for (size_t id = 0; id < tokenizer.vocab_size() && words.size() < kWords; ++id) {
    const std::string_view piece = tokenizer.piece_of(static_cast<int64_t>(id));
    if (is_word(piece)) words.push_back(piece);
  }
  if (words.empty()) base::refuse("tokenizer", "a vocabulary with English words", "none", "measure another model");
  return words;
}

}  // namespace

std::string sample_text(const text::Tokenizer& tokenizer, size_t bytes) {
  const auto words = words_of(tokenizer);
  std::mt19937_64 generator(7);
  // Word number r with a frequency of 1 / r, as in a real text.
  const auto any_word = [&] {
    const double place = double(generator() >> 11) * 0x1p-53;
    return words[static_cast<size_t>(std::pow(double(words.size()), place)) - 1];
  };
  std::string text;
  for (size_t word = 0, line = 0; text.size() < bytes; ++word) {
    const bool first = word % kSentence == 0;
    const size_t begin = text.size();
    text += any_word();
    if (generator() % 16 == 0) text += any_word();
    if (first) text[begin] = static_cast<char>(text[begin] - 'a' + 'A');
    if (word % kSentence == kSentence - 1) text += '.';
    if (generator() % 12 == 0) text += ',';
    const bool ends = text.size() - line > kLineBytes;
    text += ends ? '\n' : ' ';
    if (ends) line = text.size();
  }
  return text;
}

size_t tokenize_lines(const text::Tokenizer& tokenizer, const std::string& text, bool offsets) {
  size_t tokens = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    tokens += offsets ? tokenizer.encode(line).tokens.size() : tokenizer.encode_ids(line).size();
    begin = end + 1;
  }
  return tokens;
}

std::string tokenizer_json_of(std::string_view model) {
  constexpr size_t kMostBytes = size_t{256} << 20;
  const auto checkpoint = format::Checkpoint::open(format::resolve_model(model).path);
  const format::GgufMetadata* gguf = checkpoint.gguf_metadata();
  return gguf != nullptr ? text::gguf_tokenizer_json(*gguf) : base::read_file(checkpoint.tokenizer_path(), kMostBytes);
}

std::vector<std::vector<int64_t>> TokenizerRun::ids() const {
  std::vector<std::vector<int64_t>> result;
  for (const std::string& text : texts_) result.push_back(tokenizer_.encode_ids(text, false));
  return result;
}

size_t TokenizerRun::run(bool offsets) const {
  size_t tokens = 0;
  for (const std::string& text : texts_) {
    tokens += offsets ? tokenizer_.encode(text, false).tokens.size() : tokenizer_.encode_ids(text, false).size();
  }
  return tokens;
}

}  // namespace clearhead::measure
