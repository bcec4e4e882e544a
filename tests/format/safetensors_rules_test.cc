// SPDX-License-Identifier: Apache-2.0
// One hostile file for each rule of the format.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/format/safetensors_text.h"

namespace clearhead::format {
namespace {

using tests::complaint;
using tests::complaint_of_header;
using tests::parse_header;
using tests::safetensors_bytes;

// A header with one tensor of the given fields.
std::string one(std::string_view fields) { return fmt::format(R"({{"a":{{{}}}}})", fields); }

TEST(SafetensorsRules, FileOfFewerThanEightBytes) {
  EXPECT_EQ(complaint(""),
            "[\"m\"] expected a safetensors file of at least 8 bytes; found 0 bytes; the file is empty or was cut off");
  EXPECT_EQ(complaint("1234567"),
            "[\"m\"] expected a safetensors file of at least 8 bytes; found 7 bytes; the file is empty or was cut off");
}

TEST(SafetensorsRules, HeaderTooLarge) {
  EXPECT_EQ(
      complaint(std::string("\x01\xe1\xf5\x05\0\0\0\0{}", 10)),
      "[\"m\"] expected a header of at most 100000000 bytes; found 100000001 bytes; this is no safetensors file or "
      "it is damaged");
}

TEST(SafetensorsRules, HeaderBeyondTheFile) {
  EXPECT_EQ(complaint(std::string("\x0a\0\0\0\0\0\0\0{}", 10)),
            "[\"m\"] expected a header of 10 bytes; found an end of the file after 2 of them; the file was cut off");
  EXPECT_EQ(complaint(std::string(8, '\xff')),
            "[\"m\"] expected a header of at most 100000000 bytes; found 18446744073709551615 bytes; this is no "
            "safetensors file or it is damaged");
}

TEST(SafetensorsRules, HeaderThatIsNoUtf8) {
  EXPECT_EQ(complaint_of_header("{\"a\xff\":{}}"),
            "[\"m\"] expected a header in UTF-8; found an invalid sequence at byte 3 of the header");
}

TEST(SafetensorsRules, HeaderThatDoesNotBeginWithABrace) {
  const std::string advice = "; this is no safetensors file or it is damaged";
  EXPECT_EQ(complaint_of_header(""), "[\"m\"] expected a header that begins with {; found an empty header" + advice);
  EXPECT_EQ(complaint_of_header("[]"), "[\"m\"] expected a header that begins with {; found \"[\"" + advice);
  EXPECT_EQ(complaint_of_header(" {}"), "[\"m\"] expected a header that begins with {; found \" \"" + advice);
  EXPECT_EQ(complaint_of_header("\xef\xbb\xbf{}"),
            "[\"m\"] expected a header that begins with {; found \"\\xef\"" + advice);
  EXPECT_EQ(complaint_of_header("null"), "[\"m\"] expected a header that begins with {; found \"n\"" + advice);
}

TEST(SafetensorsRules, LeadingWhiteSpaceOnlyWhereForgiven) {
  const std::string file = safetensors_bytes(" \n{}");
  EXPECT_EQ(parse_header(file, {.leading_white_space = true}).entries.size(), 0u);
  EXPECT_EQ(parse_header(file, {.leading_white_space = true}).data_begin, 12u);
  EXPECT_NE(complaint(file), "no error");
  EXPECT_NE(tests::error_text([] { parse_header(safetensors_bytes("  "), {.leading_white_space = true}); }),
            "no error");
}

TEST(SafetensorsRules, PaddingBySpacesOnly) {
  EXPECT_EQ(complaint_of_header("{}      "), "no error");
  EXPECT_EQ(complaint_of_header(std::string("{}\0\0", 4)),
            "[\"m\"] expected a header of JSON padded by spaces; found a NUL at byte 2 of the header");
  EXPECT_EQ(
      complaint_of_header("{} {}"),
      "[\"m\"] expected a header of JSON; found a mistake at byte 4 of the header; this is no safetensors file or "
      "it is damaged");
}

TEST(SafetensorsRules, MetadataOfStringsOnly) {
  EXPECT_EQ(complaint_of_header(R"({"__metadata__":{"a":1}})"),
            "[\"m\", key \"__metadata__\"] expected only strings in __metadata__; found 1");
  EXPECT_EQ(complaint_of_header(R"({"__metadata__":{"a":{}}})"),
            "[\"m\", key \"__metadata__\"] expected only strings in __metadata__; found an object");
  EXPECT_EQ(complaint_of_header(R"({"__metadata__":{"a":null}})"),
            "[\"m\", key \"__metadata__\"] expected only strings in __metadata__; found null");
  EXPECT_EQ(complaint_of_header(R"({"__metadata__":["a"]})"),
            "[\"m\", key \"__metadata__\"] expected an object; found an array");
  EXPECT_EQ(complaint_of_header(R"({"__metadata__":"a"})"),
            "[\"m\", key \"__metadata__\"] expected an object; found \"a\"");
  EXPECT_EQ(parse_header(safetensors_bytes(R"({"__metadata__":{"a":"b","c":""}})")).metadata,
            (std::map<std::string, std::string>{{"a", "b"}, {"c", ""}}));
}

TEST(SafetensorsRules, MetadataOfTooManyEntries) {
  std::string pairs;
  for (size_t i = 0; i <= kMaxMetadata; ++i) pairs += fmt::format("{}\"{}\":\"\"", i == 0 ? "" : ",", i);
  EXPECT_EQ(complaint_of_header(fmt::format(R"({{"__metadata__":{{{}}}}})", pairs)),
            "[\"m\", key \"__metadata__\"] expected at most 65536 entries; found more");
}

TEST(SafetensorsRules, TensorWithoutAField) {
  EXPECT_EQ(complaint_of_header(one(R"("shape":[0],"data_offsets":[0,0])")),
            "[\"m\", tensor \"a\"] expected dtype, shape and data_offsets; found no dtype");
  EXPECT_EQ(complaint_of_header(one(R"("dtype":"F32","data_offsets":[0,0])")),
            "[\"m\", tensor \"a\"] expected dtype, shape and data_offsets; found no shape");
  EXPECT_EQ(complaint_of_header(one(R"("dtype":"F32","shape":[0])")),
            "[\"m\", tensor \"a\"] expected dtype, shape and data_offsets; found no data_offsets");
  EXPECT_EQ(complaint_of_header(R"({"a":1})"), "[\"m\", tensor \"a\"] expected an object; found 1");
  EXPECT_EQ(complaint_of_header(R"({"a":[]})"), "[\"m\", tensor \"a\"] expected an object; found an array");
}

TEST(SafetensorsRules, FieldsOfAnotherKind) {
  EXPECT_EQ(complaint_of_header(one(R"("dtype":4)")), "[\"m\", tensor \"a\"] expected a string as dtype; found 4");
  EXPECT_EQ(complaint_of_header(one(R"("shape":"x")")),
            "[\"m\", tensor \"a\"] expected an array as shape; found \"x\"");
  EXPECT_EQ(complaint_of_header(one(R"("shape":[[1]])")),
            "[\"m\", tensor \"a\"] expected unsigned integers in shape; found an array");
  EXPECT_EQ(complaint_of_header(one(R"("data_offsets":{"begin":0})")),
            "[\"m\", tensor \"a\"] expected an array as data_offsets; found an object");
  EXPECT_EQ(complaint_of_header(one(R"("data_offsets":[0])")),
            "[\"m\", tensor \"a\"] expected two data_offsets; found 1");
  EXPECT_EQ(complaint_of_header(one(R"("data_offsets":[0,1,2])")),
            "[\"m\", tensor \"a\"] expected two data_offsets; found more");
}

TEST(SafetensorsRules, UnknownFieldsAreIgnoredWithAWarning) {
  const auto header = parse_header(safetensors_bytes(
      one(R"("x":[1,{"dtype":"F32","y":[]}],"dtype":"U8","shape":[2],"z":{"a":{}},"data_offsets":[0,2],"w":null)"),
      "ab"));
  ASSERT_EQ(header.entries.size(), 1u);
  EXPECT_EQ(header.entries[0].dtype_name, "U8");
  EXPECT_EQ(header.warnings,
            (std::vector<std::string>{R"("m": 3 unknown fields of tensors are ignored, the first is "x" of "a")"}));
}

TEST(SafetensorsRules, TooManyUnknownFields) {
  std::string fields;
  for (size_t i = 0; i <= kMaxUnknownFields; ++i) fields += fmt::format("{}\"{}\":0", i == 0 ? "" : ",", i);
  EXPECT_EQ(complaint_of_header(one(fields)), "[\"m\", tensor \"a\"] expected at most 64 unknown fields; found more");
}

TEST(SafetensorsRules, NothingTwice) {
  const std::string tensor = R"({"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  EXPECT_EQ(complaint_of_header(fmt::format(R"({{"a":{0},"b":{0},"a":{0}}})", tensor)),
            "[\"m\", tensor \"a\"] expected each name once; found the same name again");
  EXPECT_EQ(complaint_of_header(fmt::format(R"({{"a":{0},"\u0061":{0}}})", tensor)),
            "[\"m\", tensor \"a\"] expected each name once; found the same name again");
  EXPECT_EQ(complaint_of_header(R"({"__metadata__":{},"__metadata__":{}})"),
            "[\"m\", key \"__metadata__\"] expected __metadata__ once; found it again");
  EXPECT_EQ(complaint_of_header(R"({"__metadata__":{"k":"","k":""}})"),
            "[\"m\", key \"__metadata__\"] expected each key once; found \"k\" again");
  for (const std::string field : {R"("dtype":"F32")", R"("shape":[0])", R"("data_offsets":[0,0])", R"("x":0)"}) {
    const std::string name = field.substr(0, field.find(':'));
    EXPECT_EQ(complaint_of_header(one(field + "," + field)),
              fmt::format("[\"m\", tensor \"a\"] expected each field once; found {} again", name));
  }
}

TEST(SafetensorsRules, NumbersThatAreNoUnsignedIntegers) {
  for (const std::string number : {"1.0", "1e2", "18446744073709551616", "0.5"}) {
    EXPECT_EQ(complaint_of_header(one(fmt::format(R"("shape":[{}])", number))),
              fmt::format("[\"m\", tensor \"a\"] expected unsigned integers in shape; found \"{}\"", number));
  }
  EXPECT_EQ(complaint_of_header(one(R"("shape":[-1])")),
            "[\"m\", tensor \"a\"] expected unsigned integers in shape; found -1");
  EXPECT_EQ(complaint_of_header(one(R"("data_offsets":[-0,0])")),
            "[\"m\", tensor \"a\"] expected unsigned integers in data_offsets; found 0");
  EXPECT_EQ(complaint_of_header(one(R"("data_offsets":[true,0])")),
            "[\"m\", tensor \"a\"] expected unsigned integers in data_offsets; found true");
}

// Two tensors of two bytes each, with the given offsets.
std::string two(std::string_view first, std::string_view second) {
  return fmt::format(
      R"({{"a":{{"dtype":"U8","shape":[2],"data_offsets":{}}},"b":{{"dtype":"U8","shape":[2],"data_offsets":{}}}}})",
      first, second);
}

TEST(SafetensorsRules, OffsetsThatDoNotTile) {
  EXPECT_EQ(complaint_of_header(two("[1,3]", "[3,5]"), "12345"),
            "[\"m\", tensor \"a\"] expected data_offsets that begin at 0; found [1, 3]; there is a hole before it");
  EXPECT_EQ(complaint_of_header(two("[0,2]", "[3,5]"), "12345"),
            "[\"m\", tensor \"b\"] expected data_offsets that begin at 2; found [3, 5]; there is a hole before it");
  EXPECT_EQ(complaint_of_header(two("[0,2]", "[1,3]"), "123"),
            "[\"m\", tensor \"b\"] expected data_offsets that begin at 2; found [1, 3]; tensors overlap");
  EXPECT_EQ(complaint_of_header(two("[0,2]", "[0,2]"), "12"),
            "[\"m\", tensor \"b\"] expected data_offsets that begin at 2; found [0, 2]; tensors overlap");
  EXPECT_EQ(complaint_of_header(two("[0,2]", "[2,0]"), "1234"),
            "[\"m\", tensor \"b\"] expected data_offsets that begin at 2; found [2, 0]; the end is before the begin");
  EXPECT_EQ(complaint_of_header(two("[2,4]", "[0,2]"), "1234"), "no error");
}

TEST(SafetensorsRules, SizesThatDoNotFitTheShape) {
  EXPECT_EQ(complaint_of_header(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,7])"), "1234567"),
            "[\"m\", tensor \"a\"] expected 8 bytes for F32 [2]; found data_offsets [0, 7]");
  EXPECT_EQ(complaint_of_header(one(R"("dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0])")),
            "[\"m\", tensor \"a\"] expected a size that fits 64 bits; found U8 [4294967296, 4294967296]");
  EXPECT_EQ(complaint_of_header(one(R"("dtype":"F64","shape":[288230376151711744],"data_offsets":[0,0])")),
            "[\"m\", tensor \"a\"] expected a size that fits 64 bits; found F64 [288230376151711744]");
}

TEST(SafetensorsRules, TypesSmallerThanAByteEndOnAByte) {
  EXPECT_EQ(complaint_of_header(one(R"("dtype":"F4","shape":[3],"data_offsets":[0,2])"), "12"),
            "[\"m\", tensor \"a\"] expected a size of whole bytes; found F4 [3] of 12 bits");
  EXPECT_EQ(complaint_of_header(one(R"("dtype":"F4","shape":[4],"data_offsets":[0,2])"), "12"), "no error");
  EXPECT_EQ(complaint_of_header(one(R"("dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3])"), "123"), "no error");
}

TEST(SafetensorsRules, FileThatEndsElsewhere) {
  const std::string header = one(R"("dtype":"U8","shape":[2],"data_offsets":[0,2])");
  EXPECT_EQ(complaint_of_header(header, "123"),
            "[\"m\"] expected the file to end with its last tensor, after 2 bytes of data; found 3 bytes; bytes that "
            "belong to no tensor are not allowed");
  EXPECT_EQ(
      complaint_of_header(header, "1"),
      "[\"m\", tensor \"a\"] expected data_offsets within the 1 bytes of data; found [0, 2]; the file was cut off");
  EXPECT_EQ(complaint_of_header("{}", "1"),
            "[\"m\"] expected the file to end with its last tensor, after 0 bytes of data; found 1 bytes; bytes that "
            "belong to no tensor are not allowed");
}

TEST(SafetensorsRules, ScalarsAndEmptyTensorsAreAllowed) {
  const auto header = parse_header(safetensors_bytes(
      R"({"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"e":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]},)"
      R"("f":{"dtype":"F16","shape":[18446744073709551615,0,3],"data_offsets":[0,0]}})",
      "1234"));
  ASSERT_NE(header.find("s"), nullptr);
  EXPECT_EQ(header.find("s")->shape, tensor::Shape());
  EXPECT_EQ(header.find("s")->bytes(), 4u);
  EXPECT_EQ(header.find("e")->bytes(), 0u);
  EXPECT_EQ(header.find("f")->shape.rank(), 3u);
}

