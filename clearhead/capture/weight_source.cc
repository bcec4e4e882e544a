// SPDX-License-Identifier: Apache-2.0
#include "clearhead/capture/weight_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/tensor/shape.h"

namespace clearhead::capture {
namespace {

void check_inside(std::string_view what, size_t first, size_t count, size_t whole) {
  if (first <= whole && count <= whole - first) return;
  base::refuse("weights", fmt::format("{} inside {}", what, whole), fmt::format("{} from {} on", count, first));
}

void check_size(const tensor::Shape& shape, size_t found) {
  if (shape.checked_elements() == found) return;
  base::refuse("weights", fmt::format("room for {}", shape.text()), fmt::format("{} elements", found));
}

}  // namespace

void WeightSource::check(const WeightArea& area) const {
  check_inside("a row of the batch", area.batch, 1, batch());
  check_inside("a head", area.head, 1, num_heads());
  check_inside("queries", area.first_query, area.queries, query_len());
  check_inside("keys", area.first_key, area.keys, key_len());
}

void WeightSource::tile(const WeightArea& area, std::span<float> weights) const {
  check(area);
  check_size({area.queries, area.keys}, weights.size());
  read(area, weights);
}

void WeightSource::row(size_t batch, size_t head, size_t query, std::span<float> weights) const {
  tile({batch, head, query, 1, 0, key_len()}, weights);
}

void WeightSource::column(size_t batch, size_t head, size_t key, std::span<float> weights) const {
  tile({batch, head, 0, query_len(), key, 1}, weights);
}

void WeightSource::pooled(const WeightArea& area, size_t rows, size_t columns, Pool pool,
                          std::span<float> cells) const {
  check(area);
  check_size({rows, columns}, cells.size());
  if (rows > area.queries || columns > area.keys) {
    base::refuse("weights", fmt::format("at most {} x {} cells", area.queries, area.keys),
                 fmt::format("{} x {}", rows, columns));
  }
  std::vector<float> weights(area.keys);
  std::vector<double> sums(columns);
  for (size_t i = 0; i < rows; ++i) {
    const size_t begin = area.queries * i / rows, end = area.queries * (i + 1) / rows;
    std::ranges::fill(sums, 0.0);
    for (size_t query = begin; query < end; ++query) {
      read({area.batch, area.head, area.first_query + query, 1, area.first_key, area.keys}, weights);
      for (size_t j = 0; j < columns; ++j) {
        for (size_t key = area.keys * j / columns; key < area.keys * (j + 1) / columns; ++key) {
          const double weight = weights[key];
          sums[j] = pool == Pool::mean ? sums[j] + weight : std::max(sums[j], weight);
        }
      }
    }
    for (size_t j = 0; j < columns; ++j) {
      const size_t keys = area.keys * (j + 1) / columns - area.keys * j / columns;
      const double count = pool == Pool::mean ? static_cast<double>((end - begin) * keys) : 1.0;
      cells[i * columns + j] = static_cast<float>(sums[j] / count);
    }
  }
}

}  // namespace clearhead::capture
