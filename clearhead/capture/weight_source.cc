// SPDX-License-Identifier: Apache-2.0
#include "clearhead/capture/weight_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/base/parallel.h"
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

tensor::Tensor WeightSource::all() const {
  std::vector<size_t> heads(num_heads());
  std::iota(heads.begin(), heads.end(), size_t{0});
  return all(heads);
}

tensor::Tensor WeightSource::all(std::span<const size_t> heads) const {
  constexpr size_t kQueries = 64;  // of a unit of work
  for (size_t head : heads) check_inside("a head", head, 1, num_heads());
  const size_t queries = query_len(), keys = key_len(), blocks = (queries + kQueries - 1) / kQueries;
  tensor::Tensor values(tensor::Shape{batch(), heads.size(), queries, keys});
  const std::span<float> into = values.as<float>();
  base::parallel_for(batch() * heads.size() * blocks, [&](size_t unit) {
    const size_t row = unit / blocks, first = unit % blocks * kQueries, count = std::min(kQueries, queries - first);
    read({row / heads.size(), heads[row % heads.size()], first, count, 0, keys},
         into.subspan((row * queries + first) * keys, count * keys));
  });
  return values;
}

void WeightSource::row(size_t batch, size_t head, size_t query, std::span<float> weights) const {
  tile({batch, head, query, 1, 0, key_len()}, weights);
}

void WeightSource::rows(size_t batch, size_t first_head, size_t heads, size_t query, std::span<float> weights) const {
  const WeightArea area{batch, first_head, query, 1, 0, key_len()};
  check_inside("heads", first_head, heads, num_heads());
  if (heads == 0) return;
  check(area);
  check_size({heads, area.keys}, weights.size());
  read_heads(area, heads, weights);
}

void WeightSource::read_heads(const WeightArea& area, size_t heads, std::span<float> weights) const {
  WeightArea one = area;
  for (size_t i = 0; i < heads; ++i, ++one.head) read(one, weights.subspan(i * area.keys, area.keys));
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

StoredWeights::StoredWeights(const tensor::TensorView& values) {
  if (values.shape().rank() != shape_.size()) {
    base::fail("weights", "values of shape [batch, heads, query, key]", values.shape().text());
  }
  std::ranges::copy(values.shape().sizes(), shape_.begin());
  values_ = values.as<float>();
}

void StoredWeights::read(const WeightArea& area, std::span<float> weights) const {
  const size_t head_row = (area.batch * shape_[1] + area.head) * shape_[2];
  for (size_t i = 0; i < area.queries; ++i) {
    const size_t first = (head_row + area.first_query + i) * shape_[3] + area.first_key;
    std::ranges::copy(values_.subspan(first, area.keys), weights.subspan(i * area.keys, area.keys).begin());
  }
}

}  // namespace clearhead::capture
