// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "clearhead/attention/multi_head_attention.h"
#include "clearhead/linear/linear.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::model {

// Gain and bias of a norm.
struct NormParameters {
  tensor::Tensor gain;  // [d_model]
  tensor::Tensor bias;  // [d_model]; empty for an RMS norm
};

// Rows of an embedding table, each turned to float when it is needed: a mapped file keeps what nobody reads on disk.
class EmbeddingTable {
 public:
  // Writes row id to row [d_model].
  using ReadRow = std::function<void(size_t id, std::span<float> row)>;

  EmbeddingTable() = default;
  EmbeddingTable(size_t rows, ReadRow read_row) : rows_(rows), read_row_(std::move(read_row)) {}

  size_t rows() const { return rows_; }
  void read(size_t id, std::span<float> row) const { read_row_(id, row); }

 private:
  size_t rows_ = 0;
  ReadRow read_row_;
};

// The map from the last hidden state to logits: large, and read only by who asks for logits, so it is packed when it is
// first asked for. Copies share it; several threads may ask.
class VocabularyMap {
 public:
  VocabularyMap() = default;  // none
  VocabularyMap(size_t rows, size_t d_model, std::function<linear::PackedLinear()> pack)
      : rows_(rows), d_model_(d_model), shared_(std::make_shared<Shared>(std::move(pack))) {}

  size_t rows() const { return rows_; }
  size_t d_model() const { return d_model_; }
  // [rows, d_model]. Throws: Error if the file cannot be used.
  const linear::PackedLinear& get() const;
  // The same if it is packed already, else null.
  const linear::PackedLinear* packed() const;
  size_t resident_bytes() const;

 private:
  struct Shared {
    explicit Shared(std::function<linear::PackedLinear()> make) : pack(std::move(make)) {}
    std::mutex mutex;
    std::function<linear::PackedLinear()> pack;  // empty once it was called
    linear::PackedLinear packed;
  };
  size_t rows_ = 0, d_model_ = 0;
  std::shared_ptr<Shared> shared_;
};

// The embedding table of a model whose vocabulary is the same matrix: rows come from the map once it is packed, so that
// the file is not read a second time.
EmbeddingTable tied_table(EmbeddingTable stored, VocabularyMap vocabulary);

struct BlockParameters {
  attention::MultiHeadParameters attention;
  NormParameters attention_norm;           // empty without norms
  NormParameters attention_output_norm;    // of NormPlacement::around
  linear::PackedLinear feed_forward_gate;  // [d_ff, d_model]; empty unless gated
  linear::PackedLinear feed_forward_in;    // [d_ff, d_model]; empty without a feed-forward half
  linear::PackedLinear feed_forward_out;   // [d_model, d_ff]
  NormParameters feed_forward_norm;
  NormParameters feed_forward_output_norm;  // of NormPlacement::around
};

struct Parameters {
  EmbeddingTable token_embedding;       // [vocab_size, d_model]
  EmbeddingTable position_embedding;    // [position_rows, d_model]; computed for sinusoidal positions
  EmbeddingTable token_type_embedding;  // [type_vocab_size, d_model]; no rows: there is none
  NormParameters embedding_norm;
  linear::PackedLinear patch_projection;  // [d_model, patch_values]; empty: the model reads token ids
  tensor::Tensor class_token;             // [d_model], of images
  tensor::Tensor register_tokens;         // [registers, d_model], of images
  std::vector<BlockParameters> blocks;    // [num_layers]
  NormParameters final_norm;              // with NormPlacement::pre and around
  VocabularyMap vocabulary;               // [rows, d_model]; no rows: the model has no head over the vocabulary
  std::vector<float> rotary_divisors;     // [rotary dim / 2] of frequencies, or empty
};

}  // namespace clearhead::model
