// SPDX-License-Identifier: Apache-2.0
#include "clearhead/format/known_models.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/format/environment.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace clearhead::format {
namespace {

namespace fs = std::filesystem;

using tests::error_text;
using tests::TemporaryFolder;
using tests::write_bytes;

// A model home and a hub cache of its own, both empty.
class Models : public testing::Test {
 protected:
  Models() {
    environment_.set("CLEARHEAD_HOME", (folder_ / "home").string());
    environment_.set("HF_HUB_CACHE", (folder_ / "hub").string());
  }

  // Lays a model where the fetch lays it.
  void lay(const KnownModel& model, std::string_view sha256) {
    const fs::path place = folder_ / "home" / "models" / model.name;
    fs::create_directories(place);
    write_bytes(place / model.main_file, "x");
    write_bytes(place / ".complete", fmt::format(R"({{"name":"{}","sha256":["{}"]}})", model.name, sha256));
  }

  static std::string complaint(std::string_view name) {
    return error_text([&] { resolve_model(name); });
  }

  TemporaryFolder folder_;
  tests::Environment environment_;
};

TEST_F(Models, TableIsWhole) {
  std::set<std::string> names;
  for (const KnownModel& model : known_models()) {
    names.insert(model.name);
    EXPECT_FALSE(model.description.empty());
    EXPECT_FALSE(model.license.empty());
    EXPECT_FALSE(model.main_file.empty());
    EXPECT_EQ(model.num_heads % model.num_kv_heads, 0u);
    EXPECT_GT(model.download_megabytes(), 0u);
    EXPECT_EQ(model.needs_license_acceptance, !model.terms.empty());
    for (const Wheel& wheel : model.wheels) {
      EXPECT_EQ(wheel.sha256.size(), 64u);
      EXPECT_TRUE(std::ranges::all_of(wheel.sha256, [](char c) { return std::isxdigit(c) != 0; }));
      EXPECT_FALSE(wheel.version.empty());
    }
  }
  EXPECT_EQ(names, (std::set<std::string>{"gemma-3-270m", "minilm", "multilingual-e5-small", "smollm2-135m-instruct"}));
  EXPECT_EQ(find_known_model("minilm")->num_layers, 6u);
  EXPECT_EQ(find_known_model("gemma-3-270m")->wheels.size(), 4u);
  EXPECT_EQ(find_known_model("MiniLM"), nullptr);
}

TEST_F(Models, HomeFollowsTheVariables) {
  EXPECT_EQ(model_home(), folder_ / "home");
  environment_.set("CLEARHEAD_HOME", "");
  environment_.set("XDG_CACHE_HOME", "/xdg");
  EXPECT_EQ(model_home(), "/xdg/clearhead");
  environment_.set("XDG_CACHE_HOME", std::nullopt);
  environment_.set("HOME", "/home/u");
  EXPECT_EQ(model_home(), "/home/u/.cache/clearhead");
  environment_.set("HOME", std::nullopt);
  EXPECT_EQ(error_text([] { model_home(); }),
            "[models] expected a folder for models; found none of CLEARHEAD_HOME, XDG_CACHE_HOME and HOME set; set "
            "CLEARHEAD_HOME");
}

TEST_F(Models, IsPresentOnlyWhenCompleteAndFromTheWheelOfTheTable) {
  const KnownModel& minilm = *find_known_model("minilm");
  const fs::path place = folder_ / "home/models/minilm";
  EXPECT_FALSE(present(minilm));
  lay(minilm, minilm.wheels[0].sha256);
  EXPECT_EQ(present(minilm), place);
  EXPECT_EQ(resolve_model("minilm").path, place);
  EXPECT_EQ(resolve_model("minilm").display_name, "minilm");

  write_bytes(place / ".complete", "not JSON");
  EXPECT_FALSE(present(minilm));
  write_bytes(place / ".complete", "[]");
  EXPECT_FALSE(present(minilm));
  lay(minilm, std::string(64, '0'));
  EXPECT_FALSE(present(minilm));
  lay(minilm, minilm.wheels[0].sha256);
  fs::remove(place / "model.safetensors");
  EXPECT_FALSE(present(minilm));
  lay(minilm, minilm.wheels[0].sha256);
  fs::remove(place / ".complete");
  EXPECT_FALSE(present(minilm));
}

TEST_F(Models, OfOneFileAreThatFile) {
  const KnownModel& smollm = *find_known_model("smollm2-135m-instruct");
  lay(smollm, smollm.wheels[0].sha256);
  EXPECT_EQ(resolve_model(smollm.name).path,
            folder_ / "home/models/smollm2-135m-instruct/SmolLM2-135M-Instruct.Q4_1.gguf");
}

TEST_F(Models, KnownButAbsent) {
  EXPECT_EQ(complaint("minilm"), "[model \"minilm\"] expected a fetched model; found none at \"" +
                                     (folder_ / "home/models/minilm").string() +
                                     "\"; fetch it with: clearhead fetch minilm");
  EXPECT_EQ(complaint("gemma-3-270m").substr(complaint("gemma-3-270m").rfind(';')),
            "; fetch it with: clearhead fetch gemma-3-270m --accept-license");
}

TEST_F(Models, ByPath) {
  fs::create_directories(folder_ / "my-model");
  const std::string path = (folder_ / "my-model").string();
  EXPECT_EQ(complaint(path),
            "[model \"" + path +
                "\"] expected a folder with config.json and model.safetensors; found a folder without config.json");
  write_bytes(folder_ / "my-model/config.json", "{}");
  EXPECT_EQ(resolve_model(path).path, path);
  EXPECT_EQ(resolve_model(path).display_name, "my-model");
  EXPECT_EQ(resolve_model(path + "/").display_name, "my-model");
  write_bytes(folder_ / "m.safetensors", "");
  write_bytes(folder_ / "m.gguf", "");
  EXPECT_EQ(resolve_model((folder_ / "m.safetensors").string()).display_name, "m");
  EXPECT_EQ(resolve_model((folder_ / "m.gguf").string()).path, folder_ / "m.gguf");
  write_bytes(folder_ / "m.txt", "");
  EXPECT_EQ(
      complaint((folder_ / "m.txt").string()),
      "[model \"" + (folder_ / "m.txt").string() +
          "\"] expected a .safetensors or .gguf file, or a folder with config.json; found a file of another name");
}

TEST_F(Models, InTheHubCache) {
  const std::string commit(40, '1');
  const fs::path repository = folder_ / "hub/models--org--name";
  fs::create_directories(repository / "snapshots" / commit);
  fs::create_directories(repository / "refs");
  write_bytes(repository / "refs/main", commit);
  EXPECT_EQ(resolve_model("org/name").path, repository / "snapshots" / commit);
  EXPECT_EQ(resolve_model("org/name@" + commit).display_name, "org/name");
  EXPECT_EQ(
      complaint("org/name@v2"),
      "[model \"org/name@v2\"] expected a known model, a folder with config.json, a .safetensors or .gguf file, or "
      "org/name in the hub cache; found no known model and no file or folder of that name, nor \"org/name\" at "
      "revision \"v2\" in the hub cache \"" +
          (folder_ / "hub").string() +
          "\"; known models are minilm, multilingual-e5-small, smollm2-135m-instruct, gemma-3-270m");
}

TEST_F(Models, NearNames) {
  const auto advice = [](std::string_view name) {
    const std::string text = complaint(name);
    return text.substr(text.rfind("; ") + 2);
  };
  EXPECT_EQ(advice("minlm"), "did you mean minilm");
  EXPECT_EQ(advice("gemma"), "did you mean gemma-3-270m");
  EXPECT_EQ(advice("e5-small"), "did you mean multilingual-e5-small");
  EXPECT_EQ(advice(""), "known models are minilm, multilingual-e5-small, smollm2-135m-instruct, gemma-3-270m");
  EXPECT_EQ(advice(std::string(100'000, 'm')),
            "known models are minilm, multilingual-e5-small, smollm2-135m-instruct, gemma-3-270m");
  EXPECT_EQ(advice(std::string_view("min\0lm", 6)), "did you mean minilm");
}

}  // namespace
}  // namespace clearhead::format
