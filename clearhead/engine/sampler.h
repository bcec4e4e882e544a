// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <span>

namespace clearhead::engine {

// How the next token is drawn from its logits z. In this order:
//
//   repetition_penalty r   tokens of the text so far: z / r where z > 0, z r elsewhere      (Keskar et al. 2019)
//   temperature t          0: the token of the largest z, the first of equals; else z / t
//   top_k                  the k largest; 0: all
//   min_p                  those whose probability is at least min_p times the largest
//   top_p                  the fewest, largest first, whose probabilities sum to top_p       (Holtzman et al. 2019)
struct Sampling {
  double temperature = 0;
  size_t top_k = 0;
  double top_p = 1, min_p = 0;
  double repetition_penalty = 1;
  uint64_t seed = 0;

  // Throws: Error (usage) naming what is out of its range.
  void check() const;
};

// Which tokens may be drawn. A model may have rows for more tokens than its tokenizer has pieces: those that stand for
// nothing are never drawn, but for one that ends the text.
struct Choices {
  size_t num_pieces = std::numeric_limits<size_t>::max();  // tokens below it have a piece, but for the holes
  std::set<int64_t> holes = {}, end_ids = {};

  bool contains(size_t id) const;
};

// Draws one token after the other: the same for the same logits, settings and seed, on every machine.
class Sampler {
 public:
  explicit Sampler(const Sampling& sampling, Choices choices = {});

  // Index of the chosen logit. seen: tokens of the text so far. Throws: Error if no logit of a choice is a number.
  size_t pick(std::span<const float> logits, std::span<const int64_t> seen);

 private:
  // A number in [0, 1), the next of the seed's.
  double next_uniform();

  Sampling sampling_;
  Choices choices_;
  uint64_t drawn_ = 0;
};

}  // namespace clearhead::engine
