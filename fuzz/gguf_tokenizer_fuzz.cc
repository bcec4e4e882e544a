// SPDX-License-Identifier: Apache-2.0
// Any bytes as a GGUF file with a tokenizer: either it is refused by an Error, or the tokenizer encodes a text of all
// kinds, each token lies in the text, and its stream decodes as all at once.
#include <cstdint>
#include <span>
#include <string_view>

#include "clearhead/base/error.h"
#include "clearhead/format/gguf.h"
#include "clearhead/text/gguf_tokenizer.h"
#include "fuzz/tokenizer_laws.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace std::string_view_literals;
  constexpr std::string_view kText =
      "ab a\u00e9 ba ba<|x|> <s>Playing[SEP]  12345 \u4f60\n\xff\xe4 \0 \u2581ab \U0001f600"sv;
  const auto input = std::as_bytes(std::span(data, size));
  try {
    const auto file = clearhead::format::GgufFile::read({input.begin(), input.end()}, "fuzz");
    clearhead::fuzz::check_text(clearhead::text::gguf_tokenizer(file.metadata()), kText, false);
  } catch (const clearhead::base::Error&) {
  }
  return 0;
}
