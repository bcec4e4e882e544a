// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "clearhead/kernels/rotary.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::model {

// How the frequencies of rotary positions are stretched for texts longer than those of the training. f_i is the plain
// inverse frequency base^(-2 i / dim), L the declared length of the text, O original_len, w_i = 2 pi / f_i its
// wavelength.
//   none
//   linear    f_i / factor
//   dynamic   another base when L > O: base (factor L / O - (factor - 1))^(dim / (dim - 2))
//   yarn      f_i where many turns fit into O, f_i / factor where few do, a ramp between: beta_fast and beta_slow turns
//   llama3    f_i / factor for w_i > O / low, f_i for w_i < O / high, between the two what lies between
//   longrope  f_i / short_factors_i up to O, f_i / long_factors_i above
enum class RotaryScaling { none, linear, dynamic, yarn, llama3, longrope };

// Rotary positions: behaviours, filled in by families/.
// Source: Su et al. 2021, RoFormer; Peng et al. 2023, YaRN; Ding et al. 2024, LongRoPE.
struct RotaryConfig {
  size_t dim = 0;  // leading elements of a head that are rotated; even
  kernels::RotaryLayout layout = kernels::RotaryLayout::halves;
  double base = 10000;
  RotaryScaling scaling = RotaryScaling::none;
  double factor = 1;
  size_t original_len = 0;
  double low_factor = 1, high_factor = 4;       // llama3
  double beta_fast = 32, beta_slow = 1;         // yarn
  bool whole_ramp = true;                       // yarn: the ends of the ramp are whole numbers
  std::optional<double> attention_factor = {};  // of cosines and sines; absent: what yarn or longrope imply
  double mscale = 0, mscale_all_dim = 0;        // yarn: 0: not given
  std::vector<double> short_factors = {}, long_factors = {};  // [dim / 2] longrope

  // Whether a longer text turns its first tokens otherwise: all parts of a text must be turned for one length then.
  bool depends_on_length() const { return scaling == RotaryScaling::dynamic || scaling == RotaryScaling::longrope; }
  // What cosines and sines are multiplied by.
  double effective_attention_factor() const;
  // Throws: Error naming what does not fit. head_dim is what dim must fit into.
  void check(size_t head_dim) const;
};

// The angle by which pair i turns from one position to the next, for a text declared to have declared_len
// tokens. divisors [dim / 2] divide them once more; empty: no.
// Shapes: result [dim / 2].
std::vector<double> rotary_frequencies(const RotaryConfig& config, size_t declared_len,
                                       std::span<const float> divisors = {});

// Cosines and sines of the positions [first, first + count) of a text declared to have declared_len tokens, computed in
// double and rounded once.
struct RotaryTable {
  kernels::RotaryLayout layout = kernels::RotaryLayout::halves;
  tensor::Tensor cosines, sines;  // [count, dim / 2]
};
RotaryTable rotary_table(const RotaryConfig& config, size_t declared_len, size_t first, size_t count,
                         std::span<const float> divisors = {});

}  // namespace clearhead::model
