// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "clearhead/text/normalizer.h"

namespace clearhead::text {

// The four normal forms of Unicode: canonical (nfc, nfd) or with compatibility (nfkc, nfkd), composed or decomposed.
// Time grows with the length; a run of n marks costs n log n.
// Source: Unicode Standard Annex 15; which code points change is what the tokenizers library does (unicode.h).
class NormalForm final : public Normalizer {
 public:
  enum class Form { nfc, nfd, nfkc, nfkd };

  explicit NormalForm(Form form) : form_(form) {}

  void normalize(const AlignedText& source, AlignedText& result) const override;

 private:
  Form form_;
};

}  // namespace clearhead::text
