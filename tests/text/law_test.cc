// SPDX-License-Identifier: Apache-2.0
// Laws of every kind of tokenizer: what is cut and put together again is the text, where the kind allows it, and the
// spans of the tokens tile it.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "clearhead/base/utf8.h"
#include "clearhead/format/gguf.h"
#include "clearhead/text/decoder.h"
#include "clearhead/text/gguf_tokenizer.h"
#include "clearhead/text/unicode.h"
#include "clearhead/text/valid_utf8.h"
#include "tests/support/model_folder.h"
#include "tests/text/law_tokenizers.h"

namespace clearhead::text::tests {
namespace {

using clearhead::tests::e5_folder;
using clearhead::tests::minilm_folder;
using clearhead::tests::smollm2_file;

const std::string kMark = "\u2581", kNul(1, '\0');

// What texts are made of: all that one component or another treats in its own way.
const std::vector<std::string>& parts() {
  static const std::vector<std::string> all = {
      "a",      "b",      "ab",      "aaaaaaa", "the",        " the",       " ",          "  ",
      "   ",    "\n",     "\r\n",    "\t",      kNul,         "\u007f",     "!",          "!!!!!",
      "'s",     "'LL",    "12",      "3456789", "\u0663",     "\u4f60",     "\u597d",     " \u4f60",
      "\ud55c", "\u00e9", "e\u0301", "\u0301",  "\ufb01",     "\u0130",     "\u00df",     "\u200d",
      "\u200b", "\u00a0", "\u3000",  "\u0085",  "\u2581",     "\u0120",     "\ufffd",     "\U0001f468\u200d\U0001f469",
      "<|x|>",  "ba ba",  "<s>",     "</s>",    "<unk>",      "[CLS]",      "[MASK]",     "<mask>",
      "<0x41>", "##b",    "\u302e",  "\u0e33",  "\U0001f600", "\U0001d15e", "\U0001f1e9", "<|im_start|>"};
  return all;
}

std::string any_valid_text() {
  std::string text;
  for (const std::string& part : *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(parts()))) {
    text += part;
  }
  return text;
}

std::string any_text() {
  const auto bytes = *rc::gen::resize(6, rc::gen::arbitrary<std::string>());
  const std::string text = any_valid_text();
  return *rc::gen::arbitrary<bool>() ? bytes + text : text + bytes;
}

// Where the characters of a text begin; an invalid sequence counts as one.  Shapes: [text + 1]
std::vector<bool> boundaries(std::string_view text) {
  std::vector<bool> begins(text.size() + 1);
  for (size_t at = 0; at < text.size(); at += base::decode_utf8(text.substr(at)).length) begins[at] = true;
  begins[text.size()] = true;
  return begins;
}

// Which bytes of the text belong to no token.
enum class Gaps {
  none,       // of a tokenizer that takes nothing out
  blank,      // white space, whose tokens show less than they stand for
  unwritten,  // likewise; what by itself has no token; marks that became one with the character before them
  any,        // of a space that was put in, the character behind it is taken out
};

struct Kind {
  std::string name;
  std::shared_ptr<const Tokenizer> tokenizer;
  Gaps gaps;
  // What a valid text is after it was cut and put together.
  std::function<std::string(const std::string& text)> kept;
  bool spaced = false;  // a space is put in, which stands for the character behind it
};

std::string same(const std::string& text) { return text; }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  replace_all(text, from, to);
  return text;
}

// A mark in the text is taken for a space, and a space is put in front of what follows a special token.
std::string with_spaces_behind(const std::string& text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    size_t length = 1;
    for (const std::string_view special : {"<s>", "<unk>"}) {
      if (std::string_view(text).substr(at).starts_with(special)) length = special.size();
    }
    result.append(text, at, length);
    at += length;
    const std::string_view rest = std::string_view(text).substr(at);
    if (length > 1 && !rest.empty() && !rest.starts_with("<s>") && !rest.starts_with("<unk>")) result += ' ';
  }
  return replaced(std::move(result), kMark, " ");
}

// A space is put in front of what begins without one, at the beginning and behind an added token.
std::string with_spaces_before(const std::string& text) {
  std::string result, stretch;
  const auto end_stretch = [&] {
    if (!stretch.empty() && stretch[0] != ' ') result += ' ';
    result += std::exchange(stretch, "");
  };
  for (size_t at = 0; at < text.size();) {
    size_t length = 0;
    for (const std::string_view added : {"<|x|>", "ba ba"}) {
      if (std::string_view(text).substr(at).starts_with(added)) length = added.size();
    }
    if (length > 0) end_stretch();
    (length > 0 ? result : stretch).append(text, at, std::max<size_t>(length, 1));
    at += std::max<size_t>(length, 1);
  }
  end_stretch();
  return result;
}

// Unigram takes a mark for a space, and what is spelled as the piece of a byte for the byte.
std::string without_marks(const std::string& text) { return replaced(replaced(text, kMark, " "), "<0x41>", "A"); }

