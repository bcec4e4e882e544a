// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "clearhead/text/pre_tokenizer.h"

namespace clearhead::text {

// How byte-level BPE of a GGUF cuts words, by its tokenizer.ggml.pre, and what else llama.cpp knows by that name alone.
struct GgufCut {
  std::string_view names;                       // those of one kind, with spaces between
  std::array<std::string_view, 6> expressions;  // each cuts what those before it left; empty ones come last
  bool ignore_merges = false;                   // a word that is a piece needs no merges
  bool begins = false;                          // a text begins with a token of its own unless the file says otherwise
  bool usual_begin = true;                      // that token has an id even if the file names none
  bool needs_merges = true;
  bool mask_takes_spaces = false;  // white space before <mask> is part of it
};

// The cut of a name. Throws: Error (failure) for a name that is not known, listing those that are; `where` opens it.
const GgufCut& gguf_cut(std::string_view name, std::string_view where);

// Cuts with the categories of Unicode 15.1 (category.h), as llama.cpp does, and writes bytes as its last step.
std::unique_ptr<PreTokenizer> pre_tokenizer_of(const GgufCut& cut);

}  // namespace clearhead::text
