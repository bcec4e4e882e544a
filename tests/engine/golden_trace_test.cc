// SPDX-License-Identifier: Apache-2.0
// A trace that one machine wrote once (golden/make_trace.sh), byte for byte on whatever machine the tests run, on every
// target with fused multiply-add and for any number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "clearhead/base/parallel.h"
#include "clearhead/engine/session.h"
#include "clearhead/engine/verify.h"
#include "clearhead/format/safetensors.h"
#include "tests/support/targets.h"
#include "tests/support/temporary_folder.h"

namespace clearhead::engine {
namespace {

const std::filesystem::path kTrace = std::filesystem::path(CLEARHEAD_TEST_DATA) / "trace";

// The folder that holds golden-gemma2, as the working folder: traces carry the model's name as it was given.
class AtTheModel {
 public:
  AtTheModel() : before_(std::filesystem::current_path()) {
    const std::filesystem::path decoders = kTrace.parent_path().parent_path().parent_path() / "model/data/decoders";
    std::filesystem::copy(decoders / "gemma2", folder_ / "golden-gemma2");
    std::filesystem::copy(kTrace / "tokenizer.json", folder_ / "golden-gemma2/tokenizer.json");
    std::filesystem::current_path(folder_.path());
  }
  ~AtTheModel() { std::filesystem::current_path(before_); }
  AtTheModel(const AtTheModel&) = delete;
  AtTheModel& operator=(const AtTheModel&) = delete;

 private:
  tests::TemporaryFolder folder_;
  std::filesystem::path before_;
};

void expect_same_bytes(const format::SafetensorsFile& found, const format::SafetensorsFile& golden) {
  auto metadata = found.metadata(), want = golden.metadata();
  EXPECT_EQ(metadata.count("clearhead.version"), 1u);
  metadata.erase("clearhead.version"), want.erase("clearhead.version");
  EXPECT_EQ(metadata, want);
  ASSERT_EQ(found.entries().size(), golden.entries().size());
  for (size_t i = 0; i < golden.entries().size(); ++i) {
    const std::string& name = golden.entries()[i].name;
    EXPECT_EQ(found.entries()[i].name, name);
    const tensor::TensorView a = found.view(name), b = golden.view(name);
    EXPECT_EQ(a.dtype(), b.dtype()) << name;
    EXPECT_EQ(a.shape(), b.shape()) << name;
    EXPECT_TRUE(std::ranges::equal(a.bytes(), b.bytes())) << name << " has other bytes";
  }
}

TEST(GoldenTrace, IsRecordedAgainByteForByteOnEveryTargetForAnyThreads) {
  const AtTheModel here;
  const Session session = Session::open("golden-gemma2");
  const auto golden = format::SafetensorsFile::open(kTrace / "gemma2.safetensors");
  EXPECT_GT(golden.entries().size(), 60u);
  capture::Selection everything;
  everything.stages = capture::parse_stages("all");
  size_t targets = 0;
  const size_t before = base::num_threads();
  tests::for_each_target([&](const std::string& target) {
    if (!tests::has_fused_multiply_add(target)) return;
    ++targets;
    for (const size_t threads : {1, 2, 3}) {
      SCOPED_TRACE(threads);
      base::set_num_threads(threads);
      const TokenizedText text = session.tokenize(golden.metadata().at("text"));
      session.record(text, everything, "again.safetensors");
      expect_same_bytes(format::SafetensorsFile::open("again.safetensors"), golden);
    }
  });
  base::set_num_threads(before);
  EXPECT_GT(targets, 0u) << "no target with fused multiply-add ran";
}

TEST(GoldenTrace, IsProvedInDouble) {
  const AtTheModel here;
  const VerifyReport report =
      verify(Session::open("golden-gemma2"), capture::Trace::read(kTrace / "gemma2.safetensors"));
  EXPECT_TRUE(report.ok);
  EXPECT_TRUE(std::ranges::none_of(report.stages, &StageCheck::skipped));
}

TEST(GoldenTrace, SaysTheWindowOfEachLayer) {
  const auto golden = format::SafetensorsFile::open(kTrace / "gemma2.safetensors");
  EXPECT_NE(golden.metadata().at("attention").find(R"("left_windows": [4, null, 4])"), std::string::npos);
}

}  // namespace
}  // namespace clearhead::engine