TEST(SafetensorsRules, TooManyAxes) {
  std::string sizes = "1";
  for (size_t i = 1; i < kMaxAxes; ++i) sizes += ",1";
  EXPECT_EQ(complaint_of_header(one(fmt::format(R"("dtype":"U8","shape":[{}],"data_offsets":[0,1])", sizes)), "1"),
            "no error");
  EXPECT_EQ(complaint_of_header(one(fmt::format(R"("dtype":"U8","shape":[{},1],"data_offsets":[0,1])", sizes)), "1"),
            "[\"m\", tensor \"a\"] expected a shape of at most 64 axes; found more");
}

TEST(SafetensorsRules, NestedTooDeep) {
  // the header and the tensor are two of the sixteen levels
  const auto nested = [](size_t depth) {
    return one(fmt::format(R"("x":{}{},"dtype":"U8","shape":[0],"data_offsets":[0,0])", std::string(depth, '['),
                           std::string(depth, ']')));
  };
  EXPECT_EQ(complaint_of_header(nested(14)), "no error");
  EXPECT_EQ(complaint_of_header(nested(15)), "[\"m\"] expected a header nested at most 16 deep; found a deeper one");
  EXPECT_EQ(complaint_of_header(nested(1'000'000)),
            "[\"m\"] expected a header nested at most 16 deep; found a deeper one");
}

TEST(SafetensorsRules, NamesOfStrangersAreQuotedAndCut) {
  const std::string text = complaint_of_header(R"({"\u001b[31m<img onerror=x>)" + std::string(1000, 'y') + R"(":1})");
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find(R"(tensor "\x1b[31m<img)"), std::string::npos) << text;
  EXPECT_LT(text.size(), 200u);
}

}  // namespace
}  // namespace clearhead::format
