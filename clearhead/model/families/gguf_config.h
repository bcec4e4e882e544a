// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clearhead/format/checkpoint.h"
#include "clearhead/format/gguf_metadata.h"
#include "clearhead/model/config.h"
#include "clearhead/model/config_json.h"
#include "clearhead/model/parameter_source.h"
#include "clearhead/model/parameters.h"

namespace clearhead::model {

// The settings of a GGUF of an architecture: the metadata whose keys begin with its name, and the tensors that are
// settings too. It refuses what nobody asked for, as ConfigJson does. Keys are given without the name in front.
class GgufConfig {
 public:
  GgufConfig(const format::Checkpoint& checkpoint, std::string architecture)
      : checkpoint_(checkpoint), metadata_(*checkpoint.gguf_metadata()), prefix_(std::move(architecture) + ".") {}

  // Throws: Error naming the key if it is absent (without fallback), of another type or out of its range.
  size_t count(std::string_view key, std::optional<size_t> fallback = std::nullopt);  // 0 to ConfigJson::kMaxCount
  double number(std::string_view key, std::optional<double> fallback = std::nullopt);
  bool flag(std::string_view key, std::optional<bool> fallback = std::nullopt);
  // A count that files give once or for each layer. Throws: Error also if it is not the same in all num_layers.
  size_t same_count(std::string_view key, size_t num_layers, std::optional<size_t> fallback = std::nullopt);
  // Nothing if the key is absent or no array.
  std::optional<std::vector<bool>> flags(std::string_view key);
  bool contains(std::string_view key);

  // What a word means. Throws: Error naming the key, the words that are known and the one found.
  template <class Value, size_t size>
  Value meaning(std::string_view key, const Meaning<Value> (&table)[size], std::string_view fallback) {
    const std::string full = name(key);
    const std::string_view found = metadata_.find_word(full).value_or(fallback);
    std::string known;
    for (const auto& [word, value] : table) {
      if (word == found) return value;
      known += (known.empty() ? "" : ", ") + std::string(word);
    }
    refuse_value(full, known, found);
  }

  // Throws: Error unless the key is absent or has the one value that is supported.
  void require(std::string_view key, size_t only);
  // Keys that have no effect on what is computed here; the caller says why.
  void ignore(std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) name(key);
  }

  // Rows of a table among the tensors; 0 if there is none of that name.
  size_t rows(std::string_view tensor) const;
  // The numbers of a tensor, a list. Nothing if there is none of that name. Throws: Error if it is no list of numbers.
  std::optional<std::vector<double>> numbers(std::string_view tensor) const;

  const std::string& where() const { return metadata_.where(); }

  // Throws: Error naming the first key of the architecture that nobody asked for.
  void refuse_unread() const;

 private:
  std::string name(std::string_view key);
  size_t checked(std::string_view full, size_t value) const;
  [[noreturn]] void refuse_value(std::string_view full, std::string_view known, std::string_view found) const;

  const format::Checkpoint& checkpoint_;
  const format::GgufMetadata& metadata_;
  std::string prefix_;
  std::set<std::string, std::less<>> read_;
};

// What all architectures have: sizes, heads, and whether a token sees those behind it.
// Throws: Error naming the key that is missing, does not fit or asks for what is not computed.
ModelConfig read_sizes_gguf(GgufConfig& gguf, size_t vocab_size, bool causal);

// The rotary positions of a GGUF, as llama.cpp reads them. context_len: of the config.
// Throws: Error naming the key or tensor.
RotaryConfig read_rotary_gguf(GgufConfig& gguf, size_t head_dim, size_t context_len);

// Encoders of architecture bert (BERT, MiniLM, and RoBERTa, XLM-R and DistilBERT, which are converted to it).
ModelConfig read_bert_gguf(GgufConfig& gguf, size_t vocab_size);
Parameters read_bert_gguf_parameters(const ModelConfig& config, ParameterSource& source);

// Decoders of architectures gpt2 and gptneox, which share the names of their tensors.
ModelConfig read_gpt2_gguf(GgufConfig& gguf, size_t vocab_size);
ModelConfig read_gpt_neox_gguf(GgufConfig& gguf, size_t vocab_size);
Parameters read_gpt_gguf_parameters(const ModelConfig& config, ParameterSource& source);

// The heads of a block whose tensors begin with name ("blk.0."), with biases. fused: query, key and value stand below
// each other in one tensor.
attention::MultiHeadParameters read_gguf_heads(const ModelConfig& config, ParameterSource& source,
                                               const std::string& name, bool fused);

}  // namespace clearhead::model
