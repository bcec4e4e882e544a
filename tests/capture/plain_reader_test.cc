// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tests/capture/small_trace.h"
#include "tests/support/temporary_folder.h"

namespace clearhead::capture {
namespace {

// What a Python script without any package reads from a file.
nlohmann::json read_plain(const std::filesystem::path& path) {
  const std::string command = std::string(CLEARHEAD_PYTHON) + " " + CLEARHEAD_READ_PLAIN + " " + path.string();
  FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return nlohmann::json::parse(text);
}

TEST(TraceFile, IsPlainSafetensorsForEverybodyElse) {
  tests::TemporaryFolder folder;
  const Trace trace = tests::small_trace();
  trace.write(folder / "trace.safetensors");
  const nlohmann::json file = read_plain(folder / "trace.safetensors");
  const nlohmann::json metadata = file["metadata"];
  EXPECT_EQ(metadata["clearhead.version"], "0.0.1");
  EXPECT_EQ(metadata["model"], "tiny");
  EXPECT_EQ(metadata["text"], "h\u00e9 you");
  EXPECT_EQ(metadata["attention"], R"({"num_heads":4})");
  EXPECT_EQ(metadata["num_layers"], "3");
  EXPECT_EQ(metadata["num_heads"], "4");
  EXPECT_EQ(metadata["num_kv_heads"], "2");
  EXPECT_EQ(metadata["layers"], "[0,2]");
  EXPECT_EQ(metadata["heads"], "[1,2]");
  EXPECT_EQ(metadata["tokens"],
            "[{\"text\":\"[CLS]\",\"id\":101,\"offsets\":[0,0],\"special\":true,\"piece\":\"[CLS]\","
            "\"continues_word\":false,\"type_id\":0},"
            "{\"text\":\"h\u00e9\",\"id\":7,\"offsets\":[0,3],\"special\":false,\"piece\":\"he\","
            "\"continues_word\":false,\"type_id\":0},"
            "{\"text\":\"you\",\"id\":-1,\"offsets\":[4,7],\"special\":false,\"piece\":\"##you\","
            "\"continues_word\":true,\"type_id\":1}]");
  const nlohmann::json weights = file["tensors"]["layers.2.weights"];
  EXPECT_EQ(weights["shape"], (std::vector<size_t>{1, 2, 3, 3}));
  const auto expected = trace.tensor(Stage::weights, 2).as<float>();
  EXPECT_EQ(weights["values"], std::vector<float>(expected.begin(), expected.end()));
  EXPECT_EQ(file["tensors"].size(), 6u);
}

}  // namespace
}  // namespace clearhead::capture
