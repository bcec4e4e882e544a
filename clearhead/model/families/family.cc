// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/families/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/model/families/gguf_config.h"

namespace clearhead::model {
namespace {

const Family& family_of(ConfigJson& json) {
  const std::string model_type = json.word("model_type");
  std::string known;
  for (const Family& family : families()) {
    if (family.model_type == model_type) return family;
    known += (known.empty() ? "" : ", ") + std::string(family.model_type);
  }
  json.refuse_value("model_type", known, model_type);
}

// How the parameters are stored; they are computed with in float whatever it is.
void check_storage_types(ConfigJson& json) {
  for (const char* key : {"torch_dtype", "dtype"}) {
    const std::string found = json.word(key, "float32");
    if (found != "float32" && found != "float16" && found != "bfloat16" && found != "float64") {
      json.refuse_value(key, "float32, float16, bfloat16, float64", found);
    }
  }
}

std::string unused_warning(const std::vector<std::string>& names) {
  constexpr size_t kShown = 4;
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) list += (i == 0 ? "" : ", ") + base::quoted(names[i]);
  if (names.size() > kShown) list += fmt::format(" and {} more", names.size() - kShown);
  return fmt::format("{} tensor{} of the model file {} not used: {}", names.size(), names.size() == 1 ? "" : "s",
                     names.size() == 1 ? "is" : "are", list);
}

// What generation_config.json says about the tokens that end a text, which counts instead of what config.json says.
// Nobody needs the file to compute: what is wrong in it is a warning.
void read_generation_config(const format::Checkpoint& checkpoint, ReadConfig& read,
                            std::vector<std::string>& warnings) {
  constexpr const char* kName = "generation_config.json";
  const std::string where = base::quoted((checkpoint.folder() / kName).string(), 400);
  std::vector<int64_t> ids;
  try {
    const std::optional<std::string> text = checkpoint.file_beside(kName);
    if (!text) return;
    ids = ConfigJson(*text, where).integers("eos_token_id");
  } catch (const base::Error& error) {
    warnings.push_back(fmt::format("{}; the file is not used", error.what()));
    return;
  }
  const auto outside = [&](int64_t id) { return id < 0 || static_cast<uint64_t>(id) >= read.config.vocab_size; };
  if (const auto bad = std::ranges::find_if(ids, outside); bad != ids.end()) {
    warnings.push_back(fmt::format("[{}] expected an eos_token_id from 0 to {}; found {}; it is not used", where,
                                   read.config.vocab_size - 1, *bad));
    std::erase_if(ids, outside);
  }
  if (!ids.empty()) read.end_ids = std::move(ids);
}

ReadConfig read_hub(const format::Checkpoint& checkpoint, std::vector<std::string>& warnings) {
  ReadConfig read =
      read_hub_config(checkpoint.config_json(), base::quoted((checkpoint.folder() / "config.json").string(), 400));
  if (read.config.vocab_size != 0) read_generation_config(checkpoint, read, warnings);
  return read;
}

ReadConfig read_gguf(const format::Checkpoint& checkpoint) {
  const format::GgufMetadata& metadata = *checkpoint.gguf_metadata();
  const std::string architecture(metadata.word("general.architecture"));
  const Family* found = nullptr;
  std::string known;
  for (const Family& family : families()) {
    if (family.gguf_architecture.empty()) continue;
    if (family.gguf_architecture == architecture) found = &family;
    known += (known.empty() ? "" : ", ") + std::string(family.gguf_architecture);
  }
  if (found == nullptr) {
    base::fail(metadata.where(), fmt::format("general.architecture to be one of: {}", known),
               base::quoted(architecture));
  }
  checkpoint.entry("token_embd.weight");  // or it is missing
  GgufConfig gguf(checkpoint, architecture);
  ModelConfig config = found->read_gguf(gguf, gguf.rows("token_embd.weight"));
  gguf.refuse_unread();
  config.family = found->model_type;
  config.check();
  std::vector<int64_t> end_ids;
  for (const char* key :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    if (const auto id = metadata.find_count(key)) end_ids.push_back(static_cast<int64_t>(*id));
  }
  return {*found, std::move(config), std::move(end_ids)};
}

ReadConfig read(const format::Checkpoint& checkpoint, std::vector<std::string>& warnings) {
  return checkpoint.gguf_metadata() ? read_gguf(checkpoint) : read_hub(checkpoint, warnings);
}

}  // namespace

std::span<const Family> families() {
  static const std::array all = {
      bert(),  roberta(), xlm_roberta(), distilbert(), gpt2(),     llama(), mistral(),
      qwen2(), qwen3(),   gemma2(),      gemma3(),     gpt_neox(), vit(),   dinov2_with_registers()};
  return all;
}

ReadConfig read_hub_config(std::string_view text, std::string where) {
  ConfigJson json(text, std::move(where));
  const Family& family = family_of(json);
  check_storage_types(json);
  ModelConfig config = family.read_config(json);
  std::vector<int64_t> end_ids = json.integers("eos_token_id");
  json.refuse_unread();
  // The dynamic base is for texts beyond the positions that the config states.
  if (config.rotary && config.rotary->scaling == RotaryScaling::dynamic) {
    config.context_len = static_cast<size_t>(static_cast<double>(config.context_len) * config.rotary->factor);
  }
  config.family = family.model_type;
  config.check();
  return {family, std::move(config), std::move(end_ids)};
}

ModelConfig read_model_config(const format::Checkpoint& checkpoint) {
  std::vector<std::string> warnings;
  return read(checkpoint, warnings).config;
}

LoadedModel load_model(const std::shared_ptr<const format::Checkpoint>& checkpoint) {
  std::vector<std::string> warnings = checkpoint->warnings();
  const auto [family, config, end_ids] = read(*checkpoint, warnings);
  ParameterSource source(checkpoint, family.name_prefix(*checkpoint));
  const auto read_all =
      source.is_gguf() && family.read_gguf_parameters ? family.read_gguf_parameters : family.read_parameters;
  Parameters parameters = read_all(config, source);
  if (const std::vector<std::string> unused = source.unused(); !unused.empty()) {
    warnings.push_back(unused_warning(unused));
  }
  return {Transformer(config, std::move(parameters)), std::move(warnings), end_ids};
}

}  // namespace clearhead::model
