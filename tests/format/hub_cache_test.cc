// SPDX-License-Identifier: Apache-2.0
#include "clearhead/format/hub_cache.h"

#include <gtest/gtest.h>

#include "tests/format/environment.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace clearhead::format {
namespace {

namespace fs = std::filesystem;

using tests::error_text;
using tests::TemporaryFolder;
using tests::write_bytes;

const std::string kCommit(40, 'a');
const std::string kOther(40, 'b');

// A cache as huggingface_hub lays it out, with one repository org/name.
class HubCache : public testing::Test {
 protected:
  HubCache() {
    for (const char* part : {"blobs", "refs/pr", "snapshots", ".no_exist"}) fs::create_directories(repository_ / part);
    fs::create_directories(snapshot_ / "onnx");
    fs::create_directories(repository_ / ".no_exist" / kCommit);
    write_bytes(repository_ / "blobs/c0ffee", "{}");
    write_bytes(repository_ / "refs/main", kCommit + "\n");
    write_bytes(repository_ / "refs/pr/1", kCommit);
    write_bytes(repository_ / "refs/gone", kOther);
    write_bytes(repository_ / "refs/bad", "../../..");
    fs::create_symlink("../../blobs/c0ffee", snapshot_ / "config.json");
    fs::create_symlink("../../../blobs/c0ffee", snapshot_ / "onnx/config.json");
    write_bytes(snapshot_ / "copied.json", "[]");
    write_bytes(repository_ / ".no_exist" / kCommit / "added_tokens.json", "");
  }

  std::optional<fs::path> snapshot(const char* name) {
    return find_hub_snapshot(cache(), parse_hub_name(name).value());
  }
  HubFile file(const char* path) { return find_hub_file(cache(), {"org", "name", "main"}, path); }
  const fs::path& cache() const { return folder_.path(); }

  TemporaryFolder folder_;
  fs::path repository_ = folder_ / "models--org--name";
  fs::path snapshot_ = repository_ / "snapshots" / kCommit;
};

TEST(HubName, OfGoodForm) {
  EXPECT_EQ(parse_hub_name("org/name"), (HubName{"org", "name", "main"}));
  EXPECT_EQ(parse_hub_name("org/name@v1.0"), (HubName{"org", "name", "v1.0"}));
  EXPECT_EQ(parse_hub_name("org/name@refs/pr/1"), (HubName{"org", "name", "refs/pr/1"}));
  EXPECT_EQ(parse_hub_name("org/name")->text(), "org/name");
}

TEST(HubName, OfBadForm) {
  for (const char* name : {"", "name", "org/", "/name", "a/b/c", "../name", "org/..", "org/name@", "org/name@..",
                           "org/name@a/../b", "org/name@/etc", "or\\g/name", "org/name@a\\b", "./name", "org/."}) {
    EXPECT_FALSE(parse_hub_name(name)) << name;
  }
  EXPECT_FALSE(parse_hub_name(std::string_view("org/na\0me", 9)));
}

TEST(HubCacheFolder, FollowsTheVariablesInOrder) {
  tests::Environment environment;
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME"}) {
    environment.set(name, std::nullopt);
  }
  EXPECT_FALSE(hub_cache_folder());
  environment.set("TRANSFORMERS_CACHE", "/ignored");
  EXPECT_FALSE(hub_cache_folder());
  environment.set("HOME", "/home/u");
  EXPECT_EQ(hub_cache_folder(), "/home/u/.cache/huggingface/hub");
  environment.set("XDG_CACHE_HOME", "/xdg");
  EXPECT_EQ(hub_cache_folder(), "/xdg/huggingface/hub");
  environment.set("HF_HOME", "~/hf");
  EXPECT_EQ(hub_cache_folder(), "/home/u/hf/hub");
  environment.set("HUGGINGFACE_HUB_CACHE", "/legacy");
  EXPECT_EQ(hub_cache_folder(), "/legacy");
  environment.set("HF_HUB_CACHE", "/hub");
  EXPECT_EQ(hub_cache_folder(), "/hub");
  environment.set("HF_HUB_CACHE", "");
  EXPECT_EQ(hub_cache_folder(), "/legacy");
}

