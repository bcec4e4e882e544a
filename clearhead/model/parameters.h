// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "clearhead/attention/multi_head_attention.h"
#include "clearhead/linear/linear.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::model {

// Gain and bias of a layer norm.
struct NormParameters {
  tensor::Tensor gain;  // [d_model]
  tensor::Tensor bias;  // [d_model]
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

struct BlockParameters {
  attention::MultiHeadParameters attention;
  NormParameters attention_norm;          // empty without norms
  linear::PackedLinear feed_forward_in;   // [d_ff, d_model]; empty without a feed-forward half
  linear::PackedLinear feed_forward_out;  // [d_model, d_ff]
  NormParameters feed_forward_norm;
};

struct Parameters {
  EmbeddingTable token_embedding;       // [vocab_size, d_model]
  EmbeddingTable position_embedding;    // [context_len, d_model]; computed for sinusoidal positions
  EmbeddingTable token_type_embedding;  // [type_vocab_size, d_model]; no rows: there is none
  NormParameters embedding_norm;
  std::vector<BlockParameters> blocks;  // [num_layers]
  NormParameters final_norm;            // with NormPlacement::pre
};

}  // namespace clearhead::model
