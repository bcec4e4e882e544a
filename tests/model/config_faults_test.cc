// SPDX-License-Identifier: Apache-2.0
// Settings of published configs that engines have misread: windows of nothing and beyond the text, dropout.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "clearhead/model/families/family.h"
#include "tests/support/error_text.h"
#include "tests/support/stage_collector.h"
#include "tests/support/temporary_folder.h"

namespace clearhead::model {
namespace {

using capture::Stage;
using nlohmann::json;
using tests::error_text;

const std::filesystem::path kData = CLEARHEAD_TEST_DATA;
const std::vector<int64_t> kIds = {1, 5, 9, 3, 7, 2, 4, 8, 6, 11, 10, 12};

// A committed model with another config.
class Changed {
 public:
  Changed(const std::filesystem::path& model, const json& settings) {
    std::filesystem::copy(model, folder_.path(), std::filesystem::copy_options::recursive);
    json config = json::parse(std::ifstream(model / "config.json"));
    config.update(settings);
    tests::write_bytes(folder_ / "config.json", config.dump());
  }

  LoadedModel load() const {
    return load_model(std::make_shared<const format::Checkpoint>(format::Checkpoint::open(folder_.path())));
  }

 private:
  tests::TemporaryFolder folder_;
};

std::vector<float> hidden_of(const LoadedModel& model) {
  const std::vector<int64_t> types(kIds.size(), 0);
  const bool typed = model.transformer.parameters().token_type_embedding.rows() != 0;
  ModelInput input{kIds, typed ? std::span(types) : std::span<const int64_t>()};
  std::vector<float> pixels;
  if (const auto& patches = model.transformer.config().patches) {
    pixels.resize(patches->image_values());
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % 7) / 4 - 1;
    input = {.ids = {}, .type_ids = {}, .pixels = pixels};
  }
  const tensor::Tensor hidden = model.transformer.run(input);
  return {hidden.as<float>().begin(), hidden.as<float>().end()};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Models with windows, and what switches them on.
struct Windowed {
  const char* name;
  json settings;
  size_t layer;  // one that has the window
};

std::vector<Windowed> windowed() {
  return {{"mistral", json::object(), 0},
          {"qwen2", {{"use_sliding_window", true}}, 1},
          {"gemma2", json::object(), 0},
          {"gemma3", json::object(), 0}};
}

json with(json settings, const json& window) {
  settings["sliding_window"] = window;
  return settings;
}

TEST(SlidingWindow, OfNothingIsAnErrorInEveryFamily) {
  for (const Windowed& one : windowed()) {
    const Changed model(kData / "decoders" / one.name, with(one.settings, 0));
    EXPECT_NE(error_text([&] { model.load(); }).find("expected sliding_window of 1 or more, or none; found 0"),
              std::string::npos)
        << one.name;
  }
}

TEST(SlidingWindow, CountsTheQueryItselfInEveryFamily) {
  for (const Windowed& one : windowed()) {
    for (const size_t window : {1, 3, 4}) {
      SCOPED_TRACE(testing::Message() << one.name << ", window " << window);
      const LoadedModel model = Changed(kData / "decoders" / one.name, with(one.settings, window)).load();
      tests::StageCollector seen({Stage::weights});
      model.transformer.run({kIds, {}}, &seen);
      const std::span<const float> weights = seen.get(Stage::weights, one.layer).as<float>();
      for (size_t query = 0; query < kIds.size(); ++query) {
        for (size_t key = 0; key < kIds.size(); ++key) {
          const bool inside = key <= query && query - key < window;
          EXPECT_EQ(weights[query * kIds.size() + key] > 0, inside) << query << " sees " << key;
        }
      }
    }
  }
}

TEST(SlidingWindow, LongerThanTheTextOrNullSeesAll) {
  for (const Windowed& one : windowed()) {
    SCOPED_TRACE(one.name);
    const auto run = [&](const json& window) {
      return hidden_of(Changed(kData / "decoders" / one.name, with(one.settings, window)).load());
    };
    const std::vector<float> whole = run(kIds.size() + 10);
    EXPECT_TRUE(same_bits(run(kIds.size()), whole));
    EXPECT_FALSE(same_bits(run(3), whole));
    if (one.name == std::string("mistral")) {
      EXPECT_TRUE(same_bits(run(nullptr), whole));
    }
  }
}

// Every setting whose name speaks of dropout, in every committed model.
TEST(Dropout, InAConfigHasNoEffect) {
  size_t models = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kData)) {
    if (entry.path().filename() != "config.json") continue;
    SCOPED_TRACE(entry.path().string());
    json config = json::parse(std::ifstream(entry.path())), settings = json::object();
    for (const auto& [key, value] : config.items()) {
      if (key.find("drop") != std::string::npos && value.is_number()) settings[key] = 0.9;
    }
    EXPECT_FALSE(settings.empty());
    const LoadedModel plain = Changed(entry.path().parent_path(), json::object()).load();
    const LoadedModel dropping = Changed(entry.path().parent_path(), settings).load();
    const std::vector<float> expected = hidden_of(plain);
    EXPECT_TRUE(same_bits(hidden_of(dropping), expected));
    EXPECT_TRUE(same_bits(hidden_of(dropping), expected)) << "the second run";
    ++models;
  }
  EXPECT_GE(models, 18u);
}

}  // namespace
}  // namespace clearhead::model
