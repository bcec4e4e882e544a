// SPDX-License-Identifier: Apache-2.0
// One hostile file for each rule of the format.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/format/gguf_bytes.h"

namespace clearhead::format {
namespace {

using tests::gguf_complaint;
using tests::gguf_string;
using tests::GgufBytes;
using tests::le;
using tests::read_gguf;

constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();
const std::string kDamaged = "; the file is damaged";
const std::string kCut = "; the file was cut off";

TEST(GgufRules, FileShorterThanItsHeader) {
  EXPECT_EQ(gguf_complaint(""),
            "[\"m\"] expected a GGUF file of at least 24 bytes; found 0 bytes; the file is empty or was cut off");
  EXPECT_EQ(gguf_complaint("GGUF\x03"),
            "[\"m\"] expected a GGUF file of at least 24 bytes; found 5 bytes; the file is empty or was cut off");
}

TEST(GgufRules, Magic) {
  EXPECT_EQ(gguf_complaint({.magic = "GGML"}),
            "[\"m\"] expected a file that begins with GGUF; found \"GGML\"; this is no GGUF file");
}

TEST(GgufRules, VersionTwoAndThreeOnly) {
  EXPECT_EQ(gguf_complaint({.version = 2}), "no error");
  EXPECT_EQ(gguf_complaint({.version = 1}),
            "[\"m\"] expected GGUF version 2 or 3; found version 1; convert the model again with a newer program");
  EXPECT_EQ(gguf_complaint({.version = 4}), "[\"m\"] expected GGUF version 2 or 3; found version 4");
  EXPECT_EQ(gguf_complaint({.version = 0}), "[\"m\"] expected GGUF version 2 or 3; found version 0");
  EXPECT_EQ(gguf_complaint({.version = 0x03000000}),
            "[\"m\"] expected a little-endian GGUF file; found a big-endian one; convert the model on this machine");
}

TEST(GgufRules, CountsBeyondTheFile) {
  for (const uint64_t count : {kHuge, kHuge / 2, uint64_t{1}}) {
    EXPECT_EQ(
        gguf_complaint({.num_tensors = count}),
        fmt::format("[\"m\"] expected tensors: at most 0, for which the file has room; found {}", count) + kDamaged);
    EXPECT_EQ(gguf_complaint({.num_values = count}),
              fmt::format("[\"m\"] expected metadata values: at most 0, for which the file has room; found {}", count) +
                  kDamaged);
  }
  GgufBytes file;  // says one value more than there is
  file.word("a", "0123456789").num_values = 2;
  EXPECT_EQ(gguf_complaint(file), "[\"m\"] expected keys of at least one byte; found an empty one" + kDamaged);
}

TEST(GgufRules, Keys) {
  EXPECT_EQ(gguf_complaint(GgufBytes().u32("", 1)),
            "[\"m\"] expected keys of at least one byte; found an empty one" + kDamaged);
  EXPECT_EQ(gguf_complaint(GgufBytes().u32("a", 1).u32("b", 1).u32("a", 2)),
            "[\"m\"] expected each key once; found \"a\" again" + kDamaged);
  EXPECT_EQ(gguf_complaint(GgufBytes().u32(std::string(65'535, 'k'), 1)), "no error");
  EXPECT_EQ(gguf_complaint(GgufBytes().u32(std::string(65'536, 'k'), 1)),
            "[\"m\"] expected a key of at most 65535 bytes; found 65536" + kDamaged);
  EXPECT_TRUE(read_gguf(GgufBytes().u32("a.b_c-0", 1).text()).warnings().empty());
  const auto odd = read_gguf(GgufBytes().u32("A b", 1).u32("C", 1).text());
  ASSERT_EQ(odd.warnings().size(), 1U);
  EXPECT_EQ(odd.warnings()[0], "\"m\": the key \"A b\" is not of lower-case letters, digits, _, - and .");
}

TEST(GgufRules, Strings) {
  GgufBytes huge, beyond;
  huge.value("a", 8, le(kHuge));
  EXPECT_EQ(gguf_complaint(huge),
            fmt::format("[\"m\"] expected a string of at most 1073741824 bytes; found {}", kHuge) + kDamaged);
  beyond.value("a", 8, le(uint64_t{1000}) + "short");
  EXPECT_NE(gguf_complaint(beyond).find("expected 1000 bytes of a string at byte"), std::string::npos);
  const auto with_nul = read_gguf(GgufBytes().word("a", std::string_view("x\0y", 3)).text());
  EXPECT_EQ(with_nul.metadata().word("a"), std::string_view("x\0y", 3));
}

TEST(GgufRules, ValueTypes) {
  EXPECT_EQ(gguf_complaint(GgufBytes().value("a", 13, "0123456789")),
            "[\"m\"] expected a type of \"a\" from 0 to 12; found 13" + kDamaged);
  EXPECT_EQ(gguf_complaint(GgufBytes().array("a", 99, 1, "0123456789")),
            "[\"m\"] expected an element type of \"a\" from 0 to 12; found 99" + kDamaged);
  EXPECT_EQ(gguf_complaint(GgufBytes().array("a", 9, 1, "0123456789")),
            "[\"m\"] expected an array of numbers or strings as \"a\"; found an array of arrays");
  EXPECT_EQ(gguf_complaint(GgufBytes().value("a", 7, "\x01")), "no error");
  EXPECT_EQ(gguf_complaint(GgufBytes().value("a", 7, "\x02")),
            "[\"m\"] expected 0 or 1 as a bool of \"a\"; found 2" + kDamaged);
  EXPECT_EQ(gguf_complaint(GgufBytes().array("a", 7, 2, std::string("\x01\x03", 2))),
            "[\"m\"] expected 0 or 1 as a bool of \"a\"; found 3" + kDamaged);
}

TEST(GgufRules, ArraysBeyondTheFile) {
  for (const uint32_t type : {0U, 4U, 8U, 12U}) {
    for (const uint64_t count : {kHuge, kHuge / 2, kHuge / 8 + 1, uint64_t{1} << 40}) {
      const std::string text = gguf_complaint(GgufBytes().array("a", type, count, "0123456789abcdef"));
      EXPECT_NE(text.find("for which the file has room"), std::string::npos) << text;
    }
  }
}

TEST(GgufRules, Alignment) {
  const auto complaint = [](const GgufBytes& file) { return gguf_complaint(file); };
  const std::string expected = "[\"m\"] expected general.alignment of type u32, a power of two from 8 to 65536; found ";
  for (const uint32_t bad : {0U, 3U, 4U, 12U, 33U, 131'072U, 0x80000000U}) {
    EXPECT_EQ(complaint(GgufBytes().u32("general.alignment", bad)), expected + fmt::format("u32 {}", bad) + kDamaged);
  }
  EXPECT_EQ(complaint(GgufBytes().value("general.alignment", 10, le(uint64_t{32}))), expected + "u64 32" + kDamaged);
  EXPECT_EQ(complaint(GgufBytes().array("general.alignment", 4, 1, le(uint32_t{32}))),
            expected + "u32 an array of 1 u32" + kDamaged);
  GgufBytes file;
  file.u32("general.alignment", 64).tensor("a", {1}, 0, 0).tensor("b", {1}, 0, 64).data = std::string(68, 'x');
  file.alignment = 64;
  EXPECT_EQ(complaint(file), "no error");
}

TEST(GgufRules, TensorNames) {
  GgufBytes twice;
  twice.tensor("a", {8}, 0, 0).tensor("a", {8}, 0, 32).data = std::string(64, 0);
  EXPECT_EQ(gguf_complaint(twice),
            "[\"m\", tensor \"a\"] expected each name once; found the same name again" + kDamaged);
  GgufBytes longest, longer, empty;
  longest.tensor(std::string(63, 'a'), {0}, 0, 0);
  longer.tensor(std::string(64, 'a'), {0}, 0, 0);
  empty.tensor("", {0}, 0, 0).tensor("second, so that there is room", {0}, 0, 0);
  EXPECT_EQ(gguf_complaint(longest), "no error");
  EXPECT_EQ(gguf_complaint(longer), "[\"m\"] expected the name of a tensor of at most 63 bytes; found 64" + kDamaged);
  EXPECT_EQ(gguf_complaint(empty),
            "[\"m\", tensor \"\"] expected a name of at least one byte; found an empty one" + kDamaged);
}

TEST(GgufRules, Axes) {
  GgufBytes five, negative, huge;
  five.tensor("a", {1, 1, 1, 1, 1}, 0, 0);
  EXPECT_EQ(gguf_complaint(five), "[\"m\", tensor \"a\"] expected at most 4 axes; found 5" + kDamaged);
  negative.tensor("a", {-1}, 0, 0);
  EXPECT_EQ(gguf_complaint(negative), "[\"m\", tensor \"a\"] expected axes of 0 or more; found -1" + kDamaged);
  huge.tensor("a", {int64_t{1} << 32, int64_t{1} << 32}, 0, 0);
  EXPECT_EQ(gguf_complaint(huge),
            "[\"m\", tensor \"a\"] expected a size that fits 64 bits; found F32 [4294967296, 4294967296]");
  GgufBytes wide;
  wide.tensor("a", {int64_t{1} << 62}, 0, 0);
  EXPECT_EQ(gguf_complaint(wide),
            "[\"m\", tensor \"a\"] expected a size that fits 64 bits; found F32 [4611686018427387904]");
  GgufBytes scalar;
  scalar.tensor("a", {}, 0, 0).data = std::string(4, 0);
  EXPECT_EQ(gguf_complaint(scalar), "no error");
}

TEST(GgufRules, RowsOfWholeBlocks) {
  GgufBytes small, large, block_of_scalar;
  small.tensor("a", {33, 32}, 2, 0);
  EXPECT_EQ(gguf_complaint(small),
            "[\"m\", tensor \"a\"] expected rows of whole blocks of 32 values for Q4_0; found rows of 33" + kDamaged);
  large.tensor("a", {32, 256}, 14, 0);
  EXPECT_EQ(gguf_complaint(large),
            "[\"m\", tensor \"a\"] expected rows of whole blocks of 256 values for Q6_K; found rows of 32" + kDamaged);
  block_of_scalar.tensor("a", {}, 8, 0);
  EXPECT_EQ(gguf_complaint(block_of_scalar),
            "[\"m\", tensor \"a\"] expected rows of whole blocks of 32 values for Q8_0; found rows of 1" + kDamaged);
}

TEST(GgufRules, TypesThatWeHaveNot) {
  const std::string expected =
      "[\"m\", tensor \"a\"] expected one of the types F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K; "
      "found ";
  const std::pair<uint32_t, std::string> known[] = {
      {9, "Q8_1"},     {10, "Q2_K"},  {11, "Q3_K"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"},
      {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},   {23, "IQ4_XS"},
      {24, "I8"},      {25, "I16"},   {26, "I32"},    {27, "I64"},   {28, "F64"},     {29, "IQ1_M"},
      {34, "TQ1_0"},   {35, "TQ2_0"}, {39, "MXFP4"},  {40, "NVFP4"}, {41, "Q1_0"},    {42, "Q2_0"}};
  for (const auto& [id, name] : known) {
    EXPECT_EQ(gguf_complaint(GgufBytes().tensor("a", {256}, id, 0)),
              expected + name + "; take a file of another quantisation of this model");
  }
  for (const uint32_t id : {4U, 5U, 31U, 32U, 33U, 36U, 37U, 38U, 43U, 0xffffffffU}) {
    EXPECT_EQ(gguf_complaint(GgufBytes().tensor("a", {256}, id, 0)),
              expected + fmt::format("type {}, which the format does not have", id));
  }
}

TEST(GgufRules, Offsets) {
  GgufBytes odd, hole, overlap, turned, wraps;
  odd.tensor("a", {8}, 0, 4);
  EXPECT_EQ(gguf_complaint(odd),
            "[\"m\", tensor \"a\"] expected an offset that is a multiple of 32; found 4" + kDamaged);
  hole.tensor("a", {8}, 0, 32);
  EXPECT_EQ(gguf_complaint(hole),
            "[\"m\", tensor \"a\"] expected the offset 0, behind the tensor before it; found 32" + kDamaged);
  overlap.tensor("a", {16}, 0, 0).tensor("b", {8}, 0, 32);
  EXPECT_EQ(gguf_complaint(overlap),
            "[\"m\", tensor \"b\"] expected the offset 64, behind the tensor before it; found 32" + kDamaged);
  turned.tensor("a", {8}, 0, 0).tensor("b", {8}, 0, 0);
  EXPECT_EQ(gguf_complaint(turned),
            "[\"m\", tensor \"b\"] expected the offset 32, behind the tensor before it; found 0" + kDamaged);
  wraps.tensor("a", {(int64_t{1} << 62) - 1}, 0, 0);
  EXPECT_EQ(gguf_complaint(wraps),
            "[\"m\", tensor \"a\"] expected an end that fits 64 bits; found offset 0 and 18446744073709551612 bytes");
}

TEST(GgufRules, DataBeyondTheFile) {
  GgufBytes file;
  file.tensor("a", {8}, 0, 0).tensor("b", {8}, 0, 32).data = std::string(63, 0);
  EXPECT_EQ(gguf_complaint(file),
            "[\"m\", tensor \"b\"] expected data within the 63 bytes of data; found bytes 32 to 64" + kCut);
  file.data.push_back(0);
  EXPECT_EQ(gguf_complaint(file), "no error");
  std::string text = file.text();
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_NE(gguf_complaint(text.substr(0, size)), "no error") << size;
  }
}

TEST(GgufRules, BytesBehindTheLastTensorAreSaid) {
  GgufBytes file;
  file.tensor("a", {2}, 0, 0).data = std::string(32, 0);  // padding of the last tensor
  EXPECT_TRUE(read_gguf(file.text()).warnings().empty());
  file.data.resize(40);
  EXPECT_EQ(read_gguf(file.text()).warnings(),
            (std::vector<std::string>{"\"m\": 8 bytes behind the last tensor belong to none"}));
}

}  // namespace
}  // namespace clearhead::format
