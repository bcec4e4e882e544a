// SPDX-License-Identifier: Apache-2.0
#include "clearhead/format/safetensors.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "clearhead/tensor/compare.h"
#include "tests/format/safetensors_text.h"
#include "tests/support/temporary_folder.h"

namespace clearhead::format {
namespace {

using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tests::error_text;
using tests::read_bytes;
using tests::safetensors_bytes;
using tests::TemporaryFolder;
using tests::write_bytes;

Tensor counted(Shape shape, float first) {
  Tensor values(std::move(shape));
  for (size_t i = 0; i < values.elements(); ++i) values.as<float>()[i] = first + static_cast<float>(i);
  return values;
}

TEST(SafetensorsFile, GivesBackWhatWasWritten) {
  const TemporaryFolder folder;
  const Tensor a = counted({2, 3}, 1), b = counted({}, 7), empty = counted({0, 4}, 0);
  write_safetensors(folder / "m.safetensors", std::array<NamedTensor, 3>{{{"a", a}, {"b", b}, {"empty", empty}}},
                    {{"key", "value \u00e9"}});
  const auto file = SafetensorsFile::open(folder / "m.safetensors");
  EXPECT_EQ(file.entries().size(), 3u);
  EXPECT_EQ(file.total_bytes(), 28u);
  EXPECT_TRUE(tensor::same_bits(file.view("a"), a));
  EXPECT_TRUE(tensor::same_bits(file.view("b"), b));
  EXPECT_TRUE(tensor::same_bits(file.view("empty"), empty));
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"key", "value \u00e9"}}));
  EXPECT_TRUE(file.warnings().empty());
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(SafetensorsFile, ViewsOutliveAMove) {
  const TemporaryFolder folder;
  const Tensor a = counted({1000}, 1);
  write_safetensors(folder / "m.safetensors", std::array<NamedTensor, 1>{{{"a", a}}});
  auto file = SafetensorsFile::open(folder / "m.safetensors");
  const auto view = file.view("a");
  const SafetensorsFile moved = std::move(file);
  EXPECT_TRUE(tensor::same_bits(view, a));
  moved.release_pages(view.bytes());
  moved.release_pages(a.view().bytes());  // not of this file: left alone
  EXPECT_TRUE(tensor::same_bits(view, a));
  EXPECT_EQ(a.as<float>()[999], 1000.0f);
}

TEST(SafetensorsFile, ReadsBytesThatAreNoFile) {
  const std::string text = safetensors_bytes(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "\x05\x06");
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  auto first = SafetensorsFile::read(std::move(bytes), "standard input");
  const SafetensorsFile file = std::move(first);
  EXPECT_EQ(file.view("a").as<uint8_t>()[1], 6);
  EXPECT_EQ(error_text([&] { file.view("b"); }),
            "[standard input] expected a tensor \"b\"; found 1 tensors, none of that name");
}

TEST(SafetensorsFile, NamesATensorThatIsMissing) {
  const TemporaryFolder folder;
  write_bytes(folder / "m.safetensors", safetensors_bytes("{}"));
  const auto file = SafetensorsFile::open(folder / "m.safetensors");
  EXPECT_FALSE(file.contains("a"));
  const std::string where = "[\"" + (folder / "m.safetensors").string() + "\"]";
  EXPECT_EQ(error_text([&] { file.view("a"); }),
            where + " expected a tensor \"a\"; found 0 tensors, none of that name");
}

TEST(SafetensorsFile, RefusesATypeOnlyWhenItsTensorIsAskedFor) {
  const TemporaryFolder folder;
  write_bytes(folder / "m.safetensors", safetensors_bytes(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                                                          R"("mask":{"dtype":"I8","shape":[1],"data_offsets":[2,3]},)"
                                                          R"("new":{"dtype":"F3","shape":[8],"data_offsets":[3,6]}})",
                                                          "123456"));
  const auto file = SafetensorsFile::open(folder / "m.safetensors");
  EXPECT_EQ(file.view("a").as<uint8_t>()[0], '1');
  EXPECT_EQ(file.entry("mask").dtype_name, "I8");
  EXPECT_FALSE(file.entry("mask").dtype);
  const std::string where = "[\"" + (folder / "m.safetensors").string() + "\", tensor ";
  const std::string expected = " expected one of the types F32, F16, BF16, F64, I64, I32, U8, BOOL; found ";
  const std::string advice = "; convert the file to one of them";
  EXPECT_EQ(error_text([&] { file.view("mask"); }), where + "\"mask\"]" + expected + "\"I8\"" + advice);
  EXPECT_EQ(error_text([&] { file.view("new"); }), where + "\"new\"]" + expected + "\"F3\"" + advice);
}