TEST_F(HubCache, FindsSnapshotsByBranchPullRequestAndCommit) {
  EXPECT_EQ(snapshot("org/name"), snapshot_);
  EXPECT_EQ(snapshot("org/name@pr/1"), snapshot_);
  EXPECT_EQ(snapshot(("org/name@" + kCommit).c_str()), snapshot_);
}

TEST_F(HubCache, HasNothingElse) {
  EXPECT_FALSE(snapshot("org/other"));
  EXPECT_FALSE(snapshot("org/name@v2"));
  EXPECT_FALSE(snapshot("org/name@gone"));
  EXPECT_FALSE(snapshot(("org/name@" + kOther).c_str()));
  EXPECT_FALSE(find_hub_snapshot(folder_ / "none", {"org", "name", "main"}));
}

TEST_F(HubCache, TellsFilesThatTheRepositoryLacks) {
  EXPECT_EQ(file("config.json").state, HubFileState::found);
  EXPECT_EQ(file("config.json").path, snapshot_ / "config.json");
  EXPECT_EQ(file("onnx/config.json").state, HubFileState::found);
  EXPECT_EQ(file("copied.json").state, HubFileState::found);
  EXPECT_EQ(file("added_tokens.json").state, HubFileState::known_absent);
  EXPECT_EQ(file("model.safetensors").state, HubFileState::unknown);
  EXPECT_EQ(find_hub_file(cache(), {"org", "other", "main"}, "config.json").state, HubFileState::unknown);
  EXPECT_EQ(find_hub_file(cache(), {"org", "name", "v2"}, "config.json").state, HubFileState::unknown);
}

TEST_F(HubCache, RefusesPathsThatLeadOut) {
  for (const char* path : {"../config.json", "/etc/passwd", "a//b", "", "a\\b"}) {
    EXPECT_EQ(error_text([&] { file(path); }).find("usage: [hub cache] expected a path inside the repository; found "),
              0u);
  }
}

TEST_F(HubCache, RefusesAReferenceThatIsNoCommit) {
  EXPECT_EQ(
      error_text([&] { snapshot("org/name@bad"); }),
      "[\"" + (repository_ / "refs/bad").string() +
          "\"] expected a commit of 40 hex digits; found \"../../..\"; the cache is damaged; fetch the model again");
}

TEST_F(HubCache, RefusesLinksThatLeadOut) {
  write_bytes(folder_ / "secret", "s");
  fs::create_symlink("../../../secret", snapshot_ / "model.safetensors");
  const std::string text = "[\"" + (snapshot_ / "model.safetensors").string() +
                           "\"] expected a link to a file under the folder of its repository; found \"" +
                           fs::canonical(folder_ / "secret").string() +
                           "\"; a cache that leads elsewhere is not followed";
  EXPECT_EQ(error_text([&] { snapshot("org/name"); }), text);
  EXPECT_EQ(error_text([&] { file("model.safetensors"); }), text);
}

TEST_F(HubCache, RefusesASiblingWhoseNameBeginsTheSame) {
  fs::create_directories(folder_ / "models--org--name-evil");
  write_bytes(folder_ / "models--org--name-evil/file", "s");
  fs::create_symlink("../../../models--org--name-evil/file", snapshot_ / "model.safetensors");
  EXPECT_NE(error_text([&] { file("model.safetensors"); }).find("a link to a file under the folder"),
            std::string::npos);
}

TEST_F(HubCache, RefusesASnapshotThatIsALinkElsewhere) {
  fs::create_directories(folder_ / "elsewhere");
  fs::create_symlink("../../elsewhere", repository_ / "snapshots" / kOther);
  EXPECT_NE(error_text([&] { snapshot(("org/name@" + kOther).c_str()); }).find("a link to a file under the folder"),
            std::string::npos);
}

TEST_F(HubCache, SaysThatADownloadWasNotFinished) {
  fs::create_symlink("../../blobs/gone", snapshot_ / "model.safetensors");
  EXPECT_EQ(error_text([&] { file("model.safetensors"); }),
            "[\"" + (snapshot_ / "model.safetensors").string() +
                "\"] expected a link to a file in the cache; found No such file or directory; the download was not "
                "finished; fetch the model again");
}

}  // namespace
}  // namespace clearhead::format
