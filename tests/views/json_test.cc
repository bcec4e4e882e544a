// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/json.h"

#include <gtest/gtest.h>
#include <stdio.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "clearhead/views/json_writer.h"
#include "tests/views/traces.h"

namespace clearhead::views {
namespace {

using nlohmann::json;

// Faults that validate_schema.py finds, or "" if there are none.
std::string schema_faults(const std::string& schema, const std::string& document) {
  const tests::TemporaryFolder folder;
  tests::write_bytes(folder / "document.json", document);
  const std::string command =
      std::string(CLEARHEAD_VALIDATE) + schema + ".schema.json " + (folder / "document.json").string() + " 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return "cannot run " + command;
  std::string output;
  for (int c = ::fgetc(pipe); c != EOF; c = ::fgetc(pipe)) output += static_cast<char>(c);
  const int status = ::pclose(pipe);
  return status == 0 ? output : output + "\nfailed: " + command;
}

TEST(JsonWriter, WritesValuesAndCommas) {
  JsonWriter writer;
  writer.begin_object().member("a", 1).key("b").begin_list().value("x").value(true).null().end_list();
  writer.key("c").begin_object().end_object().member("d", std::optional<double>()).end_object();
  EXPECT_EQ(std::move(writer).take(), R"({"a":1,"b":["x",true,null],"c":{},"d":null})");
}

TEST(JsonWriter, EscapesWhatJsonForbids) {
  JsonWriter writer;
  writer.value(std::string_view("\"\\\n\r\t\x01\x7f\0</script>\xe4\xb9\xa6\xff", 21));
  const std::string text = std::move(writer).take();
  EXPECT_EQ(text, "\"\\\"\\\\\\n\\r\\t\\u0001\\u007f\\u0000</script>\u4e66\uFFFD\"");
  EXPECT_EQ(json::parse(text).get<std::string>(), std::string("\"\\\n\r\t\x01\x7f\0</script>\u4e66\uFFFD", 23));
}

TEST(JsonWriter, FloatsReadBackAsTheSameFloat) {
  for (uint32_t bits = 1; bits < 0x7F800000; bits += 40009 * 7) {
    const auto number = std::bit_cast<float>(bits);
    JsonWriter writer;
    writer.value(number);
    const std::string text = std::move(writer).take();
    EXPECT_EQ(json::parse(text).get<float>(), number) << text;
    EXPECT_LE(text.size(), 17U);
  }
  JsonWriter writer;
  writer.begin_list().value(0.1F).value(-0.0F).value(1.0F).value(1e-40F).value(0.1).end_list();
  EXPECT_EQ(std::move(writer).take(), "[0.1,-0,1,1e-40,0.1]");
}

TEST(JsonWriter, WhatIsNoNumberIsNull) {
  JsonWriter writer;
  writer.begin_list().value(std::numeric_limits<float>::infinity()).value(std::nan("")).value(-HUGE_VAL).end_list();
  EXPECT_EQ(std::move(writer).take(), "[null,null,null]");
}

TEST(Json, TokenizeIsToTheLetter) {
  auto tokens = tests::tokens_of({"[CLS]", "caf\u00e9"});
  EXPECT_EQ(tokenize_json("minilm", "caf\u00e9", tokens),
            "{\"model\":\"minilm\",\"text\":\"caf\u00e9\",\"tokens\":["
            "{\"text\":\"[CLS]\",\"id\":0,\"offsets\":[0,0],\"special\":true},"
            "{\"text\":\"caf\u00e9\",\"id\":1,\"offsets\":[0,5],\"special\":false}]}");
  EXPECT_EQ(schema_faults("tokenize", tokenize_json("minilm", "caf\u00e9", tokens)), "");
}

TEST(Json, OneHeadHasEveryWeight) {
  auto trace = tests::cat_trace();
  tensor::Tensor reference(tensor::Shape{1, 12, 8}), sum(tensor::Shape{1, 12, 8});
  for (size_t i = 0; i < 96; ++i) {
    reference.as<float>()[i] = 3;
    sum.as<float>()[i] = i == 11 * 8 + 7 ? 0.0F : 2.0F;
  }
  trace.add(capture::Stage::row_reference, 5, std::move(reference));
  trace.add(capture::Stage::row_sum, 5, std::move(sum));
  const std::string text = attend_head_json(trace, 5, 11, {});
  EXPECT_EQ(schema_faults("attend_head", text), "");
  const json document = json::parse(text);
  EXPECT_EQ(document["layer"], 5);
  EXPECT_EQ(document["head"], 11);
  const auto weights = head_weights(trace, 5, 11);
  for (size_t query = 0; query < 8; ++query)
    for (size_t key = 0; key < 8; ++key)
      EXPECT_EQ(document["weights"][query][key].get<float>(), row_of(*weights, query)[key]);
  EXPECT_EQ(document["row_reference"].size(), 8U);
  EXPECT_FLOAT_EQ(document["lse"][0].get<float>(), 4 * std::log(2.0F));
  EXPECT_TRUE(document["lse"][7].is_null());  // a row that may see nothing
}

TEST(Json, WordsAndHiddenTokensLeaveAConsistentDocument) {
  auto trace = tests::cat_trace();
  MapOptions options;
  options.hide_special = true;
  const json document = json::parse(attend_head_json(trace, 0, 0, options));
  EXPECT_EQ(document["tokens"].size(), 6U);
  EXPECT_EQ(document["weights"].size(), 6U);
  EXPECT_EQ(document["weights"][0].size(), 6U);
  EXPECT_TRUE(document["row_sum"].is_null());
  options.words = true;
  EXPECT_EQ(schema_faults("attend_head", attend_head_json(trace, 0, 0, options)), "");
}

TEST(Json, AllHeadsInTheOrderOfTelling) {
  const auto trace = tests::cat_trace();
  const std::string text = attend_json(trace, in_order_of_telling(summarize_heads(trace)), {});
  EXPECT_EQ(schema_faults("attend", text), "");
  const json document = json::parse(text);
  EXPECT_EQ(document["num_layers"], 6);
  EXPECT_EQ(document["num_heads"], 12);
  ASSERT_EQ(document["heads"].size(), 72U);
  EXPECT_EQ(document["heads"][0]["layer"], 5);
  EXPECT_EQ(document["heads"][0]["head"], 11);
  EXPECT_EQ(document["heads"][0]["kind"], "content");
  EXPECT_EQ(document["heads"][0]["links"][0]["query"], 3);
  EXPECT_FALSE(document.contains("rows"));
  EXPECT_EQ(schema_faults("heads", attend_json(trace, summarize_heads(trace), {})), "");
}

TEST(Json, RowsOfOneToken) {
  const auto trace = tests::cat_trace();
  MapOptions options;
  options.from = 3;
  options.top = 2;
  const std::string text = attend_json(trace, in_order_of_telling(summarize_heads(trace)), options);
  EXPECT_EQ(schema_faults("attend", text), "");
  const json row = json::parse(text)["rows"][0];
  EXPECT_EQ(row["query"], 3);
  ASSERT_EQ(row["keys"].size(), 2U);
  EXPECT_EQ(row["keys"][0]["key"], 2);
  options.hide_special = true;
  const json hidden = json::parse(attend_json(trace, summarize_heads(trace), options));
  for (const json& shown : hidden["rows"])
    for (const json& key : shown["keys"]) EXPECT_TRUE(key["key"] != 0 && key["key"] != 7);
}

TEST(Json, WhatHasNoMeaningIsNull) {
  const auto trace = tests::trace_of({"a"}, {{std::numeric_limits<float>::quiet_NaN()}});
  const std::string text = attend_json(trace, summarize_heads(trace), {});
  EXPECT_EQ(schema_faults("attend", text), "");
  EXPECT_TRUE(json::parse(text)["heads"][0]["previous"].is_null());
  EXPECT_EQ(json::parse(attend_head_json(trace, 0, 0, {}))["weights"], json::parse("[[null]]"));
}

TEST(Json, TheValidatorIsReallyAsked) {
  EXPECT_NE(schema_faults("tokenize", R"({"model": "m", "text": "t"})").find("'tokens' is missing"), std::string::npos);
}

}  // namespace
}  // namespace clearhead::views
