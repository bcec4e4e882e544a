// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/format/checkpoint.h"
#include "clearhead/model/config.h"
#include "clearhead/model/config_json.h"
#include "clearhead/model/parameter_source.h"
#include "clearhead/model/parameters.h"
#include "clearhead/model/transformer.h"

namespace clearhead::model {

// The names of activations; configs of all families share them.
inline constexpr Meaning<linear::Activation> kActivations[] = {
    {"gelu", linear::Activation::gelu},          {"gelu_fast", linear::Activation::gelu_tanh},
    {"gelu_new", linear::Activation::gelu_tanh}, {"gelu_pytorch_tanh", linear::Activation::gelu_tanh},
    {"relu", linear::Activation::relu},          {"silu", linear::Activation::silu},
    {"swish", linear::Activation::silu},
};

class GgufConfig;

// What one file in this folder knows: how a config.json of its model_type reads, and under which names its parameters
// stand. A new family is such a file, its declaration below and its place in families().
struct Family {
  std::string_view model_type;
  // Reads every key that decides the computation and refuses values that are not supported.
  ModelConfig (*read_config)(ConfigJson& json);
  // What stands in front of every tensor name in this checkpoint ("bert.", "transformer." or nothing).
  std::string (*name_prefix)(const format::Checkpoint& checkpoint);
  Parameters (*read_parameters)(const ModelConfig& config, ParameterSource& source);
  // The general.architecture of its GGUF files, and how their metadata read; empty: there are none that we read.
  std::string_view gguf_architecture = "";
  ModelConfig (*read_gguf)(GgufConfig& gguf, size_t vocab_size) = nullptr;
  Parameters (*read_gguf_parameters)(const ModelConfig& config,
                                     ParameterSource& source) = nullptr;  // null: read_parameters
};

// Encoders of model_type bert (BERT, MiniLM, multilingual E5): every token sees every token, a norm behind each half
// of a block, learned positions, token types.
// Source: Devlin et al. 2018, BERT.
Family bert();

// What bert() reads; encoders of the same parts under the same names share it.
ModelConfig read_bert_config(ConfigJson& json);
Parameters read_bert_parameters(const ModelConfig& config, ParameterSource& source);

// Encoders of model_type roberta and xlm-roberta: BERT's blocks, positions that begin behind the padding token's id.
// Source: Liu et al. 2019, RoBERTa; Conneau et al. 2019, XLM-R.
Family roberta();
Family xlm_roberta();

// Encoders of model_type distilbert: half of BERT's blocks under other names, without token types.
// Source: Sanh et al. 2019, DistilBERT.
Family distilbert();

// Decoders of model_type gpt2 (GPT-2, DistilGPT-2): every token sees itself and those before it, a norm before each
// half of a block, learned positions. Source: Radford et al. 2019, Language Models are Unsupervised Multitask Learners,
// section 2.3.
Family gpt2();

// Decoders of model_type llama (Llama 2 and 3, SmolLM2): RMS norms, rotary positions, grouped heads, gated
// feed-forward. Source: Touvron et al. 2023, LLaMA; Llama Team 2024.
Family llama();

// The same with a window: model_type mistral. Source: Jiang et al. 2023, Mistral 7B.
Family mistral();

// The same with biases of query, key and value, and windows in the upper layers: model_type qwen2.
// Source: Yang et al. 2024, Qwen2.
Family qwen2();

// The same with normed queries and keys and no biases: model_type qwen3. Source: Yang et al. 2025, Qwen3.
Family qwen3();

// Decoders of model_type gemma2: norms around both halves, soft caps, near and far layers by turns, a scaled embedding.
// Source: Gemma Team 2024, Gemma 2.
Family gemma2();

// Decoders of model_type gemma3_text: no caps, normed queries and keys, one far layer behind five near ones, rotary
// positions of two bases. Source: Gemma Team 2025, Gemma 3.
Family gemma3();

// Decoders of model_type gpt_neox (Pythia): layer norms, both halves read the same input, a part of each head is
// turned. Source: Black et al. 2022, GPT-NeoX-20B.
Family gpt_neox();

// Encoders of model_type vit: an image is cut into patches, each a token behind a class token; a norm before each half
// of a block, learned positions. Source: Dosovitskiy et al. 2021, An Image is Worth 16x16 Words.
Family vit();

// The same with registers behind the class token, and a gain for each output of a half: model_type
// dinov2_with_registers. Source: Oquab et al. 2024, DINOv2; Darcet et al. 2024, Vision Transformers Need Registers.
Family dinov2_with_registers();

// All of them.
std::span<const Family> families();

// A model from disk, and what the reader should know about it.
struct LoadedModel {
  Transformer transformer;
  std::vector<std::string> warnings;  // one line each: tensors that are not used
  // Tokens that end a text: those of generation_config.json, which chat models have beside config.json, or of the
  // config.
  std::vector<int64_t> end_ids = {};
};

// The shape and behaviours of a model, without its parameters. Throws: as load_model.
ModelConfig read_model_config(const format::Checkpoint& checkpoint);

// What a model file says of itself: its family, what that makes of the settings, and the tokens that end a text.
struct ReadConfig {
  const Family& family;
  ModelConfig config;
  std::vector<int64_t> end_ids = {};
};

// What a config.json says. where names the file in errors. Throws: Error naming the key or value that is missing,
// unknown or does not fit.
ReadConfig read_hub_config(std::string_view text, std::string where);

// Reads config.json or the metadata of a GGUF, finds the family by its model_type or general.architecture and packs the
// parameters with all threads.
// Throws: Error naming the key, value or tensor that is missing, unknown or does not fit.
LoadedModel load_model(const std::shared_ptr<const format::Checkpoint>& checkpoint);

}  // namespace clearhead::model
