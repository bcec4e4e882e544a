// SPDX-License-Identifier: Apache-2.0
#include "clearhead/capture/trace.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <limits>

#include "clearhead/base/version.h"
#include "clearhead/format/safetensors.h"
#include "clearhead/tensor/compare.h"
#include "tests/capture/small_trace.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace clearhead::capture {
namespace {

using tests::counting;
using tests::error_text;
using tests::small_info;
using tests::small_trace;
using tests::TemporaryFolder;

// Whether both say the same of themselves and hold the same bits.
bool same(const Trace& a, const Trace& b) {
  if (!(a.info() == b.info()) || a.bytes() != b.bytes()) return false;
  for (const StageInfo& row : stages()) {
    for (size_t layer = 0; layer < a.info().num_layers; ++layer) {
      if (a.has(row.stage, layer) != b.has(row.stage, layer)) return false;
      if (!a.has(row.stage, layer)) continue;
      if (!tensor::same_bits(a.tensor(row.stage, layer), b.tensor(row.stage, layer))) return false;
    }
  }
  return true;
}

TEST(Trace, NamesAreThoseOfTheFile) {
  EXPECT_EQ(Trace::tensor_name(Stage::embedding, 0), "embedding");
  EXPECT_EQ(Trace::tensor_name(Stage::token_embedding, 5), "token_embedding");
  EXPECT_EQ(Trace::tensor_name(Stage::weights, 3), "layers.3.weights");
  EXPECT_EQ(Trace::tensor_name(Stage::logits, 0), "logits");
}

TEST(Trace, StagesOutsideTheLayersHaveNoLayer) {
  const Trace trace = small_trace();
  EXPECT_TRUE(trace.has(Stage::embedding, 2));
  EXPECT_EQ(trace.tensor(Stage::logits, 1).bytes().data(), trace.tensor(Stage::logits).bytes().data());
  EXPECT_FALSE(trace.has(Stage::weights, 0));
}

TEST(Trace, AMissingStageIsNamed) {
  EXPECT_EQ(error_text([] { small_trace().tensor(Stage::weights, 1); }),
            "[trace] expected layers.1.weights to be recorded; found a trace without it; name the stage weights when "
            "recording");
}

TEST(Trace, TakesFloatsOnly) {
  EXPECT_EQ(error_text([] { small_trace().add(Stage::query, 2, tensor::Tensor(tensor::DType::bf16, {1})); }),
            "[trace] expected F32 for layers.2.query; found BF16");
}

TEST(Trace, ANewOneHasThisVersionAndAsManyKvHeadsAsHeads) {
  TraceInfo info;
  info.num_heads = 4;
  const Trace trace(info);
  EXPECT_EQ(trace.info().version, base::kVersion);
  EXPECT_EQ(trace.info().num_kv_heads, 4u);
}

TEST(Trace, AFileHoldsEverything) {
  TemporaryFolder folder;
  const Trace trace = small_trace();
  trace.write(folder / "trace.safetensors");
  EXPECT_TRUE(same(Trace::read(folder / "trace.safetensors"), trace));
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(Trace, AFileThatCannotBeWrittenIsNamed) {
  const std::string complaint = error_text([] { small_trace().write("/no-such-folder/trace.safetensors"); });
  EXPECT_TRUE(complaint.starts_with("[\"/no-such-folder/trace.safetensors\"] expected ")) << complaint;
}

// Any text that is valid UTF-8, odd characters included.
rc::Gen<std::string> any_text() {
  return rc::gen::map(
      rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
          "a", "\"", "\\", std::string(1, '\0'), "\n", "\u00e9", "\u4e66", "\U0001f600", "</s>", "\x7f")),
      [](const std::vector<std::string>& parts) {
        std::string text;
        for (const std::string& part : parts) text += part;
        return text;
      });
}

rc::Gen<TraceToken> any_token(size_t text_bytes) {
  return rc::gen::exec([text_bytes] {
    TraceToken token;
    token.text = *any_text();
    token.piece = *any_text();
    token.id = *rc::gen::arbitrary<int64_t>();
    token.type_id = *rc::gen::arbitrary<int64_t>();
    token.begin = *rc::gen::inRange<size_t>(0, text_bytes + 1);
    token.end = *rc::gen::inRange<size_t>(token.begin, text_bytes + 1);
    token.special = *rc::gen::arbitrary<bool>();
    token.continues_word = *rc::gen::arbitrary<bool>();
    return token;
  });
}

