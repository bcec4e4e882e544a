// SPDX-License-Identifier: Apache-2.0
#include "clearhead/format/chat_template.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "clearhead/format/safetensors.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace clearhead::format {
namespace {

using tests::error_text;

using Files = std::vector<std::pair<std::string, std::string>>;

// A model with these files beside its parameters, of which the name and the content are given.
class Model {
 public:
  explicit Model(const Files& files) {
    const tensor::Tensor values(tensor::Shape{1});
    const std::vector<NamedTensor> named = {{"a", values}};
    write_safetensors(folder_ / "model.safetensors", named);
    for (const auto& [name, content] : files) tests::write_bytes(folder_ / name, content);
  }

  std::string found() const { return chat_template(Checkpoint::open(folder_.path())); }
  std::string complaint() const {
    return error_text([&] { found(); });
  }
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  tests::TemporaryFolder folder_;
};

std::string of(const std::string& value) { return R"({"eos_token": "</s>", "chat_template": )" + value + "}"; }

TEST(ChatTemplate, StandsInOneOfTwoFilesOrInNone) {
  EXPECT_EQ(Model(Files{}).found(), "");
  EXPECT_EQ(Model(Files{{"tokenizer_config.json", "{}"}}).found(), "");
  EXPECT_EQ(Model(Files{{"tokenizer_config.json", of("null")}}).found(), "");
  EXPECT_EQ(Model(Files{{"tokenizer_config.json", of(R"("{{ a }}\n")")}}).found(), "{{ a }}\n");
  EXPECT_EQ(Model(Files{{"chat_template.jinja", "{{ b }}\n"}}).found(), "{{ b }}\n");
  EXPECT_EQ(Model(Files{{"chat_template.jinja", "b"}, {"tokenizer_config.json", of(R"("a")")}}).found(), "b");
}

TEST(ChatTemplate, OfSeveralTheDefaultCounts) {
  const std::string rows = R"([{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}])";
  EXPECT_EQ(Model(Files{{"tokenizer_config.json", of(rows)}}).found(), "d");
  const Model others(Files{{"tokenizer_config.json", of(R"([{"name": "tool_use", "template": "t"}])")}});
  EXPECT_NE(others.complaint().find("expected a chat_template that is named \"default\"; found 1 of other names; name"),
            std::string::npos)
      << others.complaint();
}

TEST(ChatTemplate, HostileFilesGetOneLine) {
  for (const std::string& content :
       {std::string("{"), std::string(), std::string("[1]"), std::string("\xff\xfe"), std::string(1000, '['), of("7"),
        of("{}"), of("[]"), of("[1]"), of(R"([{"name": "default"}])"), of(R"([{"name": 1, "template": "a"}])"),
        of(R"([{"name": "default", "template": ["a"]}])"), of("\"a")}) {
    const std::string complaint = Model(Files{{"tokenizer_config.json", content}}).complaint();
    EXPECT_TRUE(complaint.starts_with("[\"")) << content << complaint;
    EXPECT_NE(complaint.find("tokenizer_config.json"), std::string::npos) << complaint;
    EXPECT_NE(complaint.find("expected"), std::string::npos) << complaint;
    EXPECT_EQ(complaint.find('\n'), std::string::npos) << complaint;
  }
  const Model folder(Files{});
  std::filesystem::create_directory(folder.folder() / "chat_template.jinja");
  EXPECT_NE(folder.complaint().find("chat_template.jinja"), std::string::npos) << folder.complaint();
  const Model large(Files{{"chat_template.jinja", ""}});
  std::filesystem::resize_file(large.folder() / "chat_template.jinja", Checkpoint::kMaxConfigBytes + 1);
  EXPECT_NE(large.complaint().find("expected at most 16000000 bytes"), std::string::npos) << large.complaint();
}

// As deep as the size allows: read and thrown away without a frame of the stack for each level.
TEST(ChatTemplate, DeepListsDoNotOverflow) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_NE(Model(Files{{"tokenizer_config.json", of(deep)}}).complaint().find("one without"), std::string::npos);
}

}  // namespace
}  // namespace clearhead::format
