// SPDX-License-Identifier: Apache-2.0
// Encodes many texts, for comparison with another tokenizer:
//
//   encode_lines TOKENIZER_JSON <texts >tokens
//
// Each text comes as its length (4 bytes, little-endian) and its bytes. For each one line comes back: "id,begin,end" of
// every token, with spaces between. The speed goes to standard error: of encode, and of encode_ids.
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/text/tokenizer.h"

namespace {

std::vector<std::string_view> split(std::string_view input) {
  std::vector<std::string_view> texts;
  while (input.size() >= 4) {
    size_t length = 0;
    for (int i = 3; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(input[i]);
    texts.push_back(input.substr(4, length));
    input.remove_prefix(std::min(input.size(), 4 + length));
  }
  return texts;
}

// Megabytes per second of processor time of encoding all texts by `encode`.
template <class Encode>
double speed(const std::vector<std::string_view>& texts, const Encode& encode) {
  size_t bytes = 0;
  const std::clock_t start = std::clock();
  for (const std::string_view text : texts) {
    encode(text);
    bytes += text.size();
  }
  return static_cast<double>(bytes) / 1e6 * CLOCKS_PER_SEC / static_cast<double>(std::clock() - start);
}

void run(const char* file) {
  const auto tokenizer = clearhead::text::Tokenizer::from_file(file);
  const std::string input((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  const std::vector<std::string_view> texts = split(input);
  std::string lines;
  for (const std::string_view text : texts) {
    const char* space = "";
    for (const auto& token : tokenizer.encode(text).tokens) {
      lines += space + std::to_string(token.id) + ',' + std::to_string(token.begin) + ',' + std::to_string(token.end);
      space = " ";
    }
    lines += '\n';
  }
  std::cout << lines;
  const double full = speed(texts, [&](std::string_view text) { return tokenizer.encode(text).tokens.size(); });
  const double ids = speed(texts, [&](std::string_view text) { return tokenizer.encode_ids(text).size(); });
  std::fprintf(stderr, "encode: %.1f MB/s, encode_ids: %.1f MB/s\n", full, ids);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: encode_lines TOKENIZER_JSON <texts >tokens\n");
    return 2;
  }
  try {
    run(arguments[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