std::vector<size_t> any_part_of(size_t count) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < count; ++i) {
    if (*rc::gen::arbitrary<bool>()) indices.push_back(i);
  }
  return indices;
}

TraceInfo any_info() {
  TraceInfo info;
  info.version = "v" + *any_text();
  info.model = *any_text();
  info.text = *any_text();
  const size_t seq = *rc::gen::inRange<size_t>(1, 4);
  for (size_t i = 0; i < seq; ++i) info.tokens.push_back(*any_token(info.text.size()));
  info.written = *rc::gen::inRange<size_t>(0, seq);
  if (*rc::gen::arbitrary<bool>()) info.declared_len = seq + *rc::gen::inRange<size_t>(0, 3);
  info.attention = "{}";
  info.num_layers = *rc::gen::inRange<size_t>(0, 12);
  info.num_kv_heads = *rc::gen::inRange<size_t>(1, 4);
  info.num_heads = info.num_kv_heads * *rc::gen::inRange<size_t>(1, 4);
  info.layers = any_part_of(info.num_layers);
  info.heads = any_part_of(info.num_heads);
  return info;
}

// A tensor of the stage with any bits at all: infinities, NaNs and subnormals are values too.
tensor::Tensor any_tensor(Stage stage, const TraceInfo& info) {
  const size_t seq = info.tokens.size();
  const std::map<std::string_view, size_t> sizes = {
      {"batch", 1},   {"seq", seq},    {"query", seq},   {"key", seq}, {"heads", info.heads.size()},
      {"d_model", 2}, {"head_dim", 3}, {"value_dim", 2}, {"d_ff", 3},  {"kv_heads", info.kv_heads().size()},
      {"vocab", 4}};
  std::vector<size_t> shape;
  for (std::string_view word : axes(stage)) shape.push_back(sizes.at(word));
  tensor::Tensor result{tensor::Shape(shape)};
  for (float& value : result.as<float>()) value = std::bit_cast<float>(*rc::gen::arbitrary<uint32_t>());
  return result;
}

TEST(Trace, AnyTraceIsReadBack) {
  TemporaryFolder folder;
  EXPECT_TRUE(rc::check("read(write(trace)) = trace", [&folder] {
    Trace trace(any_info());
    for (const StageInfo& row : stages()) {
      if (*rc::gen::inRange(0, 4) != 0) continue;
      if (row.place != Place::in_layer) trace.add(row.stage, 0, any_tensor(row.stage, trace.info()));
      if (row.place != Place::in_layer) continue;
      for (size_t layer : trace.info().layers) trace.add(row.stage, layer, any_tensor(row.stage, trace.info()));
    }
    trace.write(folder / "any.safetensors");
    RC_ASSERT(same(Trace::read(folder / "any.safetensors"), trace));
  }));
}

TEST(Trace, OneMadeByAnotherWriterIsRead) {
  const Trace trace = Trace::read(std::filesystem::path(CLEARHEAD_TEST_DATA) / "trace_from_python.safetensors");
  EXPECT_EQ(trace.info().text, "h\u00e9 you");
  ASSERT_EQ(trace.info().tokens.size(), 3u);
  EXPECT_EQ(trace.info().tokens[1], (TraceToken{"h\u00e9", "h\u00e9", 7, 0, 3, false, false}));
  EXPECT_EQ(trace.info().kv_heads(), (std::vector<size_t>{0, 1}));
  EXPECT_TRUE(tensor::same_bits(trace.tensor(Stage::embedding), counting({1, 3, 5})));
  EXPECT_TRUE(tensor::same_bits(trace.tensor(Stage::weights, 2), counting({1, 2, 3, 3})));
}

// What reading says of a small trace of which change has changed the metadata.
template <class Change>
std::string metadata_complaint(const Change& change) {
  TemporaryFolder folder;
  const auto path = folder / "t";
  small_trace().write(path);
  std::map<std::string, std::string> metadata = format::SafetensorsFile::open(path).metadata();
  change(metadata);
  const tensor::Tensor embedding = counting({1, 3, 5});
  format::write_safetensors(path, std::vector<format::NamedTensor>{{"embedding", embedding.view()}}, metadata);
  std::string text = error_text([&] { Trace::read(path); });
  if (const size_t at = text.find("] expected"); at != std::string::npos) text = text.substr(at + 2);
  return text;
}

