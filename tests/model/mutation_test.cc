// SPDX-License-Identifier: Apache-2.0
// Headers of real model files, and whole small models, changed a thousand times: each is refused or runs.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "clearhead/format/gguf_header.h"
#include "clearhead/format/safetensors_header.h"
#include "clearhead/model/families/family.h"
#include "tests/model/gguf_twin.h"
#include "tests/model/header_mutations.h"
#include "tests/support/error_text.h"
#include "tests/support/model_folder.h"
#include "tests/support/temporary_folder.h"

namespace clearhead::model {
namespace {

namespace fs = std::filesystem;

using namespace mutations;

void expect_safetensors(const fs::path& folder) {
  const tests::TemporaryFolder copy;
  fs::copy_file(folder / "config.json", copy / "config.json");
  const base::MappedFile file(folder / "model.safetensors");
  const size_t header = format::parse_safetensors_header(file.bytes(), "m").data_begin;
  expect_refused_or_read(folder / "model.safetensors", header, copy / "model.safetensors", copy.path());
}

TEST(Mutations, OfTheHeaderOfMinilm) { expect_safetensors(tests::minilm_folder()); }

TEST(Mutations, OfTheHeaderOfE5) { expect_safetensors(tests::e5_folder()); }

TEST(Mutations, OfTheHeaderOfSmollm2) { expect_gguf(tests::smollm2_file()); }

// A scale that is no number would make every weight behind it none.
TEST(Mutations, AScaleThatIsNoNumberIsNamed) {
  const tests::TemporaryFolder folder;
  const base::MappedFile file(tests::smollm2_file());
  const format::GgufHeader header = format::parse_gguf_header(file.bytes(), "m");
  const format::TensorEntry& entry = *header.find("blk.3.attn_q.weight");
  const tests::SparseCopy sparse(tests::smollm2_file(), folder / "m.gguf", header.data_begin);
  const auto load = [&] {
    load_model(std::make_shared<const format::Checkpoint>(format::Checkpoint::open(folder / "m.gguf")));
  };
  {
    std::fstream copy(folder / "m.gguf", std::ios::binary | std::ios::out | std::ios::in);
    copy.seekp(static_cast<std::streamoff>(header.data_begin + entry.begin)).write("\x01\x7e", 2);  // NaN as F16
  }
  EXPECT_EQ(tests::error_text(load),
            "[" + base::quoted((folder / "m.gguf").string(), 400) +
                "] expected \"blk.3.attn_q.weight\" with scales that are numbers; found another in block 0; the "
                "file is damaged");
}

// Small models of random parameters go the whole way each time.
TEST(Mutations, OfHeadersAndConfigsOfSmallModels) {
  const fs::path data(CLEARHEAD_TEST_DATA);
  std::mt19937 random(20268);
  size_t opened = 0;
  for (const char* name : {"gpt2", "roberta", "distilbert", "decoders/llama", "decoders/llama_longrope",
                           "decoders/qwen2", "decoders/gemma3", "decoders/gpt_neox"}) {
    const tests::TemporaryFolder folder;
    const std::string config = tests::read_bytes(data / name / "config.json");
    const std::string model = tests::read_bytes(data / name / "model.safetensors");
    for (size_t i = 0; i < kMutations / 8; ++i) {
      std::string changed = i % 4 == 0 ? model : config;
      tests::mutate(changed, random);
      write_anew(folder / "config.json", i % 4 == 0 ? config : changed);
      write_anew(folder / "model.safetensors", i % 4 == 0 ? changed : model);
      opened += open(folder.path(), true);
    }
  }
  EXPECT_GT(opened, kMutations / 4);
}

TEST(Mutations, OfSmallGgufs) {
  constexpr size_t kHeader = 2048;  // about; the rest is numbers
  const tests::TemporaryFolder folder;
  const std::vector<std::string> files = {tests::read_bytes(fs::path(CLEARHEAD_TEST_DATA) / "decoders" / "llama.gguf"),
                                          twin::bert(twin::Hub("roberta")).bytes(),
                                          twin::gpt2(twin::Hub("gpt2")).bytes(),
                                          twin::gpt_neox(twin::Hub("decoders/gpt_neox")).bytes(),
                                          twin::gated(twin::Hub("decoders/gemma3"), "gemma3").bytes()};
  std::mt19937 random(20269);
  size_t opened = 0;
  for (size_t i = 0; i < kMutations; ++i) {
    const std::string& whole = files[i % files.size()];
    const size_t part = i % 2 == 0 ? kHeader : whole.size();
    std::string text = whole.substr(0, part);
    tests::mutate(text, random);
    text += whole.substr(part);
    if (i % 8 == 7) text.resize(random() % text.size());
    write_anew(folder / "m.gguf", text);
    opened += open(folder / "m.gguf", true);
  }
  EXPECT_GT(opened, kMutations / 10);
}

}  // namespace
}  // namespace clearhead::model
