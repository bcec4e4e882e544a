// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "clearhead/format/checkpoint.h"
#include "clearhead/model/families/family.h"
#include "tests/format/gguf_bytes.h"
#include "tests/model/tensor_bag.h"

// Small checkpoints, and the same models as GGUF files: names, orders and keys as llama.cpp's converters write them.
namespace clearhead::model::twin {

using Tensors = std::map<std::string, tensor::Tensor>;
using Setting = std::variant<uint32_t, float, bool, std::string, std::vector<int32_t>, std::vector<bool>>;
using Settings = std::map<std::string, Setting>;  // keys without the architecture in front

// A committed model of safetensors, whose config may be changed before it is loaded.
struct Hub {
  explicit Hub(const std::string& name) {
    const std::filesystem::path folder = std::filesystem::path(CLEARHEAD_TEST_DATA) / name;
    const auto checkpoint = format::Checkpoint::open(folder);
    for (const std::string& each : checkpoint.names()) tensors.emplace(each, tensor::clone(checkpoint.view(each)));
    config = nlohmann::json::parse(checkpoint.config_json());
  }

  Hub& set(const nlohmann::json& settings) {
    config.update(settings);
    return *this;
  }
  LoadedModel load() const {
    TensorBag bag;
    for (const auto& [name, values] : tensors) bag.put(name, tensor::clone(values));
    return load_model(bag.checkpoint(config.dump()));
  }
  uint32_t count(const char* key) const { return config.at(key).get<uint32_t>(); }

  Tensors tensors;
  nlohmann::json config;
};

// Blocks of 32 numbers: a scale as F16, then whole numbers from -127 to 127.
inline std::string q8_0(std::span<const float> values) {
  std::string bytes;
  for (size_t first = 0; first < values.size(); first += 32) {
    tensor::Tensor scale(tensor::Shape{1});
    for (size_t i = 0; i < 32; ++i) {
      scale.as<float>()[0] = std::max(scale.as<float>()[0], std::abs(values[first + i]) / 127);
    }
    const tensor::Tensor half = tensor::to_dtype(scale, tensor::DType::f16);
    bytes.append(reinterpret_cast<const char*>(half.bytes().data()), 2);
    for (size_t i = 0; i < 32; ++i) {
      bytes += static_cast<char>(std::lround(values[first + i] / scale.as<float>()[0]));
    }
  }
  return bytes;
}

inline bool in_blocks(const tensor::Tensor& values) {
  return values.shape().rank() == 2 && values.shape()[1] % 32 == 0;
}

// A GGUF in the making.
struct Gguf {
  explicit Gguf(std::string name) : architecture(std::move(name)) {}

  std::string bytes() const {
    tests::GgufBytes file;
    file.word("general.architecture", architecture);
    for (const auto& [key, setting] : settings) add(file, architecture + "." + key, setting);
    for (const auto& [name, values] : tensors) {
      const auto sizes = values.shape().sizes();
      const bool blocks = quantised && in_blocks(values);
      file.data.resize((file.data.size() + 31) / 32 * 32);
      file.tensor(name, {sizes.rbegin(), sizes.rend()}, blocks ? 8 : 0, file.data.size());
      const std::span<const float> numbers = values.as<float>();
      file.data +=
          blocks ? q8_0(numbers) : std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
    }
    return file.text();
  }

  LoadedModel load() const {
    const tests::TemporaryFolder folder;
    tests::write_bytes(folder / "m.gguf", bytes());
    return load_model(std::make_shared<const format::Checkpoint>(format::Checkpoint::open(folder / "m.gguf")));
  }
  std::string complaint() const {
    return tests::error_text([&] { load(); });
  }

  std::string architecture;
  Settings settings;
  Tensors tensors;
  bool quantised = false;  // matrices as Q8_0 whose rows are whole blocks

