// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace clearhead::capture {

// A rectangle of one head's weights: queries [first_query, first_query + queries), keys likewise.
struct WeightArea {
  size_t batch = 0, head = 0;
  size_t first_query = 0, queries = 0;
  size_t first_key = 0, keys = 0;
};

// How the weights of a cell become one number.
enum class Pool { max, mean };

// Weights that need not exist until somebody looks.
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

  // What one query gives to every key. Shapes: weights [key_len].
  void row(size_t batch, size_t head, size_t query, std::span<float> weights) const;

  // What every query gives to one key. Shapes: weights [query_len].
  void column(size_t batch, size_t head, size_t key, std::span<float> weights) const;

  // An area cut into rows x columns cells as equal as can be, each pooled; cell i of n begins at length i / n, and must
  // not be empty. Means are summed in double, rows and keys in order. Shapes: cells [rows, columns].
  // Throws: Error (usage) as tile, or for more cells than queries or keys.
  void pooled(const WeightArea& area, size_t rows, size_t columns, Pool pool, std::span<float> cells) const;

 private:
  virtual void read(const WeightArea& area, std::span<float> weights) const = 0;
  void check(const WeightArea& area) const;
};

}  // namespace clearhead::capture
