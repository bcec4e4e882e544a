// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/families/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "clearhead/base/error.h"

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

}  // namespace

std::span<const Family> families() {
  static const std::array all = {bert(), gpt2()};
  return all;
}

LoadedModel load_model(const std::shared_ptr<const format::Checkpoint>& checkpoint) {
  ConfigJson json(checkpoint->config_json(), base::quoted((checkpoint->folder() / "config.json").string(), 400));
  const Family& family = family_of(json);
  check_storage_types(json);
  ModelConfig config = family.read_config(json);
  json.refuse_unread();
  config.family = family.model_type;
  config.check();

  ParameterSource source(checkpoint, family.name_prefix(*checkpoint));
  Parameters parameters = family.read_parameters(config, source);
  std::vector<std::string> warnings = checkpoint->warnings();
  if (const std::vector<std::string> unused = source.unused(); !unused.empty()) {
    warnings.push_back(unused_warning(unused));
  }
  return {Transformer(std::move(config), std::move(parameters)), std::move(warnings)};
}

}  // namespace clearhead::model
