// SPDX-License-Identifier: Apache-2.0
// Any bytes as a text, with a small tokenizer of which the first byte chooses the kind (BERT with its flags, other
// components, or one that can write every text): ids and offsets stay in range and rise, the words that people read are
// valid UTF-8, the ids are those of encode_ids, and bytes come back as they were.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/base/utf8.h"
#include "clearhead/text/toy_tokenizer.h"
#include "fuzz/tokenizer_laws.h"
#include "tests/text/law_tokenizers.h"

namespace {

using clearhead::text::Tokenizer;

std::string json_of(unsigned kind) {
  const auto flag = [kind](int bit) { return std::string((kind >> bit & 1) != 0 ? "true" : "false"); };
  return R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[
{"id":0,"content":"[UNK]","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},
{"id":1,"content":"[CLS]","single_word":)" +
         flag(0) + R"(,"lstrip":)" + flag(1) + R"(,"rstrip":)" + flag(2) + R"(,"normalized":false,"special":true},
{"id":10,"content":"Caf\u00e9","single_word":)" +
         flag(2) + R"(,"lstrip":)" + flag(0) + R"(,"rstrip":)" + flag(1) + R"(,"normalized":true,"special":false}],
"normalizer":{"type":"BertNormalizer","clean_text":)" +
         flag(3) + R"(,"handle_chinese_chars":)" + flag(4) + R"(,"strip_accents":)" + flag(5) + R"(,"lowercase":)" +
         flag(6) + R"(},"pre_tokenizer":{"type":"BertPreTokenizer"},
"post_processor":{"type":"BertProcessing","sep":["[SEP]",2],"cls":["[CLS]",1]},
"decoder":{"type":"WordPiece","prefix":"##","cleanup":true},
"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":9,
"vocab":{"[UNK]":0,"[CLS]":1,"[SEP]":2,"a":3,"##a":4,"b":5,"##\u0301":6,"\u4f60":7,"!":8,"##\u1161":9}}})";
}

// The other normalizers and pre-tokenizers, before words of which each character is a piece or bytes.
std::string json_of(std::string_view normalizer, std::string_view pre_tokenizer) {
  return R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":{"type":"Sequence",
"normalizers":[)" +
         std::string(normalizer) + R"(]},"pre_tokenizer":)" + std::string(pre_tokenizer) +
         R"(,"post_processor":null,"decoder":{"type":"CTC","pad_token":"a","word_delimiter_token":"b","cleanup":true},
"model":{"type":"BPE","dropout":null,"unk_token":"?","continuing_subword_prefix":"","end_of_word_suffix":"","fuse_unk":true,
"byte_fallback":true,"vocab":{"?":0,"a":1,"b":2,"ab":3,"<0xC3>":4,"<0xA9>":5,"y":6},"merges":["a b"]}})";
}

const std::vector<Tokenizer>& tokenizers() {
  static const std::vector<Tokenizer> made = [] {
    std::vector<Tokenizer> all;
    for (unsigned kind = 0; kind < 128; ++kind) all.push_back(Tokenizer::from_json(json_of(kind), "fuzz"));
    // The map has one string, U+0001, which becomes "yz".
    for (const std::string_view normalizer :
         {R"({"type":"Precompiled","precompiled_charsmap":"DAAAAAAAAAABDQAAAAAAgHl6AA=="})",
          R"({"type":"Precompiled","precompiled_charsmap":"DAAAAAAAAAABDQAAAAAAgHl6AA=="},{"type":"NFKC"})",
          R"({"type":"ByteLevel"})", ""}) {
      for (
          const std::string_view pre_tokenizer :
          {R"({"type":"Whitespace"})", R"({"type":"UnicodeScripts"})", R"({"type":"FixedLength","length":3})",
           R"({"type":"Split","pattern":{"Regex":"(?i:'s)|\\b[\\p{Lu}]*[\\p{Ll}\\p{M}]+|\\s+$"},"behavior":"Isolated","invert":false})"}) {
        all.push_back(Tokenizer::from_json(json_of(normalizer, pre_tokenizer), "fuzz"));
      }
    }
    return all;
  }();
  return made;
}

// Byte-level pairs, which lose nothing.
const std::vector<Tokenizer>& byte_level() {
  static const std::vector<Tokenizer> made = [] {
    using namespace clearhead::text::tests;
    std::vector<Tokenizer> all;
    const nlohmann::json digits = {{"type", "Digits"}, {"individual_digits", true}};
    for (const bool trim : {false, true}) {
      for (const bool regex : {false, true}) {
        nlohmann::json json = byte_level_json(byte_level_step(regex), trim);
        all.push_back(from(json));
        json["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {digits, byte_level_step(regex)}}};
        all.push_back(from(json));
      }
    }
    return all;
  }();
  return made;
}

// The same with a space in front, which takes the room of the character behind it.
const std::vector<Tokenizer>& spaced() {
  static const std::vector<Tokenizer> made = [] {
    using namespace clearhead::text::tests;
    std::vector<Tokenizer> all;
    for (const bool trim : {false, true}) {
      for (const bool regex : {false, true}) {
        for (const bool strips : {false, true}) {
          for (nlohmann::json json :
               {byte_level_json(byte_level_step(regex, true), trim, true), roberta_json(regex, trim)}) {
            for (const char* side : {"lstrip", "rstrip"}) json["added_tokens"][0][side] = strips;
            all.push_back(from(json));
          }
        }
      }
    }
    return all;
  }();
  return made;
}

// Pieces over the mark of a space, with bytes for what has none.
const std::vector<Tokenizer>& marked() {
  static const std::vector<Tokenizer> made = [] {
    using namespace clearhead::text::tests;
    std::vector<Tokenizer> all;
    all.push_back(from(fallback_json()));
    for (const char* scheme : {"always", "first", "never"}) all.push_back(from(unigram_bytes_json(scheme)));
    return all;
  }();
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace clearhead::fuzz;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  size_t kind = data[0] % (tokenizers().size() + byte_level().size() + marked().size() + spaced().size());
  if (kind < tokenizers().size()) {
    check_text(tokenizers()[kind], text, true);
  } else if ((kind -= tokenizers().size()) < byte_level().size()) {
    expect(check_text(byte_level()[kind], text, true) == clearhead::base::valid_utf8(text));
  } else if ((kind -= byte_level().size()) < marked().size()) {
    check_text(marked()[kind], text, true);
  } else {
    check_text(spaced()[kind - marked().size()], text, false);
  }
  check_tokens(clearhead::text::toy_encode(text), text, true);
  return 0;
}