 private:
  static void add(tests::GgufBytes& file, const std::string& key, const Setting& setting) {
    using tests::le;
    if (const auto* count = std::get_if<uint32_t>(&setting)) file.u32(key, *count);
    if (const auto* number = std::get_if<float>(&setting)) file.value(key, 6, le(*number));
    if (const auto* flag = std::get_if<bool>(&setting)) file.value(key, 7, std::string(1, *flag ? '\1' : '\0'));
    if (const auto* word = std::get_if<std::string>(&setting)) file.word(key, *word);
    std::string list;
    if (const auto* counts = std::get_if<std::vector<int32_t>>(&setting)) {
      for (const int32_t each : *counts) list += le(each);
      file.array(key, 5, counts->size(), list);
    }
    if (const auto* flags = std::get_if<std::vector<bool>>(&setting)) {
      for (const bool each : *flags) list += each ? '\1' : '\0';
      file.array(key, 7, flags->size(), list);
    }
  }
};

using Names = std::vector<std::pair<std::string, std::string>>;

inline std::string renamed(std::string name, const Names& names) {
  for (const auto& [from, to] : names) {
    if (const size_t at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
  }
  return name;
}

// Rows of a matrix, or numbers of a list: row i of the result is row source(i).
template <class Source>
tensor::Tensor gathered(const tensor::Tensor& from, size_t rows, const Source& source) {
  const size_t width = from.elements() / from.shape()[0];
  tensor::Tensor to(from.shape().rank() == 1 ? tensor::Shape{rows} : tensor::Shape{rows, width});
  for (size_t i = 0; i < rows; ++i) {
    const auto row = from.as<float>().subspan(source(i) * width, width);
    std::ranges::copy(row, to.as<float>().subspan(i * width).begin());
  }
  return to;
}

inline tensor::Tensor turned(const tensor::Tensor& from) {  // [rows, columns] -> [columns, rows]
  const size_t rows = from.shape()[0], columns = from.shape()[1];
  tensor::Tensor to(tensor::Shape{columns, rows});
  for (size_t i = 0; i < from.elements(); ++i) to.as<float>()[i % columns * rows + i / columns] = from.as<float>()[i];
  return to;
}

// llama, qwen2, qwen3, gemma2 and gemma3.
inline Gguf gated(const Hub& hub, const std::string& architecture) {
  const bool around = architecture.starts_with("gemma"), pairs = architecture == "llama";
  Gguf file(architecture);
  const uint32_t heads = hub.count("num_attention_heads"), width = hub.count("hidden_size");
  const uint32_t dim = hub.config.contains("head_dim") ? hub.count("head_dim") : width / heads;
  file.settings = {{"context_length", hub.count("max_position_embeddings")},
                   {"block_count", hub.count("num_hidden_layers")},
                   {"embedding_length", width},
                   {"feed_forward_length", hub.count("intermediate_size")},
                   {"attention.head_count", heads},
                   {"attention.head_count_kv", hub.count("num_key_value_heads")},
                   {"attention.key_length", dim},
                   {"attention.value_length", dim},
                   {"attention.layer_norm_rms_epsilon", hub.config.at("rms_norm_eps").get<float>()}};
  const auto& rope = hub.config.at("rope_parameters");
  if (rope.contains("rope_theta")) file.settings["rope.freq_base"] = rope.at("rope_theta").get<float>();
  const Names names = {{"model.", ""},
                       {"embed_tokens", "token_embd"},
                       {"lm_head", "output"},
                       {"layers.", "blk."},
                       {"input_layernorm", "attn_norm"},
                       {"self_attn.q_norm", "attn_q_norm"},
                       {"self_attn.k_norm", "attn_k_norm"},
                       {"self_attn.q_proj", "attn_q"},
                       {"self_attn.k_proj", "attn_k"},
                       {"self_attn.v_proj", "attn_v"},
                       {"self_attn.o_proj", "attn_output"},
                       {"post_attention_layernorm", around ? "post_attention_norm" : "ffn_norm"},
                       {"pre_feedforward_layernorm", "ffn_norm"},
                       {"post_feedforward_layernorm", "post_ffw_norm"},
                       {"mlp.gate_proj", "ffn_gate"},
                       {"mlp.up_proj", "ffn_up"},
                       {"mlp.down_proj", "ffn_down"}};
  for (const auto& [name, values] : hub.tensors) {
    tensor::Tensor copy = tensor::clone(values);
    const bool turns = name.find("q_proj") != std::string::npos || name.find("k_proj") != std::string::npos;
    if (pairs && turns) {
      copy = gathered(values, values.shape()[0], [&](size_t i) {  // neighbours are what stood half a head apart
        return i / dim * dim + i % dim / 2 + (i % 2) * (dim / 2);
      });
    }
    if (around && name.find("norm") != std::string::npos) {
      for (float& gain : copy.as<float>()) gain += 1;
    }
    const std::string to = name == "model.norm.weight" ? "output_norm.weight" : renamed(name, names);
    file.tensors.emplace(to, std::move(copy));
  }
  return file;
}

inline Gguf gpt2(const Hub& hub) {
  Gguf file("gpt2");
  file.settings = {{"context_length", hub.count("n_positions")},
                   {"block_count", hub.count("n_layer")},
                   {"embedding_length", hub.count("n_embd")},
                   {"feed_forward_length", 4 * hub.count("n_embd")},
                   {"attention.head_count", hub.count("n_head")},
                   {"attention.layer_norm_epsilon", hub.config.at("layer_norm_epsilon").get<float>()}};
  const Names names = {
      {"transformer.", ""}, {"wte", "token_embd"},       {"wpe", "position_embd"},       {"ln_f", "output_norm"},
      {"h.", "blk."},       {"attn.c_attn", "attn_qkv"}, {"attn.c_proj", "attn_output"}, {"ln_1", "attn_norm"},
      {"ln_2", "ffn_norm"}, {"mlp.c_fc", "ffn_up"},      {"mlp.c_proj", "ffn_down"}};
  for (const auto& [name, values] : hub.tensors) {
    const bool conv = name.find(".c_") != std::string::npos && values.shape().rank() == 2;
    file.tensors.emplace(renamed(name, names), conv ? turned(values) : tensor::clone(values));
  }
  return file;
}

inline Gguf gpt_neox(const Hub& hub) {
  Gguf file("gptneox");
  const uint32_t width = hub.count("hidden_size"), heads = hub.count("num_attention_heads"), dim = width / heads;
  const auto& rope = hub.config.at("rope_parameters");
  const float part = rope.at("partial_rotary_factor").get<float>();
  file.settings = {{"context_length", hub.count("max_position_embeddings")},
                   {"block_count", hub.count("num_hidden_layers")},
                   {"embedding_length", width},
                   {"feed_forward_length", hub.count("intermediate_size")},
                   {"attention.head_count", heads},
                   {"rope.dimension_count", static_cast<uint32_t>(part * static_cast<float>(dim))},
                   {"use_parallel_residual", hub.config.at("use_parallel_residual").get<bool>()},
                   {"attention.layer_norm_epsilon", hub.config.at("layer_norm_eps").get<float>()}};
  const Names names = {{"gpt_neox.", ""},
                       {"embed_in", "token_embd"},
                       {"embed_out", "output"},
                       {"final_layer_norm", "output_norm"},
                       {"layers.", "blk."},
                       {"attention.query_key_value", "attn_qkv"},
                       {"attention.dense", "attn_output"},
                       {"input_layernorm", "attn_norm"},
                       {"post_attention_layernorm", "ffn_norm"},
                       {"mlp.dense_h_to_4h", "ffn_up"},
                       {"mlp.dense_4h_to_h", "ffn_down"}};
  for (const auto& [name, values] : hub.tensors) {
    const bool fused = name.find("query_key_value") != std::string::npos;
    // [heads, role, dim] -> [role, heads, dim]
    const auto source = [&](size_t i) { return (i % width / dim * 3 + i / width) * dim + i % dim; };
    file.tensors.emplace(renamed(name, names), fused ? gathered(values, 3 * width, source) : tensor::clone(values));
  }
  return file;
}

// bert, roberta, xlm-roberta and distilbert: all become a bert. The rows that no position uses are cut off.
inline Gguf bert(const Hub& hub) {
  const bool half = hub.config.at("model_type") == "distilbert", cuts = hub.config.at("model_type") != "bert" && !half;
  const uint32_t unused = cuts ? hub.count("pad_token_id") + 1 : 0;
  Gguf file("bert");
  file.settings = {{"context_length", hub.count("max_position_embeddings") - unused},
                   {"block_count", hub.count(half ? "n_layers" : "num_hidden_layers")},
                   {"embedding_length", hub.count(half ? "dim" : "hidden_size")},
                   {"feed_forward_length", hub.count(half ? "hidden_dim" : "intermediate_size")},
                   {"attention.head_count", hub.count(half ? "n_heads" : "num_attention_heads")},
                   {"attention.layer_norm_epsilon", half ? 1e-12f : hub.config.at("layer_norm_eps").get<float>()},
                   {"attention.causal", false},
                   {"pooling_type", uint32_t{1}}};
  const Names names = {{"distilbert.", ""},
                       {"xlm-roberta.", ""},
                       {"roberta.", ""},
                       {"bert.", ""},
                       {"embeddings.word_embeddings", "token_embd"},
                       {"embeddings.position_embeddings", "position_embd"},
                       {"embeddings.token_type_embeddings", "token_types"},
                       {"embeddings.LayerNorm", "token_embd_norm"},
                       {"encoder.layer.", "blk."},
                       {"transformer.layer.", "blk."},
                       {"attention.self.query", "attn_q"},
                       {"attention.self.key", "attn_k"},
                       {"attention.self.value", "attn_v"},
                       {"attention.output.dense", "attn_output"},
                       {"attention.output.LayerNorm", "attn_output_norm"},
                       {"intermediate.dense", "ffn_up"},
                       {"output.dense", "ffn_down"},
                       {"output.LayerNorm", "layer_output_norm"},
                       {"attention.q_lin", "attn_q"},
                       {"attention.k_lin", "attn_k"},
                       {"attention.v_lin", "attn_v"},
                       {"attention.out_lin", "attn_output"},
                       {"sa_layer_norm", "attn_output_norm"},
                       {"ffn.lin1", "ffn_up"},
                       {"ffn.lin2", "ffn_down"},
                       {"output_layer_norm", "layer_output_norm"}};
  for (const auto& [name, values] : hub.tensors) {
    if (name.starts_with("lm_head") || name.find("pooler") != std::string::npos) continue;
    const bool cut = name.find("position_embeddings") != std::string::npos;
    const size_t rows = values.shape()[0] - (cut ? unused : 0);
    file.tensors.emplace(renamed(name, names),
                         gathered(values, rows, [&](size_t i) { return i + (cut ? unused : 0); }));
  }
  return file;
}

}  // namespace clearhead::model::twin
