// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "clearhead/attention/multi_head_attention.h"
#include "clearhead/model/transformer.h"

namespace clearhead::engine {

// A model made of documented pseudo-random parameters: needs no file. One layer, attention only, no norms, no biases,
// sinusoidal positions.
struct ToyConfig {
  size_t d_model = 512;
  size_t num_heads = 8;
  uint64_t seed = 7;
  attention::Split split = attention::Split::projection;

  static constexpr size_t kMaxWidth = 4096;

  // Throws: Error (usage) unless d_model is at most kMaxWidth and a multiple of num_heads.
  void check() const;

  // "toy d_model=512 heads=8 seed=7 split=projection", and back. Nothing if the text does not begin with the word toy;
  // what is not said keeps its default. Throws: Error (usage) for a setting that does not exist, twice or with a value
  // that does not fit.
  std::string text() const;
  static std::optional<ToyConfig> parse(std::string_view text);
};

// Number index of the sequence called name, standard normal. All arithmetic on integers modulo 2^64, on reals in
// double:
//
//   fnv(name): h = 0xcbf29ce484222325; for each byte: h = (h xor byte) * 0x100000001b3
//   mix(z):    z = (z xor z >> 30) * 0xbf58476d1ce4e5b9; z = (z xor z >> 27) * 0x94d049bb133111eb; z xor z >> 31
//   word(n) = mix(mix(seed + fnv(name)) + (n + 1) * 0x9e3779b97f4a7c15)
//   u = ((word(2 index) >> 11) + 1) / 2^53        v = (word(2 index + 1) >> 11) / 2^53
//   number = sqrt(-2 ln u) cos(2 pi v)
//
// Source: FNV-1a by Fowler, Noll and Vo; Steele, Lea and Flood 2014, SplitMix64; Box and Muller 1958.
double toy_normal(uint64_t seed, std::string_view name, uint64_t index);

// The same numbers times deviation, rounded once to float: values[i] is number first + i.
void fill_toy_normal(uint64_t seed, std::string_view name, uint64_t first, double deviation, std::span<float> values);

// The toy's parameters, elements numbered row by row:
//
//   token_embedding [vocab_size, d_model]                      deviation 1
//   query, key, value [d_model, d_model] ([out, in])           deviation 1 / sqrt(d_model)
//     with Split::input [num_heads, head_dim, head_dim]        deviation 1 / sqrt(head_dim)
//   output [d_model, d_model]                                  deviation 1 / sqrt(d_model)
//
// Throws: as ToyConfig::check.
model::Transformer make_toy(const ToyConfig& config, size_t vocab_size);

}  // namespace clearhead::engine
