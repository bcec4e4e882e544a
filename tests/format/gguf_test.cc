// SPDX-License-Identifier: Apache-2.0
#include "clearhead/format/gguf.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "clearhead/format/checkpoint.h"
#include "tests/format/gguf_bytes.h"
#include "tests/support/temporary_folder.h"

namespace clearhead::format {
namespace {

using tests::error_text;
using tests::gguf_string;
using tests::GgufBytes;
using tests::le;
using tests::read_gguf;
using tests::TemporaryFolder;

// Two tensors, one of floats [2, 3] and one of a block, and some metadata.
GgufBytes small() {
  GgufBytes file;
  file.word("general.architecture", "llama").u32("llama.block_count", 2);
  file.array("tokenizer.ggml.tokens", 8, 3, gguf_string("a") + gguf_string("") + gguf_string("bc"));
  file.tensor("x", {3, 2}, 0, 0).tensor("y", {32}, 2, 32);
  for (int i = 0; i < 6; ++i) file.data += le(static_cast<float>(i));
  file.data.resize(32);
  file.data += std::string("\x00\x3c", 2) + std::string(16, '\x21');  // d = 1, low 1 and high 2
  return file;
}

TEST(Gguf, TensorsAreReadWhereTheyStand) {
  const GgufFile file = read_gguf(small().text());
  EXPECT_EQ(file.entries().size(), 2U);
  EXPECT_EQ(file.entry("x").shape, (tensor::Shape{2, 3}));
  EXPECT_EQ(file.entry("x").dtype_name, "F32");
  std::vector<float> values(6);
  tensor::copy_to_float(file.view("x"), values);
  EXPECT_EQ(values, (std::vector<float>{0, 1, 2, 3, 4, 5}));
  const tensor::BlockView blocks = file.blocks("y");
  EXPECT_EQ(blocks.type, tensor::BlockType::q4_0);
  std::vector<float> decoded(32);
  tensor::decode_blocks(blocks.type, blocks.bytes, decoded);
  EXPECT_EQ(decoded[0], 1 - 8);
  EXPECT_EQ(decoded[16], 2 - 8);
  EXPECT_EQ(error_text([&] { file.view("y"); }),
            "[\"m\", tensor \"y\"] expected one of the types F32, F16, BF16; found Q4_0");
  EXPECT_EQ(error_text([&] { file.blocks("x"); }), "[\"m\", tensor \"x\"] expected a type of blocks; found F32");
  EXPECT_EQ(error_text([&] { file.view("z"); }), "[\"m\"] expected a tensor \"z\"; found 2 tensors, none of that name");
}

TEST(Gguf, VersionTwoIsReadLikeVersionThree) {
  GgufBytes file = small();
  file.version = 2;
  EXPECT_EQ(read_gguf(file.text()).entries().size(), 2U);
}

TEST(Gguf, NumbersAreTakenFromEveryTypeThatHoldsThem) {
  GgufBytes bytes;
  bytes.value("u8", 0, le(uint8_t{200})).value("i8", 1, le(int8_t{-2})).value("u16", 2, le(uint16_t{60'000}));
  bytes.value("i16", 3, le(int16_t{-3})).u32("u32", 4'000'000'000).value("i32", 5, le(int32_t{-4}));
  bytes.value("f32", 6, le(0.5f)).value("bool", 7, le(true)).value("u64", 10, le(uint64_t{1} << 40));
  bytes.value("i64", 11, le(int64_t{-5})).value("f64", 12, le(0.25)).value("wide", 10, le(uint64_t{1} << 63));
  bytes.value("nan", 6, le(std::nanf(""))).u32("one", 1).word("word", "text");
  bytes.value("whole", 6, le(2.0f)).value("far", 12, le(-1e300));
  bytes.array("i32s", 5, 2, le(int32_t{7}) + le(int32_t{-8})).array("f32s", 6, 1, le(1.5f));
  bytes.array("bools", 7, 2, le(true) + le(false));
  const GgufFile file = read_gguf(bytes.text());
  const GgufMetadata& metadata = file.metadata();
  EXPECT_EQ(metadata.count("u8"), 200U);
  EXPECT_EQ(metadata.count("u16"), 60'000U);
  EXPECT_EQ(metadata.count("u32"), 4'000'000'000U);
  EXPECT_EQ(metadata.count("u64"), size_t{1} << 40);
  EXPECT_EQ(metadata.find_number("i8"), -2);
  EXPECT_EQ(metadata.find_number("i16"), -3);
  EXPECT_EQ(metadata.find_number("f32"), 0.5);
  EXPECT_EQ(metadata.find_number("f64"), 0.25);
  EXPECT_EQ(metadata.find_flag("bool"), true);
  EXPECT_EQ(metadata.find_flag("one"), true);
  EXPECT_EQ(metadata.find_flags("bools"), (std::vector<bool>{true, false}));
  EXPECT_FALSE(metadata.find_flags("none"));
  EXPECT_TRUE(metadata.is_array("bools"));
  EXPECT_FALSE(metadata.is_array("bool"));
  EXPECT_FALSE(metadata.is_array("none"));
  EXPECT_EQ(metadata.find_integers("i32s"), (std::vector<int64_t>{7, -8}));
  EXPECT_EQ(metadata.find_integers("i64"), (std::vector<int64_t>{-5}));
  EXPECT_EQ(metadata.find_numbers("f32s"), (std::vector<float>{1.5f}));
  EXPECT_EQ(metadata.find_count("absent"), std::nullopt);

  const auto complaint = [](const auto& action) { return error_text(action); };
  const std::string expected = "[\"m\"] expected ";
  EXPECT_EQ(complaint([&] { metadata.count("i8"); }), expected + "\"i8\" with an integer from 0 to 2^63 - 1; found -2");
  EXPECT_EQ(complaint([&] { metadata.count("wide"); }),
            expected + "\"wide\" with an integer from 0 to 2^63 - 1; found 9223372036854775808");
  EXPECT_EQ(complaint([&] { metadata.count("f32"); }),
            expected + "\"f32\" with an integer from 0 to 2^63 - 1; found 0.5");
  EXPECT_EQ(complaint([&] { metadata.count("whole"); }),
            expected + "\"whole\" with an integer from 0 to 2^63 - 1; found 2.0");
  EXPECT_EQ(complaint([&] { metadata.count("far"); }),
            expected + "\"far\" with an integer from 0 to 2^63 - 1; found -1e+300");
  EXPECT_EQ(complaint([&] { metadata.count("i32s"); }),
            expected + "\"i32s\" with an integer from 0 to 2^63 - 1; found an array of 2 i32");
  EXPECT_EQ(complaint([&] { metadata.find_number("nan"); }), expected + "\"nan\" with a finite number; found nan");
  EXPECT_EQ(complaint([&] { metadata.find_flag("u8"); }), expected + "\"u8\" with true or false; found 200");
  EXPECT_EQ(complaint([&] { metadata.find_flags("i32s"); }),
            expected + "\"i32s\" with an array of true and false; found an array of 2 i32");
  EXPECT_EQ(complaint([&] { metadata.find_flags("bool"); }),
            expected + "\"bool\" with an array of true and false; found true");
  EXPECT_EQ(complaint([&] { metadata.word("one"); }), expected + "\"one\" with a string; found 1");
  EXPECT_EQ(complaint([&] { metadata.find_words("word"); }),
            expected + "\"word\" with an array of strings; found \"text\"");
  EXPECT_EQ(complaint([&] { metadata.find_numbers("i32s"); }),
            expected + "\"i32s\" with an array of f32; found an array of 2 i32");
  EXPECT_EQ(complaint([&] { metadata.find_integers("f32s"); }),
            expected + "\"f32s\" with integers; found an array of 1 f32");
  EXPECT_EQ(complaint([&] { metadata.count("absent"); }), expected + "\"absent\" in the metadata; found none");
}

TEST(Gguf, ArraysOfStrings) {
  const GgufFile file = read_gguf(small().text());
  EXPECT_EQ(file.metadata().find_words("tokenizer.ggml.tokens"), (std::vector<std::string_view>{"a", "", "bc"}));
}

// Part no of count with one tensor.
GgufBytes part(uint16_t no, uint16_t count, const std::string& tensor) {
  GgufBytes file;
  file.u16("split.no", no).u16("split.count", count).value("split.tensors.count", 5, le(int32_t{2}));
  file.tensor(tensor, {1}, 0, 0).data = le(static_cast<float>(no + 1));
  return file;
}

TEST(Gguf, APartedModelIsOne) {
  const TemporaryFolder folder;
  tests::write_bytes(folder / "m-00001-of-00002.gguf", part(0, 2, "b").word("general.name", "x").text());
  tests::write_bytes(folder / "m-00002-of-00002.gguf", part(1, 2, "a").text());
  const Checkpoint checkpoint = Checkpoint::open(folder / "m-00001-of-00002.gguf");
  EXPECT_EQ(checkpoint.names(), (std::vector<std::string>{"a", "b"}));
  ASSERT_NE(checkpoint.gguf_metadata(), nullptr);
  EXPECT_EQ(checkpoint.gguf_metadata()->word("general.name"), "x");
  std::array<float, 1> value;
  tensor::copy_to_float(checkpoint.view("a"), value);
  EXPECT_EQ(value[0], 2);
  EXPECT_EQ(checkpoint.total_bytes(), 8U);
  EXPECT_EQ(checkpoint.files(),
            (std::vector<std::filesystem::path>{folder / "m-00001-of-00002.gguf", folder / "m-00002-of-00002.gguf"}));
  EXPECT_NE(error_text([&] { checkpoint.blocks("a"); }).find("expected a type of blocks; found F32"),
            std::string::npos);
}

TEST(Gguf, PartsThatDoNotBelongTogether) {
  const TemporaryFolder folder;
  const auto first = folder / "m-00001-of-00002.gguf", second = folder / "m-00002-of-00002.gguf";
  const auto complaint = [&](const std::filesystem::path& path) { return error_text([&] { open_gguf_parts(path); }); };
  const auto where = [](const std::filesystem::path& path) { return "[\"" + path.string() + "\"] "; };
  tests::write_bytes(first, part(0, 2, "b").text());
  EXPECT_EQ(complaint(first), where(first) +
                                  "expected part 2 of its 2 parts beside it, \"m-00002-of-00002.gguf\"; found no file "
                                  "of that name; bring all parts of the model into one folder");
  tests::write_bytes(second, part(1, 3, "a").text());
  EXPECT_EQ(complaint(first),
            where(second) + "expected part 2 of 2; found part 2 of 3; the files do not belong together");
  tests::write_bytes(second, part(0, 2, "a").text());
  EXPECT_EQ(complaint(first),
            where(second) + "expected part 2 of 2; found part 1 of 2; the files do not belong together");
  tests::write_bytes(second, part(1, 2, "b").text());
  EXPECT_EQ(complaint(first), "[\"" + first.string() + "\", tensor \"b\"] expected it in one part; found it in two");
  EXPECT_EQ(complaint(second), where(second) +
                                   "expected the first part of a split model, which has its metadata; found part 2; "
                                   "name the file that ends in -00001-of-00002.gguf");
  GgufBytes more = part(1, 2, "a");
  more.tensor("c", {0}, 0, 32).data.resize(32);
  tests::write_bytes(second, more.text());
  EXPECT_EQ(complaint(first),
            where(first) + "expected 2 tensors in all parts together; found 3; the files do not belong together");
  tests::write_bytes(folder / "other.gguf", part(0, 2, "b").text());
  EXPECT_EQ(complaint(folder / "other.gguf"),
            where(folder / "other.gguf") +
                "expected a name that ends in -00001-of-00002.gguf, as the first of 2 parts has; found another name; "
                "the others are found by their names");
  tests::write_bytes(folder / "many.gguf", part(0, 5000, "b").text());
  EXPECT_EQ(complaint(folder / "many.gguf"), where(folder / "many.gguf") + "expected at most 4096 parts; found 5000");
}

// Whatever happens to a header, it is refused or every tensor lies in the file.
TEST(Gguf, AThousandMutationsAreRefusedOrRead) {
  const std::string whole = small().text();
  std::mt19937 random(20265);
  size_t read = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text = whole;
    const size_t changes = 1 + random() % 3;
    for (size_t change = 0; change < changes; ++change) {
      const size_t at = random() % text.size();
      if (random() % 4 == 0) {
        const uint64_t telling[] = {0, 1, 0x7fffffffffffffff, 0x8000000000000000, ~uint64_t{0}};
        std::memcpy(text.data() + std::min(at, text.size() - 8), &telling[random() % 5], 8);
      } else {
        text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
      }
    }
    if (random() % 8 == 0) text.resize(random() % text.size());
    try {
      const GgufFile file = read_gguf(text);
      for (const TensorEntry& entry : file.entries()) {
        const auto bytes = entry.dtype ? file.view(entry.name).bytes() : file.blocks(entry.name).bytes;
        ASSERT_EQ(bytes.size(), entry.bytes());
      }
      for (const auto& [key, value] : file.metadata().values()) ASSERT_FALSE(value.text().empty());
      ++read;
    } catch (const base::Error&) {
    }
  }
  EXPECT_GT(read, 400U);  // of 4000: those whose change hit a value or the data
}

}  // namespace
}  // namespace clearhead::format
