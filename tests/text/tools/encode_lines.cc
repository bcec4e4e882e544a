// SPDX-License-Identifier: Apache-2.0
// Encodes many texts, for comparison with another tokenizer:
//
//   encode_lines TOKENIZER <texts >tokens     TOKENIZER is a tokenizer.json or a GGUF
//   encode_lines --json GGUF >tokenizer.json  the file that says the same as the metadata
//   encode_lines --time TOKENIZER <texts      only the speed, the best of five times
//
// Each text comes as its length (4 bytes, little-endian) and its bytes. For each one line comes back: "id,begin,end" of
// every token, with spaces between. The speed goes to standard error: of encode, and of encode_ids.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/format/gguf.h"
#include "clearhead/text/gguf_tokenizer.h"
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

clearhead::text::Tokenizer open(std::string_view file) {
  if (!file.ends_with(".gguf")) return clearhead::text::Tokenizer::from_file(file);
  return clearhead::text::gguf_tokenizer(clearhead::format::GgufFile::open(file).metadata());
}

void write_tokens(const clearhead::text::Tokenizer& tokenizer, const std::vector<std::string_view>& texts) {
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
}

void run(std::string_view file, bool write) {
  const auto tokenizer = open(file);
  const std::string input((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  const std::vector<std::string_view> texts = split(input);
  if (write) write_tokens(tokenizer, texts);
  double full = 0, ids = 0;
  for (int i = 0; i < (write ? 1 : 5); ++i) {
    full = std::max(full, speed(texts, [&](std::string_view text) { return tokenizer.encode(text).tokens.size(); }));
    ids = std::max(ids, speed(texts, [&](std::string_view text) { return tokenizer.encode_ids(text).size(); }));
  }
  std::fprintf(stderr, "encode: %.1f MB/s, encode_ids: %.1f MB/s\n", full, ids);
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view first = count > 1 ? arguments[1] : "";
  const bool option = first == "--json" || first == "--time";
  if (count != (option ? 3 : 2)) {
    std::fprintf(stderr, "usage: encode_lines [--json | --time] TOKENIZER <texts >tokens\n");
    return 2;
  }
  try {
    if (first == "--json") {
      std::cout << clearhead::text::gguf_tokenizer_json(clearhead::format::GgufFile::open(arguments[2]).metadata());
    } else {
      run(arguments[count - 1], !option);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
