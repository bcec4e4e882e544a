// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tuple>
#include <utility>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/model/families/family.h"

namespace clearhead::model {
namespace {

// Height and width: one number for both, or two.
std::pair<size_t, size_t> read_size(ConfigJson& json, std::string_view key, size_t usual) {
  std::vector<int64_t> sizes = json.integers(key);
  if (sizes.empty()) sizes = {static_cast<int64_t>(usual)};
  if (sizes.size() == 1) sizes.push_back(sizes[0]);
  for (const int64_t size : sizes) {
    if (sizes.size() == 2 && size >= 1 && size <= int64_t{1} << 16) continue;
    base::fail(json.where(), fmt::format("{} of one or two numbers from 1 to 65536", key),
               sizes.size() == 2 ? fmt::format("{}", size) : fmt::format("{} numbers", sizes.size()));
  }
  return {static_cast<size_t>(sizes[0]), static_cast<size_t>(sizes[1])};
}

// What both have; the width of the feed-forward half has names of its own.
ModelConfig read_shared(ConfigJson& json, float norm_epsilon) {
  const size_t d_model = json.count("hidden_size", 768), num_heads = json.count("num_attention_heads", 12);
  if (num_heads == 0 || d_model % num_heads != 0) {
    base::fail(json.where(), "num_attention_heads that divide hidden_size",
               fmt::format("{} heads and hidden_size {}", num_heads, d_model));
  }
  ModelConfig config;
  PatchGrid grid;
  grid.channels = json.count("num_channels", 3);
  std::tie(grid.image_height, grid.image_width) = read_size(json, "image_size", 224);
  std::tie(grid.patch_height, grid.patch_width) = read_size(json, "patch_size", 16);
  config.patches = grid;
  config.context_len = 1 + grid.patches();
  config.num_layers = json.count("num_hidden_layers", 12);
  config.d_model = d_model;
  config.positions = Positions::learned;
  config.norm_placement = NormPlacement::pre;
  config.norm_epsilon = json.number("layer_norm_eps", norm_epsilon);
  config.activation = json.meaning("hidden_act", kActivations, "gelu");
  config.attention.num_heads = config.attention.num_kv_heads = num_heads;
  config.attention.head_dim = config.attention.value_dim = d_model / num_heads;
  config.attention_bias = json.flag("qkv_bias", true);
  return config;
}

ModelConfig read_vit(ConfigJson& json) {
  ModelConfig config = read_shared(json, 1e-12f);
  config.d_ff = json.count("intermediate_size", 3072);
  if (config.d_ff == 0) base::fail(json.where(), "intermediate_size of 1 or more", "0");
  json.ignore({"pooler_act", "pooler_output_size"});  // of the head over a whole image, which is not computed
  json.ignore({"encoder_stride"});                    // of a decoder, which is not computed
  return config;
}

ModelConfig read_dinov2(ConfigJson& json) {
  ModelConfig config = read_shared(json, 1e-6f);
  config.d_ff = json.count("mlp_ratio", 4) * config.d_model;
  if (config.d_ff == 0) base::fail(json.where(), "mlp_ratio of 1 or more", "0");
  config.patches->registers = json.count("num_register_tokens", 4);
  json.require("use_swiglu_ffn", false);
  json.ignore({"layerscale_value", "drop_path_rate"});  // how the stored gains began; training only
  // What another library returns.
  json.ignore({"apply_layernorm", "out_features", "out_indices", "reshape_hidden_states", "stage_names"});
  return config;
}

// What the tensors of a block are called, behind encoder.layer.N.; a gain is absent where its name is empty.
struct Names {
  const char *attention_norm, *feed_forward_norm, *feed_forward_in, *feed_forward_out, *attention_gain,
      *feed_forward_gain;
};

constexpr Names kVit = {"layernorm_before", "layernorm_after", "intermediate.dense", "output.dense", "", ""};
constexpr Names kDinov2 = {"norm1", "norm2", "mlp.fc1", "mlp.fc2", "layer_scale1.lambda1", "layer_scale2.lambda1"};

BlockParameters read_block(const ModelConfig& config, ParameterSource& source, const std::string& name,
                           const Names& names) {
  const size_t d_model = config.d_model;
  const auto role = [&](const std::string& what) {
    const std::string full = name + "attention.attention." + what;
    return source.linear({.weight = full + ".weight",
                          .bias = config.attention_bias ? full + ".bias" : "",
                          .outputs = d_model,
                          .inputs = d_model});
  };
  const auto map = [&](const std::string& what, size_t outputs, size_t inputs, const std::string& gain) {
    return source.linear({.weight = name + what + ".weight",
                          .bias = name + what + ".bias",
                          .outputs = outputs,
                          .inputs = inputs,
                          .output_gain = gain.empty() ? "" : name + gain});
  };
  BlockParameters block;
  block.attention.query = role("query");
  block.attention.key = role("key");
  block.attention.value = role("value");
  block.attention.output = map("attention.output.dense", d_model, d_model, names.attention_gain);
  block.attention_norm = source.norm(name + names.attention_norm, d_model);
  block.feed_forward_norm = source.norm(name + names.feed_forward_norm, d_model);
  block.feed_forward_in = map(names.feed_forward_in, config.d_ff, d_model, "");
  block.feed_forward_out = map(names.feed_forward_out, d_model, config.d_ff, names.feed_forward_gain);
  return block;
}

Parameters read_parameters(const ModelConfig& config, ParameterSource& source, const Names& names) {
  const PatchGrid& grid = *config.patches;
  const size_t d_model = config.d_model;
  Parameters parameters;
  parameters.class_token = source.values("embeddings.cls_token", {1, 1, d_model});
  if (grid.registers != 0) {
    parameters.register_tokens = source.values("embeddings.register_tokens", {1, grid.registers, d_model});
  }
  parameters.position_embedding = source.table("embeddings.position_embeddings", config.position_rows(), d_model, true);
  parameters.patch_projection =
      source.linear({.weight = "embeddings.patch_embeddings.projection.weight",
                     .bias = "embeddings.patch_embeddings.projection.bias",
                     .outputs = d_model,
                     .inputs = grid.patch_values(),
                     .shape = tensor::Shape{d_model, grid.channels, grid.patch_height, grid.patch_width}});
  for (size_t layer = 0; layer < config.num_layers; ++layer) {
    parameters.blocks.push_back(read_block(config, source, fmt::format("encoder.layer.{}.", layer), names));
  }
  parameters.final_norm = source.norm("layernorm", d_model);
  source.ignore("embeddings.mask_token");  // training only
  for (const char* head : {"pooler.dense.weight", "pooler.dense.bias", "classifier.weight", "classifier.bias"}) {
    source.ignore(head);
  }
  return parameters;
}

Parameters read_vit_parameters(const ModelConfig& config, ParameterSource& source) {
  return read_parameters(config, source, kVit);
}

Parameters read_dinov2_parameters(const ModelConfig& config, ParameterSource& source) {
  return read_parameters(config, source, kDinov2);
}

std::string vit_prefix(const format::Checkpoint& checkpoint) {
  return checkpoint.contains("vit.embeddings.cls_token") ? "vit." : "";
}

std::string dinov2_prefix(const format::Checkpoint& checkpoint) {
  return checkpoint.contains("dinov2_with_registers.embeddings.cls_token") ? "dinov2_with_registers." : "";
}

}  // namespace

Family vit() { return {"vit", read_vit, vit_prefix, read_vit_parameters}; }

Family dinov2_with_registers() { return {"dinov2_with_registers", read_dinov2, dinov2_prefix, read_dinov2_parameters}; }

}  // namespace clearhead::model