std::string metadata_complaint(const std::string& key, const std::string& value) {
  return metadata_complaint([&](auto& metadata) { metadata[key] = value; });
}

TEST(TraceFile, EveryKeyOfTheMetadataIsNeeded) {
  EXPECT_EQ(metadata_complaint([](auto& metadata) { metadata["somebody.else"] = "may add a key"; }), "no error");
  for (const char* key : {"clearhead.version", "model", "text", "tokens", "attention", "num_layers", "num_heads",
                          "num_kv_heads", "layers", "heads"}) {
    EXPECT_EQ(metadata_complaint([&](auto& metadata) { ASSERT_EQ(metadata.erase(key), 1u) << key; }),
              std::string("expected a trace, with \"") + key +
                  "\" in its metadata; found no such key; was this file written by clearhead record?");
  }
}

TEST(TraceFile, NumbersAndListsAreChecked) {
  EXPECT_EQ(metadata_complaint("num_layers", "3x"),
            "expected a decimal number in the metadata's num_layers; found \"3x\"");
  EXPECT_EQ(metadata_complaint("num_heads", ""), "expected a decimal number in the metadata's num_heads; found \"\"");
  EXPECT_EQ(metadata_complaint("num_heads", "99999999999999999999"),
            "expected a decimal number in the metadata's num_heads; found \"99999999999999999999\"");
  EXPECT_EQ(metadata_complaint("num_heads", "0"), "expected num_kv_heads that divides num_heads; found 2 and 0");
  EXPECT_EQ(metadata_complaint("num_kv_heads", "0"), "expected num_kv_heads that divides num_heads; found 0 and 4");
  EXPECT_EQ(metadata_complaint("num_kv_heads", "3"), "expected num_kv_heads that divides num_heads; found 3 and 4");
  EXPECT_EQ(metadata_complaint("declared_len", "-1"),
            "expected a decimal number in the metadata's declared_len; found \"-1\"");
  EXPECT_EQ(metadata_complaint("declared_len", "1"), "expected a declared length of 3 tokens or more; found 1");
  EXPECT_EQ(metadata_complaint("written", "3"), "expected fewer than 3 written tokens; found 3");
  for (const char* list : {"", "3", "{}", "[", "[-1]", "[1.0]", "[\"1\"]", "[true]", "[18446744073709551616]"}) {
    EXPECT_TRUE(metadata_complaint("layers", list)
                    .starts_with("expected a JSON list of numbers in the metadata's layers; found \""))
        << list;
  }
  EXPECT_EQ(metadata_complaint("layers", "[0,3]"), "expected layers below 3; found 3");
  EXPECT_EQ(metadata_complaint("heads", "[0,4]"), "expected heads below 4; found 4");
  EXPECT_EQ(metadata_complaint("heads", "[1,1]"), "expected heads that rise; found 1 after 1");
  EXPECT_EQ(metadata_complaint("heads", "[2,1]"), "expected heads that rise; found 1 after 2");
  EXPECT_EQ(metadata_complaint("attention", "[]"), "expected attention to be a JSON object; found \"[]\"");
  EXPECT_EQ(metadata_complaint("attention", "{"), "expected attention to be a JSON object; found \"{\"");
}

// A list of three tokens of which the second is this.
std::string with_token(const std::string& token) {
  const std::string good = R"({"text":"a","id":1,"offsets":[0,1],"special":false})";
  return "[" + good + "," + token + "," + good + "]";
}