// A space that the text begins with is taken for the mark that is put there otherwise.
std::string without_first_space(const std::string& text) {
  const std::string spaced = without_marks(text);
  return spaced.starts_with(' ') ? spaced.substr(1) : spaced;
}

const std::vector<Kind>& lossless_kinds() {
  static const std::vector<Kind> kinds = [] {
    std::vector<Kind> made;
    const auto add = [&](std::string name, const nlohmann::json& json, Gaps gaps, const auto& kept) {
      made.push_back({std::move(name), std::make_shared<Tokenizer>(from(json)), gaps, kept});
    };
    const nlohmann::json digits = {{"type", "Digits"}, {"individual_digits", true}};
    const nlohmann::json llama3 = {
        {"type", "Split"},
        {"pattern",
         {{"Regex",
           R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}}},
        {"behavior", "Isolated"},
        {"invert", false}};
    const auto sequence = [](const nlohmann::json& first, bool regex) -> nlohmann::json {
      return {{"type", "Sequence"}, {"pretokenizers", {first, byte_level_step(regex)}}};
    };
    add("gpt2", byte_level_json(byte_level_step(true), false), Gaps::none, same);
    add("gpt2, trimmed", byte_level_json(byte_level_step(true), true), Gaps::blank, same);
    add("one word", byte_level_json(byte_level_step(false), false), Gaps::none, same);
    add("digits", byte_level_json(sequence(digits, true), false), Gaps::none, same);
    add("llama 3", byte_level_json(sequence(llama3, false), false), Gaps::none, same);
    nlohmann::json ignoring = byte_level_json(sequence(llama3, false), true);
    ignoring["model"]["ignore_merges"] = true;
    add("llama 3, whole words", ignoring, Gaps::blank, same);
    for (const bool regex : {false, true}) {
      for (const bool trim : {false, true}) {
        const std::string name = fmt::format("spaced, regex {}, trimmed {}", regex, trim);
        const Gaps gaps = trim ? Gaps::any : Gaps::none;
        add(name, byte_level_json(byte_level_step(regex, true), trim, true), gaps, with_spaces_before);
        made.back().spaced = true;
        add(name + ", roberta", roberta_json(regex, trim), gaps, with_spaces_before);
        made.back().spaced = true;
      }
    }
    add("fallback", fallback_json(), Gaps::none, with_spaces_behind);
    add("unigram", unigram_bytes_json("never"), Gaps::none, without_marks);
    add("unigram, marked first", unigram_bytes_json("first"), Gaps::none, without_first_space);
    add("unigram, marked always", unigram_bytes_json("always"), Gaps::none, without_first_space);
    return made;
  }();
  return kinds;
}

const std::vector<Kind>& real_kinds() {
  static const std::vector<Kind> kinds = [] {
    const auto file = [](const std::filesystem::path& folder) {
      return std::make_shared<Tokenizer>(Tokenizer::from_file(folder / "tokenizer.json"));
    };
    const auto gguf = format::GgufFile::open(smollm2_file());
    return std::vector<Kind>{
        {"minilm", file(minilm_folder()), Gaps::unwritten, nullptr},
        {"e5", file(e5_folder()), Gaps::unwritten, nullptr},
        {"smollm2", std::make_shared<Tokenizer>(gguf_tokenizer(gguf.metadata())), Gaps::unwritten, same}};
  }();
  return kinds;
}

std::vector<int64_t> ids_of(const Encoding& encoding) {
  std::vector<int64_t> ids;
  for (const Token& token : encoding.tokens) ids.push_back(token.id);
  return ids;
}

void check_gap(const Kind& kind, std::string_view gap) {
  if (kind.gaps == Gaps::any) return;
  for (size_t at = 0; at < gap.size();) {
    RC_ASSERT(kind.gaps != Gaps::none);
    const base::CodePoint here = base::decode_utf8(gap.substr(at));
    if (!is_white_space(here.value)) {
      RC_ASSERT(kind.gaps == Gaps::unwritten);
      const bool is_mark = combining_class_of(here.value) != 0;
      RC_ASSERT(is_mark || kind.tokenizer->encode(gap.substr(at, here.length), false).tokens.empty());
    }
    at += here.length;
  }
}

