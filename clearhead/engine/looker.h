// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "clearhead/capture/observer.h"
#include "clearhead/capture/weight_source.h"

namespace clearhead::engine {

// Where one head looked when a token was chosen.
struct Look {
  size_t layer, head;
  size_t key;  // token of prompt and continuation together
  float weight;
  double strength;
};

// Finds where heads look hardest from the last row of a run, by the rule that tells of links between words:
//
//   strength = weight (1 - what the row gives to tokens on which heads rest)
//
// of each head's largest weight on a token on which heads do not rest and which is not the one that looks. Heads rest
// on the first token and on those of the list. A layer gives its strongest head. May be shared by all layers of a run.
class Looker : public capture::Observer {
 public:
  // resting [tokens known so far]: whether heads rest there; tokens behind them are none.
  Looker(size_t wanted, std::vector<uint8_t> resting);

  bool wants(capture::Stage stage, size_t layer) const override;
  void observe(capture::Stage stage, size_t layer, const tensor::TensorView& values) override;
  void observe_source(capture::Stage stage, size_t layer, const capture::WeightSource& source) override;

  // The strongest of the last run, at most as many as wanted, strongest first.
  std::vector<Look> take();

 private:
  // The last row of a head; weight 0 if it looks at nothing. Shapes: row [keys].
  Look look(std::span<const float> row, size_t layer, size_t head) const;
  void keep_strongest();

  size_t wanted_;
  std::vector<size_t> resting_;           // places, rising
  std::vector<std::vector<float>> rows_;  // [threads] of their heads, [heads, keys]
  std::vector<Look> of_heads_, looks_;
};

}  // namespace clearhead::engine