TEST(TraceFile, TokensAreChecked) {
  const auto complaint = [](const std::string& token) { return metadata_complaint("tokens", with_token(token)); };
  EXPECT_EQ(complaint(R"({"text":"","id":-9223372036854775808,"offsets":[7,7],"special":true,"more":1})"), "no error");
  EXPECT_EQ(metadata_complaint("tokens", "{}"),
            "expected a JSON list of tokens in the metadata's tokens; found \"{}\"");
  EXPECT_EQ(metadata_complaint("tokens", "[,]"),
            "expected a JSON list of tokens in the metadata's tokens; found \"[,]\"");
  EXPECT_EQ(metadata_complaint("tokens", "[]"), "expected at least one token; found none");
  EXPECT_EQ(complaint("7"), "expected a JSON object in the metadata's tokens[1]; found \"7\"");
  EXPECT_EQ(complaint(R"({"id":1,"offsets":[0,1],"special":false})"),
            "expected a member \"text\" in the metadata's tokens[1]; found \"object\"");
  EXPECT_EQ(complaint(R"({"text":7,"id":1,"offsets":[0,1],"special":false})"),
            "expected a string in the metadata's tokens[1].text; found \"7\"");
  EXPECT_EQ(complaint(R"({"text":"a","id":1.5,"offsets":[0,1],"special":false})"),
            "expected a whole number of 64 bits in the metadata's tokens[1].id; found \"1.5\"");
  EXPECT_EQ(complaint(R"({"text":"a","id":9223372036854775808,"offsets":[0,1],"special":false})"),
            "expected a whole number of 64 bits in the metadata's tokens[1].id; found \"9223372036854775808\"");
  EXPECT_EQ(complaint(R"({"text":"a","id":1,"offsets":[0,1],"special":0})"),
            "expected true or false in the metadata's tokens[1].special; found \"0\"");
  EXPECT_EQ(complaint(R"({"text":"a","id":1,"offsets":[0,1],"special":false,"piece":null})"),
            "expected a string in the metadata's tokens[1].piece; found \"null\"");
  EXPECT_EQ(complaint(R"({"text":"a","id":1,"offsets":[0,1],"special":false,"continues_word":"no"})"),
            "expected true or false in the metadata's tokens[1].continues_word; found \"\"no\"\"");
  EXPECT_EQ(complaint(R"({"text":"a","id":1,"offsets":[0,1],"special":false,"type_id":[]})"),
            "expected a whole number of 64 bits in the metadata's tokens[1].type_id; found \"array\"");
}

TEST(TraceFile, OffsetsStayInTheText) {
  const auto complaint = [](const std::string& offsets) {
    return metadata_complaint("tokens", with_token(R"({"text":"a","id":1,"special":false,"offsets":)" + offsets + "}"));
  };
  EXPECT_EQ(complaint("[3,7]"), "no error");
  EXPECT_EQ(complaint("[0,8]"), "expected offsets of token 1 inside the text of 7 bytes; found [0, 8]");
  EXPECT_EQ(complaint("[2,1]"), "expected offsets of token 1 inside the text of 7 bytes; found [2, 1]");
  for (const char* offsets : {"[]", "[1]", "[1,2,3]", "[-1,2]", "[0,1.5]", "[0,18446744073709551616]", "{\"0\":1}"}) {
    EXPECT_EQ(complaint(offsets), "expected two byte offsets in the metadata's tokens[1].offsets; found \"" +
                                      std::string(offsets[0] == '[' ? "array" : "object") + "\"");
  }
}

TEST(TraceFile, DeepNestingIsRefusedLikeAnythingElse) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_EQ(metadata_complaint("tokens", deep), "expected a JSON object in the metadata's tokens[0]; found \"array\"");
  EXPECT_TRUE(metadata_complaint("attention", deep).starts_with("expected attention to be a JSON object; found \"[["));
}

// What reading says of a small trace's metadata with these tensors.
std::string tensor_complaint(const std::string& name, const tensor::Tensor& tensor) {
  TemporaryFolder folder;
  const auto path = folder / "t";
  small_trace().write(path);
  const auto metadata = format::SafetensorsFile::open(path).metadata();
  const tensor::Tensor embedding = counting({1, 3, 5}), query = counting({1, 3, 2, 6});
  format::write_safetensors(
      path,
      std::vector<format::NamedTensor>{
          {"embedding", embedding.view()}, {"layers.0.query", query.view()}, {name, tensor.view()}},
      metadata);
  std::string text = error_text([&] { Trace::read(path); });
  if (const size_t at = text.find("] expected"); at != std::string::npos) text = text.substr(at + 2);
  return text;
}

TEST(TraceFile, TensorNamesAreThoseOfTheTable) {
  EXPECT_EQ(tensor_complaint("layers.2.weights", counting({1, 2, 3, 3})), "no error");
  for (const char* name : {"weights", "layers.0.embedding", "layers.0.wieghts", "layers.02.weights", "layers..weights",
                           "layers.2weights", "layers.2", "layers.-2.weights", "layers.+2.weights", "x\x1b[31m", "",
                           "layers.99999999999999999999.weights", "Embedding", "embedding "}) {
    EXPECT_EQ(tensor_complaint(name, counting({1, 2, 3, 3})),
              "expected tensors named like \"embedding\" or \"layers.0.weights\", after the stage table; found " +
                  base::quoted(name));
  }
  EXPECT_EQ(tensor_complaint("layers.1.weights", counting({1, 2, 3, 3})),
            "expected tensors of recorded layers only; found \"layers.1.weights\"");
  EXPECT_EQ(tensor_complaint("layers.3.weights", counting({1, 2, 3, 3})),
            "expected tensors of recorded layers only; found \"layers.3.weights\"");
}

