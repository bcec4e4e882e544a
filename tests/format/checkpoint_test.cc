// SPDX-License-Identifier: Apache-2.0
#include "clearhead/format/checkpoint.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "clearhead/tensor/compare.h"
#include "tests/format/safetensors_text.h"
#include "tests/support/temporary_folder.h"

namespace clearhead::format {
namespace {

namespace fs = std::filesystem;

using tests::error_text;
using tests::TemporaryFolder;
using tests::write_bytes;

tensor::Tensor filled(tensor::Shape shape, float value) {
  tensor::Tensor values(std::move(shape));
  for (float& each : values.as<float>()) each = value;
  return values;
}

void write_two(const fs::path& path, std::string_view first, std::string_view second, float value) {
  const tensor::Tensor a = filled({2, 2}, value), b = filled({3}, value + 1);
  write_safetensors(path, std::array<NamedTensor, 2>{{{std::string(first), a}, {std::string(second), b}}});
}

std::string complaint(const fs::path& path) {
  return error_text([&] { Checkpoint::open(path); });
}

TEST(Checkpoint, OfOneFile) {
  const TemporaryFolder folder;
  write_two(folder / "model.safetensors", "b", "a", 5);
  write_bytes(folder / "config.json", "{\"model_type\": \"bert\"}");
  write_bytes(folder / "tokenizer.json", "{}");
  for (const fs::path& path : {folder.path(), folder / "model.safetensors"}) {
    const auto checkpoint = Checkpoint::open(path);
    EXPECT_EQ(checkpoint.names(), (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(checkpoint.contains("a"));
    EXPECT_FALSE(checkpoint.contains("c"));
    EXPECT_EQ(checkpoint.view("b").as<float>()[3], 5.0f);
    EXPECT_EQ(checkpoint.entry("a").shape, tensor::Shape{3});
    EXPECT_EQ(checkpoint.folder(), folder.path());
    EXPECT_EQ(checkpoint.config_json(), "{\"model_type\": \"bert\"}");
    EXPECT_EQ(checkpoint.tokenizer_path(), folder / "tokenizer.json");
    EXPECT_EQ(checkpoint.total_bytes(), 28u);
    EXPECT_TRUE(checkpoint.warnings().empty());
  }
}

TEST(Checkpoint, OfAFileInTheWorkingFolder) {
  const TemporaryFolder folder;
  write_two(folder / "m.safetensors", "a", "b", 1);
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const auto checkpoint = Checkpoint::open("m.safetensors");
  fs::current_path(before);
  EXPECT_EQ(checkpoint.folder(), ".");
}

TEST(Checkpoint, OfShards) {
  const TemporaryFolder folder;
  write_two(folder / "one.safetensors", "a", "c", 1);
  write_two(folder / "two.safetensors", "b", "unlisted", 7);
  write_bytes(folder / "model.safetensors.index.json",
              R"({"metadata":{"total_size":1},"weight_map":{"c":"one.safetensors","b":"two.safetensors",)"
              R"("a":"one.safetensors"}})");
  auto opened = Checkpoint::open(folder.path());
  const Checkpoint checkpoint = std::move(opened);
  EXPECT_EQ(checkpoint.names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(checkpoint.view("a").as<float>()[0], 1.0f);
  EXPECT_EQ(checkpoint.view("b").as<float>()[0], 7.0f);
  EXPECT_EQ(checkpoint.view("c").as<float>()[0], 2.0f);
  EXPECT_FALSE(checkpoint.contains("unlisted"));
  EXPECT_EQ(checkpoint.total_bytes(), 44u);
  EXPECT_EQ(checkpoint.files(),
            (std::vector<std::filesystem::path>{folder / "one.safetensors", folder / "two.safetensors",
                                                folder / "model.safetensors.index.json"}));
  EXPECT_EQ(checkpoint.warnings(),
            (std::vector<std::string>{"\"" + (folder / "model.safetensors.index.json").string() +
                                      "\": 1 tensors of the files are not in the index and are ignored"}));
  checkpoint.release_pages(checkpoint.view("b").bytes());
  EXPECT_EQ(checkpoint.view("b").as<float>()[0], 7.0f);
}

TEST(Checkpoint, OneFileGoesBeforeShards) {
  const TemporaryFolder folder;
  write_two(folder / "model.safetensors", "a", "b", 1);
  write_bytes(folder / "model.safetensors.index.json", "not read");
  EXPECT_EQ(Checkpoint::open(folder.path()).names().size(), 2u);
}

TEST(Checkpoint, NamesATensorThatIsMissing) {
  const TemporaryFolder folder;
  write_two(folder / "model.safetensors", "a", "b", 1);
  const auto checkpoint = Checkpoint::open(folder.path());
  const std::string text =
      "[\"" + folder.path().string() + "\"] expected a tensor \"pooler.weight\"; found 2 tensors, none of that name";
  EXPECT_EQ(error_text([&] { checkpoint.view("pooler.weight"); }), text);
  EXPECT_EQ(error_text([&] { checkpoint.entry("pooler.weight"); }), text);
}

TEST(Checkpoint, NamesTheFileThatLacksATensorIfAFileWasOpened) {
  const TemporaryFolder folder;
  write_two(folder / "m.safetensors", "a", "b", 1);
  const std::string path = (folder / "m.safetensors").string();
  EXPECT_EQ(error_text([&] { Checkpoint::open(path).view("c"); }),
            "[\"" + path + "\"] expected a tensor \"c\"; found 2 tensors, none of that name");
}

TEST(Checkpoint, APartThatIsNamedAloneSaysSo) {
  const TemporaryFolder folder;
  const auto complaint_of = [&](const char* name) {
    write_two(folder / name, "a", "b", 1);
    return error_text([&] { Checkpoint::open(folder / name).view("c"); });
  };
  const std::string found = "] expected a tensor \"c\"; found 2 tensors, none of that name";
  const std::string part = complaint_of("m-00002-of-00003.safetensors");
  EXPECT_TRUE(
      part.ends_with(found + "; \"m-00002-of-00003.safetensors\" is one part of a split model: name its folder"))
      << part;
  for (const char* name : {"m-00001-of-00001.safetensors", "m-00002-to-00003.safetensors", "m.safetensors"}) {
    EXPECT_TRUE(complaint_of(name).ends_with(found)) << name;
  }
}

TEST(Checkpoint, FoldersWithoutParameters) {
  const TemporaryFolder folder;
  const std::string where = "[\"" + folder.path().string() + "\"]";
  EXPECT_EQ(complaint(folder.path()),
            where + " expected model.safetensors or model.safetensors.index.json; found neither");
  write_bytes(folder / "pytorch_model.bin", "x");
  EXPECT_EQ(complaint(folder.path()),
            where +
                " expected model.safetensors or model.safetensors.index.json; found only \"pytorch_model.bin\"; save "
                "the model in the safetensors format; files that run code when read are not opened");
}

TEST(Checkpoint, FilesOfOtherKinds) {
  const TemporaryFolder folder;
  write_bytes(folder / "m.gguf", "GGUF");
  write_bytes(folder / "m.bin", "x");
  const auto where = [&](const char* name) { return "[\"" + (folder / name).string() + "\"]"; };
  EXPECT_EQ(complaint(folder / "m.gguf"), where("m.gguf") +
                                              " expected a GGUF file of at least 24 bytes; found 4 bytes; "
                                              "the file is empty or was cut off");
  EXPECT_EQ(complaint(folder / "m.bin"),
            where("m.bin") + " expected a folder or a .safetensors or .gguf file; found a file of another name");
  EXPECT_EQ(complaint(folder / "none"), where("none") + " expected a folder or file with a model; found nothing there");
}

TEST(Checkpoint, FoldersWithoutConfigOrTokenizer) {
  const TemporaryFolder folder;
  write_two(folder / "model.safetensors", "a", "b", 1);
  const auto checkpoint = Checkpoint::open(folder.path());
  const std::string where = "[\"" + folder.path().string() + "\"]";
  EXPECT_EQ(error_text([&] { checkpoint.config_json(); }),
            where +
                " expected config.json beside the parameters; found none; it says how the model is built and comes "
                "with the model");
  EXPECT_EQ(error_text([&] { checkpoint.tokenizer_path(); }),
            where + " expected tokenizer.json beside the parameters; found none; it comes with the model");
}

TEST(Checkpoint, ConfigThatIsTooLarge) {
  const TemporaryFolder folder;
  write_two(folder / "model.safetensors", "a", "b", 1);
  write_bytes(folder / "config.json", "");
  fs::resize_file(folder / "config.json", Checkpoint::kMaxConfigBytes + 1);
  const std::string text = error_text([&] { Checkpoint::open(folder.path()).config_json(); });
  EXPECT_NE(text.find("expected at most 16000000 bytes; found 16000001 bytes"), std::string::npos) << text;
}

class HostileIndex : public testing::Test {
 protected:
  // What opening a folder with that index complains of, without the path.
  std::string complaint_of(std::string_view index) {
    write_two(folder_ / "one.safetensors", "a", "b", 1);
    write_bytes(folder_ / "model.safetensors.index.json", index);
    const std::string text = complaint(folder_.path());
    const std::string path = (folder_ / "model.safetensors.index.json").string();
    const size_t at = text.find(path);
    return at == std::string::npos ? text : text.substr(0, at) + "index" + text.substr(at + path.size());
  }
  TemporaryFolder folder_;
};

TEST_F(HostileIndex, ThatIsNoIndex) {
  EXPECT_EQ(complaint_of("{"), "[\"index\"] expected JSON; found a mistake at byte 2; the file is damaged");
  for (const char* text : {"[]", "{}", "{\"weight_map\":[]}", "3"}) {
    EXPECT_EQ(complaint_of(text), "[\"index\"] expected an object with a weight_map; found none");
  }
  EXPECT_EQ(complaint_of("{\"weight_map\":{}}"),
            "[\"index\"] expected a weight_map that names tensors; found an empty one");
  EXPECT_EQ(complaint_of(std::string(1'000'000, '[')),
            "[\"index\"] expected JSON nested at most 16 deep; found deeper");
}

TEST_F(HostileIndex, ThatNamesFilesElsewhere) {
  for (const char* name : {"../one.safetensors", "/etc/passwd", "..", ".", "", "a/b", "a\\\\b"}) {
    const std::string text = complaint_of(std::string(R"({"weight_map":{"a":")") + name + "\"}}");
    EXPECT_EQ(text.find("[\"index\", tensor \"a\"] expected the plain name of a file in the same folder; found \""), 0u)
        << text;
  }
  EXPECT_EQ(complaint_of(R"({"weight_map":{"a":"one.safetensors\u0000"}})"),
            "[\"index\", tensor \"a\"] expected the plain name of a file in the same folder; found "
            "\"one.safetensors\\x00\"");
  EXPECT_EQ(complaint_of(R"({"weight_map":{"a":1}})"),
            "[\"index\", tensor \"a\"] expected the name of a file; found something that is no string");
}

TEST_F(HostileIndex, ThatNamesATensorTwice) {
  EXPECT_EQ(complaint_of(R"({"weight_map":{"a":"one.safetensors","a":"two.safetensors"}})"),
            "[\"index\"] expected each key once; found \"a\" again");
}

TEST_F(HostileIndex, ThatDoesNotBelongToItsFiles) {
  EXPECT_EQ(
      complaint_of(R"({"weight_map":{"a":"one.safetensors","c":"one.safetensors"}})"),
      "[\"index\", tensor \"c\"] expected it in \"one.safetensors\"; found no tensor of that name there; the index "
      "and its files do not belong together");
}

TEST_F(HostileIndex, OfWhichFilesAreMissing) {
  EXPECT_EQ(
      complaint_of(R"({"weight_map":{"a":"one.safetensors","c":"two.safetensors","d":"two.safetensors"}})"),
      "[\"index\"] expected the 2 files it names beside it; found 1 missing, \"two.safetensors\"; bring all files "
      "of the model into one folder");
  std::filesystem::create_symlink("nowhere", folder_ / "two.safetensors");  // as an unfinished download leaves one
  EXPECT_EQ(complaint_of(R"({"weight_map":{"a":"one.safetensors","c":"two.safetensors","d":"three.safetensors"}})"),
            "[\"index\"] expected the 3 files it names beside it; found 2 missing, the first \"three.safetensors\"; "
            "bring all files of the model into one folder");
}

}  // namespace
}  // namespace clearhead::format
