// SPDX-License-Identifier: Apache-2.0
// Any bytes as a tokenizer.json: either it is refused by an Error, or the tokenizer encodes a text of all kinds, each
// token lies in the text, and its stream decodes as all at once.
#include <cstdint>
#include <string_view>

#include "clearhead/base/error.h"
#include "fuzz/tokenizer_laws.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace std::string_view_literals;
  constexpr std::string_view kText =
      "[CLS] The cat, a\0b na\u00efve \u4f60\u597d \xff \xe4\xb8  x y [MASK] e\u0301.\n <s>I'LL 12345  \u2581 \U0001f600"sv;
  try {
    const auto tokenizer =
        clearhead::text::Tokenizer::from_json({reinterpret_cast<const char*>(data), size}, "tokenizer.json");
    clearhead::fuzz::check_text(tokenizer, kText, false);
  } catch (const clearhead::base::Error&) {
  }
  return 0;
}
