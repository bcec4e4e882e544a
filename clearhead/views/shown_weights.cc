// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/shown_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "clearhead/base/error.h"

namespace clearhead::views {
namespace {

using capture::Stage;
using capture::WeightArea;

// What all that is made of other weights have in common: one text, some heads, as many queries as keys.
class Derived : public capture::WeightSource {
 public:
  Derived(ShownWeights base, size_t heads, size_t n) : base_(std::move(base)), heads_(heads), n_(n) {}

  size_t batch() const override { return 1; }
  size_t num_heads() const override { return heads_; }
  size_t query_len() const override { return n_; }
  size_t key_len() const override { return n_; }

 protected:
  ShownWeights base_;

 private:
  size_t heads_, n_;
};

class OneHead : public Derived {
 public:
  OneHead(ShownWeights base, size_t place) : Derived(base, 1, base->query_len()), place_(place) {}

 private:
  void read(const WeightArea& area, std::span<float> weights) const override {
    WeightArea part = area;
    part.head = place_;
    base_->tile(part, weights);
  }

  size_t place_;
};

class Joined : public Derived {
 public:
  Joined(ShownWeights base, Grouping grouping)
      : Derived(base, base->num_heads(), grouping.words()), grouping_(std::move(grouping)) {
    size_t first = 0;
    for (const size_t pieces : grouping_.pieces) {
      first_.push_back(first);
      first += pieces;
    }
    first_.push_back(first);
  }

 private:
  void read(const WeightArea& area, std::span<float> weights) const override {
    const size_t first_key = first_[area.first_key], keys = first_[area.first_key + area.keys] - first_key;
    std::vector<double> sums(area.keys);
    for (size_t i = 0; i < area.queries; ++i) {
      const size_t word = area.first_query + i, pieces = grouping_.pieces[word];
      std::vector<float> rows(pieces * keys);
      base_->tile({area.batch, area.head, first_[word], pieces, first_key, keys}, rows);
      std::ranges::fill(sums, 0.0);
      for (size_t at = 0; at < rows.size(); ++at)
        sums[grouping_.word_of[first_key + at % keys] - area.first_key] += rows[at];
      for (size_t j = 0; j < area.keys; ++j) {
        weights[i * area.keys + j] = static_cast<float>(sums[j] / static_cast<double>(pieces));
      }
    }
  }

  Grouping grouping_;
  std::vector<size_t> first_;  // [words + 1]: the first token of each
};

class OnlyTokens : public Derived {
 public:
  OnlyTokens(ShownWeights base, std::vector<size_t> kept)
      : Derived(base, base->num_heads(), kept.size()), kept_(std::move(kept)) {}

 private:
  void read(const WeightArea& area, std::span<float> weights) const override {
    if (area.keys == 0) return;
    const size_t first = kept_[area.first_key], keys = kept_[area.first_key + area.keys - 1] + 1 - first;
    std::vector<float> row(keys);
    for (size_t i = 0; i < area.queries; ++i) {
      base_->tile({area.batch, area.head, kept_[area.first_query + i], 1, first, keys}, row);
      for (size_t j = 0; j < area.keys; ++j) weights[i * area.keys + j] = row[kept_[area.first_key + j] - first];
    }
  }

  std::vector<size_t> kept_;
};

}  // namespace

ShownWeights layer_weights(const capture::Trace& trace, size_t layer) {
  const capture::WeightSource& source = trace.source(Stage::weights, layer);
  const size_t heads = trace.info().heads.size(), seq_len = trace.info().tokens.size();
  const tensor::Shape expected{1, heads, seq_len, seq_len},
      found{source.batch(), source.num_heads(), source.query_len(), source.key_len()};
  if (found != expected) {
    base::fail("weights", fmt::format("weights of shape {} in layer {}", expected.text(), layer), found.text());
  }
  return {std::shared_ptr<void>(), &source};  // the trace owns it
}

ShownWeights head_weights(const capture::Trace& trace, size_t layer, size_t head) {
  const auto& heads = trace.info().heads;
  const auto place = std::find(heads.begin(), heads.end(), head);
  if (place == heads.end() || !trace.shows(Stage::weights, layer)) {
    base::fail("weights", fmt::format("recorded weights of layer {} head {}", layer, head), "none",
               "record the stage weights of this layer and head");
  }
  return std::make_shared<OneHead>(layer_weights(trace, layer), static_cast<size_t>(place - heads.begin()));
}

ShownWeights joined(ShownWeights weights, Grouping grouping) {
  return std::make_shared<Joined>(std::move(weights), std::move(grouping));
}

ShownWeights only_tokens(ShownWeights weights, std::vector<size_t> kept) {
  return std::make_shared<OnlyTokens>(std::move(weights), std::move(kept));
}

std::vector<float> row_of(const capture::WeightSource& weights, size_t query) {
  std::vector<float> row(weights.key_len());
  weights.row(0, 0, query, row);
  return row;
}

}  // namespace clearhead::views