TEST(SafetensorsFile, OpensNothingThatIsNotThere) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_text([&] { SafetensorsFile::open(folder / "none"); }),
            "[\"" + (folder / "none").string() + "\"] expected a readable file; found No such file or directory");
  EXPECT_EQ(
      error_text([&] { SafetensorsFile::open(folder.path()); }),
      "[\"" + folder.path().string() + "\"] expected a regular file; found something else (folder, pipe or device)");
}

TEST(SafetensorsFile, UnalignedTensorsAreCopiedNotCast) {
  const TemporaryFolder folder;
  const float value = 1.5f;
  std::string data = "x" + std::string(4, '\0');
  std::memcpy(data.data() + 1, &value, 4);
  write_bytes(folder / "m.safetensors", safetensors_bytes(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                                          R"("b":{"dtype":"F32","shape":[],"data_offsets":[1,5]}}  )",
                                                          data));
  const auto file = SafetensorsFile::open(folder / "m.safetensors");
  EXPECT_EQ(tensor::to_dtype(file.view("b"), DType::f32).as<float>()[0], 1.5f);
}

TEST(WriteSafetensors, AlignsEveryTensor) {
  const TemporaryFolder folder;
  const Tensor odd(DType::u8, {3}), half(DType::f16, {5}), wide(DType::f64, {1}), flag(DType::bool_, {1}), real({3});
  write_safetensors(
      folder / "m.safetensors",
      std::array<NamedTensor, 5>{{{"odd", odd}, {"half", half}, {"wide", wide}, {"flag", flag}, {"real", real}}});
  const std::string bytes = read_bytes(folder / "m.safetensors");
  const auto header = tests::parse_header(bytes);
  EXPECT_EQ(header.data_begin % 8, 0u);
  std::string order;
  for (const TensorEntry& entry : header.entries) {
    order += entry.name + " ";
    EXPECT_EQ(entry.begin % tensor::size_of(*entry.dtype), 0u) << entry.name;
  }
  EXPECT_EQ(order, "wide real half odd flag ");
  EXPECT_EQ(bytes[8], '{');
}

TEST(WriteSafetensors, RefusesNamesThatTheFormatForbids) {
  const TemporaryFolder folder;
  const Tensor a({1});
  const auto complaint = [&](std::vector<NamedTensor> tensors, std::map<std::string, std::string> metadata = {}) {
    const std::string text = error_text([&] { write_safetensors(folder / "m", tensors, metadata); });
    return text.substr(text.find(']') + 1);
  };
  EXPECT_EQ(complaint({{"a", a}, {"b", a}, {"a", a}}), " expected each name once; found \"a\" again");
  EXPECT_EQ(complaint({{"__metadata__", a}}),
            " expected names of tensors; found \"__metadata__\"; the format reserves it");
  EXPECT_EQ(complaint({{"a\xff", a}}), " expected names and metadata in UTF-8; found \"a\\xff\" at byte 1");
  EXPECT_EQ(complaint({{"a", a}}, {{"k", "\xc0"}}), " expected names and metadata in UTF-8; found \"\\xc0\" at byte 0");
  EXPECT_EQ(complaint({{"a", Tensor(Shape(std::vector<size_t>(65, 1)))}}),
            " expected at most 64 axes; found 65 of \"a\"");
  EXPECT_EQ(error_text([&] {
              write_safetensors(folder / "m", std::array<NamedTensor, 1>{{{"__metadata__", a}}});
            }).substr(0, 7),
            "usage: ");
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(WriteSafetensors, RefusesAHeaderThatNobodyWouldRead) {
  const TemporaryFolder folder;
  const std::map<std::string, std::string> large{{"k", std::string(kMaxHeaderBytes, 'x')}};
  const std::string text = error_text([&] { write_safetensors(folder / "m", {}, large); });
  EXPECT_NE(text.find("expected a header of at most 100000000 bytes; found 100000032 bytes"), std::string::npos)
      << text;
}

TEST(WriteSafetensors, KeepsNamesThatNeedEscapes) {
  const TemporaryFolder folder;
  const Tensor a = counted({1}, 4);
  const std::string name = "quote \" backslash \\ line\n nul \x01 \u4e66";
  write_safetensors(folder / "m", std::array<NamedTensor, 1>{{{name, a}}}, {{name, name}});
  const auto file = SafetensorsFile::open(folder / "m");
  EXPECT_TRUE(file.contains(name));
  EXPECT_EQ(file.metadata().at(name), name);
}

TEST(WriteSafetensors, SaysThatAFolderIsMissing) {
  const TemporaryFolder folder;
  const std::string text = error_text([&] { write_safetensors(folder / "none" / "m", {}); });
  EXPECT_NE(text.find("expected a file that can be written; found No such file or directory"), std::string::npos);
}

// data/peer.safetensors was written by the Python package (golden/make_peer.py).
TEST(Safetensors, ReadsWhatThePythonPackageWrote) {
  const auto file = SafetensorsFile::open(CLEARHEAD_TEST_DATA "/peer.safetensors");
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"format", "pt"}, {"note", "\u4e66 \"quoted\""}}));
  EXPECT_EQ(file.view("f32").shape(), (Shape{2, 3}));
  EXPECT_EQ(file.view("f32").as<float>()[5], 2.5f);
  EXPECT_EQ(file.view("scalar").shape(), Shape());
  EXPECT_EQ(tensor::to_dtype(file.view("f16"), DType::f32).as<float>()[1], 65504.0f);
  EXPECT_EQ(tensor::to_dtype(file.view("bf16"), DType::f32).as<float>()[0], -3.140625f);
  EXPECT_EQ(tensor::to_dtype(file.view("f64"), DType::f64).as<double>()[0], 0.1);
  EXPECT_EQ(tensor::to_dtype(file.view("i64"), DType::i64).as<int64_t>()[0], std::numeric_limits<int64_t>::min());
  EXPECT_EQ(tensor::to_dtype(file.view("i32"), DType::i32).as<int32_t>()[1], -2);
  EXPECT_EQ(file.view("u8").as<uint8_t>()[2], 255);
  EXPECT_EQ(file.view("bool").bytes()[0], std::byte{1});
  EXPECT_EQ(file.view("empty").shape(), (Shape{0, 5}));
}

