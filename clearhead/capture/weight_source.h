// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "clearhead/tensor/tensor.h"

namespace clearhead::capture {

// A rectangle of one head's weights: queries [first_query, first_query + queries), keys likewise.
struct WeightArea {
  size_t batch = 0, head = 0;
  size_t first_query = 0, queries = 0;
  size_t first_key = 0, keys = 0;
};

// How the weights of a cell become one number.
enum class Pool { max, mean };

// Weights, or another stage of [batch, heads, query, key], that need not exist until somebody looks.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  virtual size_t batch() const = 0;
  virtual size_t num_heads() const = 0;
  virtual size_t query_len() const = 0;
  virtual size_t key_len() const = 0;

  // The weights of an area. Shapes: weights [queries, keys].
  // Throws: Error (usage) if the area is not inside, or weights has another size.
  void tile(const WeightArea& area, std::span<float> weights) const;

  // Everything, [batch, heads, query, key], rebuilt on all threads; with a list, these heads only.
  tensor::Tensor all() const;
  tensor::Tensor all(std::span<const size_t> heads) const;

  // What one query gives to every key. Shapes: weights [key_len].
  void row(size_t batch, size_t head, size_t query, std::span<float> weights) const;

  // The same of the heads [first_head, first_head + heads) together, which is less work than one after the other.
  // Shapes: weights [heads, key_len].
  void rows(size_t batch, size_t first_head, size_t heads, size_t query, std::span<float> weights) const;

  // What every query gives to one key. Shapes: weights [query_len].
  void column(size_t batch, size_t head, size_t key, std::span<float> weights) const;

  // An area cut into rows x columns cells as equal as can be, each pooled; cell i of n begins at length i / n, and must
  // not be empty. Means are summed in double, rows and keys in order. Shapes: cells [rows, columns].
  // Throws: Error (usage) as tile, or for more cells than queries or keys.
  void pooled(const WeightArea& area, size_t rows, size_t columns, Pool pool, std::span<float> cells) const;

 private:
  virtual void read(const WeightArea& area, std::span<float> weights) const = 0;
  // An area of one query in `heads` heads from its own on. Shapes: weights [heads, keys].
  virtual void read_heads(const WeightArea& area, size_t heads, std::span<float> weights) const;
  void check(const WeightArea& area) const;
};

// Values that exist already.
class StoredWeights : public WeightSource {
 public:
  // values [batch, heads, query, key], F32, must outlive the source. Throws: Error for another type or rank.
  explicit StoredWeights(const tensor::TensorView& values);

  size_t batch() const override { return shape_[0]; }
  size_t num_heads() const override { return shape_[1]; }
  size_t query_len() const override { return shape_[2]; }
  size_t key_len() const override { return shape_[3]; }

 private:
  void read(const WeightArea& area, std::span<float> weights) const override;

  std::array<size_t, 4> shape_;
  std::span<const float> values_;
};

}  // namespace clearhead::capture
