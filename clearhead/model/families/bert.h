// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "clearhead/model/families/family.h"

namespace clearhead::model {

ModelConfig read_bert_config(ConfigJson& json);
std::string bert_prefix(const format::Checkpoint& checkpoint);
Parameters read_bert_parameters(const ModelConfig& config, ParameterSource& source);

// Encoders of model_type bert (BERT, MiniLM, multilingual E5): every token sees every token, a norm behind each half
// of a block, learned positions, token types.
// Source: Devlin et al. 2018, BERT.
constexpr Family bert() { return {"bert", read_bert_config, bert_prefix, read_bert_parameters}; }

}  // namespace clearhead::model
