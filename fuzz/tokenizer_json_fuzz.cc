// SPDX-License-Identifier: Apache-2.0
// Any bytes as a tokenizer.json: either it is refused by an Error, or the tokenizer encodes a text of all kinds and
// each token lies in the text.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "clearhead/base/error.h"
#include "clearhead/text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace std::string_view_literals;
  constexpr std::string_view kText = "[CLS] The cat, a\0b na\u00efve \u4f60\u597d \xff \xe4\xb8  x y [MASK] e\u0301."sv;
  try {
    const auto tokenizer =
        clearhead::text::Tokenizer::from_json({reinterpret_cast<const char*>(data), size}, "tokenizer.json");
    for (const auto& token : tokenizer.encode(kText).tokens) {
      if (token.begin > token.end || token.end > kText.size()) std::abort();
      if (token.id < 0 || static_cast<size_t>(token.id) >= tokenizer.vocab_size()) std::abort();
    }
  } catch (const clearhead::base::Error&) {
  }
  return 0;
}
