// SPDX-License-Identifier: Apache-2.0
// What a tokenizer.json may be refused for, one test a reason.
#include "clearhead/text/tokenizer_json.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/support/error_text.h"
#include "tests/text/small_tokenizer.h"

namespace clearhead::text::tests {
namespace {

using nlohmann::json;

std::string refusal_of_text(const std::string& text) {
  return clearhead::tests::error_text([&] { Tokenizer::from_json(text, "tokenizer.json"); });
}

// What is said of the small tokenizer after `change`.
std::string refusal(const std::function<void(json&)>& change) {
  json made = small_json();
  change(made);
  return refusal_of_text(made.dump());
}

TEST(TokenizerJson, NoJson) {
  EXPECT_NE(refusal_of_text("").find("[tokenizer.json] expected a tokenizer as JSON; found "), std::string::npos);
  EXPECT_NE(refusal_of_text("{\"model\": ").find("expected a tokenizer as JSON"), std::string::npos);
  EXPECT_NE(refusal_of_text("{\"version\": \"\xff\"}").find("expected a tokenizer as JSON"), std::string::npos);
  EXPECT_NE(refusal_of_text(std::string(100000, '[')).find("expected a tokenizer as JSON"), std::string::npos);
  EXPECT_EQ(refusal_of_text("[]"), "[tokenizer.json] expected an object; found a list");
}

TEST(TokenizerJson, TopLevel) {
  EXPECT_EQ(refusal([](json& j) { j["version"] = "2.0"; }),
            "[tokenizer.json version] expected one of 1.0; found \"2.0\"");
  EXPECT_EQ(refusal([](json& j) { j["mood"] = 1; }),
            "[tokenizer.json] expected only fields that are known here; found \"mood\"");
  EXPECT_EQ(refusal([](json& j) { j.erase("model"); }), "[tokenizer.json] expected a field \"model\"; found none");
  EXPECT_EQ(refusal_of_text(R"({"version": "1.0", "version": "1.0"})"),
            "[tokenizer.json] expected each field once; found \"version\" twice");
  EXPECT_EQ(refusal([](json& j) {
              for (int i = 0; i < 100; ++i) j["field" + std::to_string(i)] = i;
            }),
            "[tokenizer.json] expected at most 64 fields; found more");
}

TEST(TokenizerJson, UnknownComponentsByName) {
  for (const char* component : {"normalizer", "pre_tokenizer", "model", "post_processor", "decoder"}) {
    const std::string said = refusal([&](json& j) { j[component]["type"] = "Foo"; });
    EXPECT_EQ(said.find("[tokenizer.json " + std::string(component) + "] expected one of "), 0u) << said;
    EXPECT_TRUE(said.ends_with("; found \"Foo\"")) << said;
  }
}

TEST(TokenizerJson, UnknownFieldsByName) {
  for (const char* component : {"normalizer", "pre_tokenizer", "model", "post_processor", "decoder"}) {
    EXPECT_EQ(
        refusal([&](json& j) { j[component]["mood"] = true; }),
        "[tokenizer.json " + std::string(component) + "] expected only fields that are known here; found \"mood\"");
  }
  EXPECT_EQ(refusal([](json& j) { j["added_tokens"][1]["mood"] = true; }),
            "[tokenizer.json added_tokens[1]] expected only fields that are known here; found \"mood\"");
}

TEST(TokenizerJson, TypesOfFields) {
  EXPECT_EQ(refusal([](json& j) { j["normalizer"]["lowercase"] = 1; }),
            "[tokenizer.json normalizer lowercase] expected true or false; found 1");
  EXPECT_EQ(refusal([](json& j) { j["normalizer"].erase("lowercase"); }),
            "[tokenizer.json normalizer] expected a field \"lowercase\"; found none");
  EXPECT_EQ(refusal([](json& j) { j["normalizer"]["strip_accents"] = "yes"; }),
            "[tokenizer.json normalizer strip_accents] expected true or false; found \"yes\"");
  EXPECT_EQ(refusal([](json& j) { j["decoder"]["prefix"] = json::object(); }),
            "[tokenizer.json decoder prefix] expected a text; found an object");
  EXPECT_EQ(refusal([](json& j) { j["model"]["max_input_chars_per_word"] = -1; }),
            "[tokenizer.json model max_input_chars_per_word] expected an integer that is not negative; found -1");
  EXPECT_EQ(refusal([](json& j) { j["model"]["max_input_chars_per_word"] = 1.5; }),
            "[tokenizer.json model max_input_chars_per_word] expected an integer that is not negative; found 1.5");
  EXPECT_EQ(refusal([](json& j) { j["added_tokens"] = true; }),
            "[tokenizer.json added_tokens] expected a list; found true");
  EXPECT_EQ(refusal([](json& j) { j["normalizer"] = 5; }), "[tokenizer.json normalizer] expected an object; found 5");
}

TEST(TokenizerJson, Vocabulary) {
  EXPECT_EQ(refusal([](json& j) { j["model"]["vocab"]["new"] = 1048595; }),
            "[tokenizer.json model vocab] expected ids 0 to 1048594 for its 19 pieces; found id 1048595 for \"new\"");
  EXPECT_EQ(refusal([](json& j) { j["model"]["vocab"]["zoo"] = 9; }),
            "[tokenizer.json model vocab] expected each id once; found id 9 for \"the\" and \"zoo\"");
  EXPECT_EQ(refusal([](json& j) { j["model"]["vocab"]["new"] = "x"; }),
            "[tokenizer.json model vocab \"new\"] expected an integer that is not negative; found \"x\"");
  EXPECT_EQ(refusal([](json& j) { j["model"]["vocab"] = json::array(); }),
            "[tokenizer.json model vocab] expected an object; found a list");
  EXPECT_EQ(refusal([](json& j) { j["model"]["vocab"] = json::object(); }),
            "[tokenizer.json model] expected unk_token to be in the vocabulary; found \"[UNK]\"");
  EXPECT_EQ(refusal([](json& j) { j["model"]["vocab"][std::string(2000, 'x')] = 18; }).substr(0, 95),
            "[tokenizer.json model vocab] expected pieces of at most 1024 bytes; found one of 2000 bytes: \"x");
  std::string twice = small_json().dump();
  const std::string entry = "\"the\":9";
  twice.replace(twice.find(entry), entry.size(), "\"the\":9,\"the\":18");
  EXPECT_EQ(refusal_of_text(twice), "[tokenizer.json model vocab] expected each piece once; found \"the\" with id 18");
}

// As in the tokenizers library, which numbers added tokens on from the number of pieces: two tokens may have one id.
TEST(TokenizerJson, IdsMayBeLeftOut) {
  json file = small_json();
  file["model"]["vocab"].erase("play");  // 3
  file["model"]["vocab"]["last"] = 20;
  file["added_tokens"].push_back(added_token(3, "XX"));
  file["added_tokens"].push_back(added_token(22, "YY"));
  const Tokenizer tokenizer = from(file);
  EXPECT_EQ(tokenizer.vocab_size(), 21u);
  EXPECT_EQ(tokenizer.encode_ids("XX last YY", false), (std::vector<int64_t>{18, 20, 19}));
  EXPECT_EQ(tokenizer.decode(std::vector<int64_t>{3, 9, 20}, false), "the last");
  EXPECT_EQ(tokenizer.piece_of(3), "");
  EXPECT_EQ(tokenizer.warnings(),
            (std::vector<std::string>{"[tokenizer.json added_tokens] \"XX\" has id 3 in the file but gets 18",
                                      "[tokenizer.json added_tokens] \"YY\" has id 22 in the file but gets 19"}));
  json taken = small_json();
  taken["model"]["vocab"].erase("play");
  taken["added_tokens"].push_back(added_token(3, "XX"));
  const Tokenizer shared = from(taken);
  EXPECT_EQ(shared.encode_ids("XX I", false), (std::vector<int64_t>{17, 0}));
  EXPECT_EQ(shared.decode(std::vector<int64_t>{17}, false), "XX");
  EXPECT_EQ(shared.warnings(),
            (std::vector<std::string>{
                "[tokenizer.json added_tokens] \"XX\" has id 3 in the file but gets 17, as \"I\" has"}));
}

TEST(TokenizerJson, FilesOfEarlyVersionsDoNotNameTheModel) {
  EXPECT_EQ(refusal([](json& j) { j["model"].erase("type"); }), "no error");
  EXPECT_EQ(refusal([](json& j) {
              j["model"].erase("type");
              j["model"].erase("max_input_chars_per_word");
            }),
            "[tokenizer.json model] expected a field \"type\"; found none");
}

TEST(TokenizerJson, AddedTokens) {
  EXPECT_EQ(refusal([](json& j) { j["added_tokens"].push_back(added_token(5, "[CLS]")); }),
            "[tokenizer.json added_tokens] expected each token once; found \"[CLS]\" twice");
  EXPECT_EQ(refusal([](json& j) { j["added_tokens"].push_back(added_token(2, "new")); }),
            "[tokenizer.json added_tokens] expected each id once; found 2 twice");
  EXPECT_EQ(refusal([](json& j) { j["added_tokens"].push_back(added_token(18, "")); }),
            "[tokenizer.json added_tokens[2]] expected content; found an empty text");
  EXPECT_EQ(refusal([](json& j) { j["added_tokens"][0]["id"] = uint64_t{1} << 40; }),
            "[tokenizer.json added_tokens[0]] expected an id below 4294967295; found 1099511627776");
  EXPECT_EQ(
      refusal([](json& j) { j["added_tokens"].push_back(added_token(18, std::string(1025, 'x'))); }).substr(0, 96),
      "[tokenizer.json added_tokens[2]] expected content of at most 1024 bytes; found 1025 bytes: \"xxxx");
  EXPECT_EQ(refusal([](json& j) {
              for (int i = 0; i < 15000; ++i) j["added_tokens"].push_back(added_token(18 + i, std::to_string(i)));
            }),
            "[tokenizer.json added_tokens] expected at most 15000 tokens; found more");
}

TEST(TokenizerJson, AddedTokensThatGrowTooLongWhenNormalized) {
  std::string content;
  for (int i = 0; i < 300; ++i) content += "\ud55c";
  EXPECT_EQ(refusal([&](json& j) {
              j["added_tokens"].push_back(added_token(18, content));
              j["added_tokens"][2]["normalized"] = true;
            }).substr(0, 81),
            "[tokenizer.json added_tokens] expected at most 1024 bytes when normalized; found ");
}

TEST(TokenizerJson, Template) {
  const auto single = [](const std::function<void(json&)>& change) {
    return refusal([&](json& j) { change(j["post_processor"]["single"]); });
  };
  EXPECT_EQ(single([](json& j) { j.erase(1); }),
            "[tokenizer.json post_processor single] expected the sequence A once; found 0 times");
  EXPECT_EQ(single([](json& j) { j.push_back(j[1]); }),
            "[tokenizer.json post_processor single] expected the sequence A once; found 2 times");
  EXPECT_EQ(single([](json& j) { j[1]["Sequence"]["id"] = "B"; }),
            "[tokenizer.json post_processor single id] expected one of A; found \"B\"");
  EXPECT_EQ(single([](json& j) { j[0]["SpecialToken"]["id"] = "[X]"; }),
            "[tokenizer.json post_processor special_tokens] expected a field \"[X]\"; found none");
  EXPECT_EQ(single([](json& j) { j[0] = json::object(); }),
            "[tokenizer.json post_processor single] expected a field \"SpecialToken\"; found none");
  EXPECT_EQ(single([](json& j) { j[0]["SpecialToken"]["type_id"] = uint64_t{1} << 33; }),
            "[tokenizer.json post_processor single] expected a type_id below 4294967296; found 8589934592");
  EXPECT_EQ(single([](json& j) {
              for (int i = 0; i < 64; ++i) j.push_back(j[0]);
            }),
            "[tokenizer.json post_processor single] expected at most 64 items; found more");
}

TEST(TokenizerJson, SpecialTokensOfATemplate) {
  const auto cls = [](const std::function<void(json&)>& change) {
    return refusal([&](json& j) { change(j["post_processor"]["special_tokens"]["[CLS]"]); });
  };
  const std::string where = "[tokenizer.json post_processor special_tokens \"[CLS]\"";
  EXPECT_EQ(cls([](json& j) { j["ids"][0] = 18; }), where + " ids] expected an id below the vocabulary's 18; found 18");
  EXPECT_EQ(cls([](json& j) { j["ids"][0] = "x"; }),
            where + " ids] expected an id below the vocabulary's 18; found \"x\"");
  EXPECT_EQ(cls([](json& j) { j["tokens"].push_back("x"); }),
            where + "] expected as many ids as tokens; found 1 and 2");
  EXPECT_EQ(cls([](json& j) { j["tokens"][0] = 1; }), where + " tokens] expected texts; found 1");
  json other = small_json();
  other["post_processor"]["special_tokens"]["[CLS]"]["ids"][0] = 3;
  const std::vector<std::string> warnings = {
      "[tokenizer.json post_processor special_tokens \"[CLS]\" ids] \"[CLS]\" stands for id 3, which is \"play\""};
  EXPECT_EQ(from(other).warnings(), warnings);
}

TEST(TokenizerJson, BertProcessing) {
  const auto bert = [](json cls) {
    return refusal([&](json& j) {
      j["post_processor"] = {{"type", "BertProcessing"}, {"sep", {"[SEP]", 2}}, {"cls", std::move(cls)}};
    });
  };
  EXPECT_EQ(bert({"[CLS]", 1}), "no error");
  EXPECT_EQ(bert({"[CLS]", 18}),
            "[tokenizer.json post_processor cls] expected an id below the vocabulary's 18; found 18");
  EXPECT_EQ(bert({"[CLS]"}), "[tokenizer.json post_processor cls] expected a list of a text and an id; found a list");
  EXPECT_EQ(bert({1, "[CLS]"}),
            "[tokenizer.json post_processor cls] expected a list of a text and an id; found a list");
}

TEST(TokenizerJson, TruncationAndPaddingAreRead) {
  json made = small_json();
  made["truncation"] = {{"direction", "Right"}, {"max_length", 128}, {"strategy", "LongestFirst"}, {"stride", 0}};
  made["padding"] = {{"strategy", {{"Fixed", 64}}},
                     {"direction", "Right"},
                     {"pad_to_multiple_of", 8},
                     {"pad_id", 0},
                     {"pad_type_id", 0},
                     {"pad_token", "[PAD]"}};
  EXPECT_EQ(from(made).file_truncation(), 128u);
  EXPECT_EQ(from(made).file_padding(), 64u);
  EXPECT_EQ(from(small_json()).file_truncation(), std::nullopt);
  json batch = made;
  batch["padding"]["strategy"] = "BatchLongest";
  EXPECT_EQ(from(batch).file_padding(), 0u);
  EXPECT_EQ(refusal([&](json& j) {
              j = made;
              j["truncation"]["strategy"] = "Foo";
            }),
            "[tokenizer.json truncation strategy] expected one of LongestFirst, OnlyFirst, OnlySecond; found \"Foo\"");
  EXPECT_EQ(refusal([&](json& j) {
              j = made;
              j["padding"]["strategy"] = {{"Foo", 1}};
            }),
            "[tokenizer.json padding strategy] expected a field \"Fixed\"; found none");
  EXPECT_EQ(refusal([&](json& j) {
              j = made;
              j["padding"]["direction"] = "Up";
            }),
            "[tokenizer.json padding direction] expected one of Left, Right; found \"Up\"");
}

}  // namespace
}  // namespace clearhead::text::tests
