// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "clearhead/base/error.h"
#include "clearhead/model/families/family.h"

namespace clearhead::model {
namespace {

ModelConfig read_config(ConfigJson& json) {
  ModelConfig config = read_bert_config(json);
  const size_t padding_id = json.count("pad_token_id", 1), rows = json.count("max_position_embeddings", 512);
  if (rows <= padding_id + 1) {
    base::fail(json.where(),
               fmt::format("max_position_embeddings above {}, the rows behind pad_token_id", padding_id + 1),
               fmt::format("{}", rows));
  }
  config.padding_id = padding_id;
  config.context_len = rows - padding_id - 1;
  return config;
}

std::string name_prefix(const format::Checkpoint& checkpoint) {
  return checkpoint.contains("roberta.embeddings.word_embeddings.weight") ? "roberta." : "";
}

}  // namespace

Family roberta() { return {"roberta", read_config, name_prefix, read_bert_parameters}; }
Family xlm_roberta() { return {"xlm-roberta", read_config, name_prefix, read_bert_parameters}; }

}  // namespace clearhead::model