void check_spans(const Kind& kind, const Encoding& encoding, std::string_view text) {
  const std::vector<bool> begins = boundaries(text);
  size_t last_begin = 0, last_end = 0;
  for (const Token& token : encoding.tokens) {
    RC_ASSERT(token.id >= 0);
    RC_ASSERT(static_cast<size_t>(token.id) < kind.tokenizer->vocab_size());
    RC_ASSERT(kind.tokenizer->piece_of(token.id) == token.piece);
    RC_ASSERT(!base::first_invalid_utf8(token.text).has_value());
    if (token.special) continue;
    RC_ASSERT(token.begin <= token.end);
    RC_ASSERT(token.end <= text.size());
    RC_ASSERT(begins[token.begin]);
    RC_ASSERT(begins[token.end]);
    if (kind.spaced && token.begin == token.end) continue;
    RC_ASSERT(token.begin >= last_begin);
    RC_ASSERT(token.end >= last_end);
    if (token.begin > last_end) check_gap(kind, text.substr(last_end, token.begin - last_end));
    // Two tokens share bytes where one character became several pieces, or what is unknown became its bytes.
    if (token.begin < last_end && kind.kept) {
      const auto next = std::find(begins.begin() + static_cast<ptrdiff_t>(token.begin) + 1, begins.end(), true);
      const bool one_character = next - begins.begin() == static_cast<ptrdiff_t>(last_end);
      RC_ASSERT(one_character || (token.begin == last_begin && token.end == last_end));
    }
    if (token.begin < last_end && !kind.spaced) RC_ASSERT(token.continues_word);
    last_begin = token.begin;
    last_end = token.end;
  }
  check_gap(kind, text.substr(last_end));
}

// What holds for every tokenizer and every text.
void check_common(const Kind& kind, const std::string& text) {
  const Tokenizer& tokenizer = *kind.tokenizer;
  const Encoding encoding = tokenizer.encode(text);
  // As in the library, a byte that has no piece takes no room in its word, which moves what is behind it.
  if (encoding.left_out == 0) check_spans(kind, encoding, text);
  const std::vector<int64_t> ids = ids_of(encoding);
  RC_ASSERT(tokenizer.encode_ids(text) == ids);
  for (const bool skip_special : {false, true}) {
    DecodeStream stream = tokenizer.decode_stream(skip_special);
    std::string streamed;
    for (const int64_t id : ids) {
      const std::string part = stream.add(id);
      RC_ASSERT(!base::first_invalid_utf8(part));
      streamed += part;
    }
    streamed += stream.finish();
    RC_ASSERT(streamed == tokenizer.decode(ids, skip_special));
  }
}

TEST(Law, SpansTileTheTextAndStreamsDecodeAsAllAtOnce) {
  for (const auto* kinds : {&lossless_kinds(), &real_kinds()}) {
    for (const Kind& kind : *kinds) {
      EXPECT_TRUE(rc::check(kind.name, [&] { check_common(kind, any_text()); }));
    }
  }
}

TEST(Law, WhatIsCutIsPutTogetherAgain) {
  for (const Kind& kind : lossless_kinds()) {
    EXPECT_TRUE(rc::check(kind.name, [&] {
      const std::string text = any_text();
      const Encoding encoding = kind.tokenizer->encode(text, false);
      if (text.find("<unk>") == std::string::npos) RC_ASSERT(encoding.unknown_count == 0u);
      RC_ASSERT(encoding.left_out == 0u);
      RC_ASSERT(kind.tokenizer->decode(ids_of(encoding), false) == kind.kept(base::valid_utf8(text)));
    }));
  }
}

// Its file has no pieces for some control characters, which are counted.
TEST(Law, Smollm2LosesNothingButBytesThatItCounts) {
  const Tokenizer& tokenizer = *real_kinds()[2].tokenizer;
  EXPECT_TRUE(rc::check([&] {
    const std::string text = base::valid_utf8(any_text());
    const Encoding encoding = tokenizer.encode(text, false);
    std::string expected = text;
    std::erase_if(expected, [&](char c) { return tokenizer.encode(std::string_view(&c, 1), false).tokens.empty(); });
    RC_ASSERT(encoding.left_out == text.size() - expected.size());
    RC_ASSERT(tokenizer.decode(ids_of(encoding), false) == expected);
  }));
}

// What its normalizer takes away stays away: cut once more, the text gives the same tokens.
TEST(Law, WhatMinilmPutTogetherIsCutAlike) {
  const Tokenizer& tokenizer = *real_kinds()[0].tokenizer;
  EXPECT_TRUE(rc::check([&] {
    const std::vector<int64_t> ids = tokenizer.encode_ids(any_text(), false);
    RC_ASSERT(tokenizer.encode_ids(tokenizer.decode(ids, false), false) == ids);
  }));
}

// Words that its normalizer leaves alone, with one space between.
TEST(Law, E5KeepsWordsOfManyScripts) {
  const Tokenizer& tokenizer = *real_kinds()[1].tokenizer;
  const std::vector<std::string> words = {"the",
                                          "Cat",
                                          "caf\u00e9",
                                          "\u4f60\u597d",
                                          "\ud55c\uad6d",
                                          "3.14",
                                          "...!",
                                          "\u043c\u0438\u0440",
                                          "\u0645\u0631\u062d\u0628\u0627",
                                          "\U0001f600"};
  EXPECT_TRUE(rc::check([&] {
    std::string text;
    for (const std::string& word : *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(words))) {
      text += (text.empty() ? "" : " ") + word;
    }
    const Encoding encoding = tokenizer.encode(text, false);
    RC_ASSERT(encoding.unknown_count == 0u);
    RC_ASSERT(tokenizer.decode(ids_of(encoding), true) == text);
  }));
}

}  // namespace
}  // namespace clearhead::text::tests