TEST(Safetensors, WritesWhatThePythonPackageWrites) {
  const auto file = SafetensorsFile::open(CLEARHEAD_TEST_DATA "/peer.safetensors");
  std::vector<NamedTensor> tensors;
  for (const TensorEntry& entry : file.entries()) tensors.push_back({entry.name, file.view(entry.name)});
  const TemporaryFolder folder;
  write_safetensors(folder / "ours", tensors, file.metadata());
  EXPECT_EQ(read_bytes(folder / "ours"), read_bytes(CLEARHEAD_TEST_DATA "/peer.safetensors"));
}

TEST(CountNonFinite, CountsInEveryFloatingType) {
  Tensor values({6});
  const float infinity = std::numeric_limits<float>::infinity();
  const std::array<float, 6> some{1, -infinity, NAN, infinity, 0, -NAN};
  std::ranges::copy(some, values.as<float>().begin());
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    EXPECT_EQ(count_non_finite(tensor::to_dtype(values, dtype)), (NonFinite{2, 2})) << tensor::name_of(dtype);
  }
  Tensor bytes(DType::u8, {4});
  std::ranges::fill(bytes.as<uint8_t>(), uint8_t{255});
  EXPECT_EQ(count_non_finite(bytes), (NonFinite{0, 0}));
  EXPECT_EQ(count_non_finite(tensor::TensorView()), (NonFinite{0, 0}));
}

TEST(SafetensorsOutput, WritesPieceByPieceTheFileThatIsWrittenInOne) {
  const tests::TemporaryFolder folder;
  tensor::Tensor floats({2, 3}), more({4});
  tensor::Tensor bytes(tensor::DType::u8, {5});
  for (size_t i = 0; i < 6; ++i) floats.as<float>()[i] = static_cast<float>(i);
  const std::vector<NamedTensor> named = {{"bytes", bytes}, {"floats", floats}, {"more", more}};
  write_safetensors(folder / "one", named, {{"key", "value"}});
  const std::vector<PlannedTensor> planned = {
      {"bytes", tensor::DType::u8, {5}}, {"floats", tensor::DType::f32, {2, 3}}, {"more", tensor::DType::f32, {4}}};
  SafetensorsOutput output(folder / "pieces", planned, {{"key", "value"}});
  output.write(1, 8, std::as_const(floats).bytes().subspan(8));
  output.write(1, 0, std::as_const(floats).bytes().first(8));
  output.commit();  // what nobody wrote is 0
  EXPECT_EQ(tests::read_bytes(folder / "pieces"), tests::read_bytes(folder / "one"));
  EXPECT_EQ(tests::error_text([&] { output.write(1, 20, std::as_const(floats).bytes().first(8)); }),
            "usage: [safetensors] expected bytes inside the 24 of a tensor; found 8 from 20 on");
}

}  // namespace
}  // namespace clearhead::format
