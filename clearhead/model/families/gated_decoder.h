// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clearhead/model/config.h"
#include "clearhead/model/config_json.h"
#include "clearhead/model/families/gguf_config.h"
#include "clearhead/model/parameter_source.h"
#include "clearhead/model/parameters.h"

namespace clearhead::model {

// What decoders in the manner of Llama share: RMS norms before both halves, a gated feed-forward half, rotary
// positions, grouped heads, a causal mask. Their files in this folder say what each adds.

// Values of keys that a config may leave out.
struct GatedDefaults {
  size_t vocab_size = 32000, hidden_size = 4096, intermediate_size = 11008;
  size_t num_layers = 32, num_heads = 32;
  std::optional<size_t> num_kv_heads = std::nullopt;  // absent: num_heads
  std::optional<size_t> head_dim = std::nullopt;      // absent: hidden_size / num_heads
  size_t context_len = 2048;
  float norm_epsilon = 1e-6f;
  std::string_view activation_key = "hidden_act", activation = "silu";
  bool tied = false;
};

// Everything but windows, caps, scales and the norms of heads. The rotary positions are those of read_rotary.
ModelConfig read_gated_config(ConfigJson& json, const GatedDefaults& defaults);

// rope_theta with rope_scaling, or rope_parameters, of a config. parameters: the object that holds the settings, if
// they are not at their usual place. Throws: Error naming what is unknown.
RotaryConfig read_rotary(ConfigJson& json, size_t head_dim, size_t context_len, double base = 10000,
                         std::optional<ConfigJson> parameters = std::nullopt);

// layer_types of a config: which layers see near tokens only; absent or all alike: as pattern says.
std::vector<bool> read_near_layers(ConfigJson& json, size_t num_layers, const std::function<bool(size_t)>& pattern);

// The window of a key that counts the query's own position, as AttentionConfig has it; nothing if the key is absent.
std::optional<size_t> read_left_window(ConfigJson& json, std::string_view key, std::optional<size_t> fallback);

// What read_gated_config reads, from a GGUF.
ModelConfig read_gated_gguf(GgufConfig& gguf, size_t vocab_size);

// What the parameters of a family are, beside what all have.
struct GatedParts {
  bool attention_bias = false;  // of query, key and value; a GGUF may have biases beside those asked for here
  bool output_bias = false;     // of the output projection
  bool feed_forward_bias = false;
  float norm_offset = 0;       // added to every stored gain of a norm
  bool pairs_in_gguf = false;  // a GGUF has the rows of query and key in the order of interleaved pairs
  bool norms_around = false;
};

Parameters read_gated_parameters(const ModelConfig& config, ParameterSource& source, const GatedParts& parts);

// Nothing: the names of heads beside the body have no prefix, so read_gated_parameters looks for it.
std::string no_prefix(const format::Checkpoint& checkpoint);

}  // namespace clearhead::model