TEST(TraceFile, ShapesFitTheTokensTheHeadsAndEachOther) {
  const auto wrong = [](const std::string& name, const std::string& expected, const tensor::Shape& shape) {
    EXPECT_EQ(tensor_complaint(name, counting(shape)),
              "expected \"" + name + "\" of shape " + expected + "; found " + shape.text());
  };
  const std::string weights = "[batch, heads, query, key] = [1, 2, 3, 3]";
  wrong("layers.2.weights", weights, {2, 2, 3, 3});
  wrong("layers.2.weights", weights, {1, 3, 3, 3});
  wrong("layers.2.weights", weights, {1, 2, 4, 3});
  wrong("layers.2.weights", weights, {1, 2, 3, 2});
  wrong("layers.2.weights", weights, {2, 3, 3});
  wrong("layers.2.weights", weights, {1, 2, 3, 3, 1});
  wrong("layers.2.weights", weights, {});
  wrong("layers.2.weights", weights, {1, 2, 3, 0});
  wrong("layers.0.key", "[batch, seq, kv_heads, head_dim] = [1, 3, 2, 6]", {1, 3, 1, 6});
  wrong("layers.0.key", "[batch, seq, kv_heads, head_dim] = [1, 3, 2, 6]", {1, 3, 2, 5});
  wrong("layers.2.layer_output", "[batch, seq, d_model] = [1, 3, 5]", {1, 3, 4});
  wrong("logits", "[batch, seq, vocab] = [1, 3, 1]", {1, 3, 0});
}

TEST(TraceFile, OnlyFloatsAreTensorsOfATrace) {
  EXPECT_EQ(tensor_complaint("layers.2.row_sum", tensor::Tensor(tensor::DType::f16, {1, 2, 3})),
            "expected F32 for \"layers.2.row_sum\"; found \"F16\"");
}

TEST(TraceFile, ATraceThatCouldNotBeReadIsNotWritten) {
  TemporaryFolder folder;
  const auto complaint = [&](const auto& change) {
    TraceInfo info = small_info();
    change(info);
    return error_text([&] { small_trace(info).write(folder / "t"); });
  };
  EXPECT_EQ(complaint([](TraceInfo& info) { info.text[1] = '\xff'; }),
            "[trace] expected valid UTF-8 in text; found invalid bytes at 1");
  EXPECT_EQ(complaint([](TraceInfo& info) { info.model = "\xff"; }),
            "[trace] expected valid UTF-8 in model; found invalid bytes at 0");
  EXPECT_EQ(complaint([](TraceInfo& info) { info.version = "\xff"; }),
            "[trace] expected valid UTF-8 in version; found invalid bytes at 0");
  EXPECT_EQ(complaint([](TraceInfo& info) { info.attention = "\xff"; }),
            "[trace] expected valid UTF-8 in attention; found invalid bytes at 0");
  EXPECT_EQ(complaint([](TraceInfo& info) { info.tokens[1].text = "a\xc3"; }),
            "[trace] expected valid UTF-8 in the text of token 1; found invalid bytes at 1");
  EXPECT_EQ(complaint([](TraceInfo& info) { info.tokens[2].piece = "\xc3"; }),
            "[trace] expected valid UTF-8 in the piece of token 2; found invalid bytes at 0");
  EXPECT_EQ(complaint([](TraceInfo& info) { info.tokens.pop_back(); }),
            "[trace] expected \"embedding\" of shape [batch, seq, d_model] = [1, 2, 5]; found [1, 3, 5]");
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(TraceFile, BytesInMemoryAreReadLikeAFile) {
  TemporaryFolder folder;
  small_trace().write(folder / "t");
  const std::string content = tests::read_bytes(folder / "t");
  const auto* begin = reinterpret_cast<const std::byte*>(content.data());
  EXPECT_TRUE(same(Trace::read(std::vector(begin, begin + content.size()), "stdin"), small_trace()));
  const std::string complaint = error_text([&] { Trace::read(std::vector(begin, begin + 7), "stdin"); });
  EXPECT_TRUE(complaint.starts_with("[stdin] expected ")) << complaint;
}

}  // namespace
}  // namespace clearhead::capture
