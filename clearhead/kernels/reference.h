// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

// The definition of everything: plain loops in double, in the order in which a textbook writes them. Tests and `verify`
// measure the fast kernels against these. Matrices are row-major; output must not overlap an input unless it says so.
namespace clearhead::kernels::reference {

// sum_i a_i b_i. Shapes: a, b [count].
double dot(std::span<const double> a, std::span<const double> b);

// y = W x + b. Shapes: input [in], weight [out, in], bias [out] or empty, output [out].
void linear(std::span<const double> input, std::span<const double> weight, std::span<const double> bias,
            std::span<double> output);

// y_i = (x_i - mean) / sqrt(variance + epsilon) * gain_i + bias_i with variance = mean((x - mean)^2).
// Shapes: all [d_model]; output may be input.
void layer_norm(std::span<const double> input, std::span<const double> gain, std::span<const double> bias,
                double epsilon, std::span<double> output);

// y_i = x_i / sqrt(mean(x^2) + epsilon) * gain_i. Shapes: all [d_model]; output may be input.
void rms_norm(std::span<const double> input, std::span<const double> gain, double epsilon, std::span<double> output);

// p_i = e^(x_i - max x) / sum_j e^(x_j - max x). Shapes: [count]; output may be input.
// Returns false, and zeros, if there is no element or every element is -inf.
bool softmax(std::span<const double> input, std::span<double> output);

// x Phi(x), Phi the normal distribution: x / 2 erfc(-x / sqrt 2).
double gelu(double x);
// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), as x / (1 + e^-2(...)).
double gelu_tanh(double x);
// x / (1 + e^-x).
double silu(double x);
// max(x, 0); NaN stays NaN.
double relu(double x);

// The rotation of rotary.h, by pairs (i, i + count) or interleaved (2 i, 2 i + 1), in place.
// Shapes: head [at least 2 count]; cosines, sines [count].
void rotate(std::span<double> head, std::span<const double> cosines, std::span<const double> sines, bool interleaved);

// Scores of one query with all keys: s_j = scale q . k_j.
// Shapes: query [head_dim], keys [key_len, head_dim], scores [key_len]. Units: natural.
void attention_scores(std::span<const double> query, std::span<const double> keys, double scale,
                      std::span<double> scores);

// softmax over the keys that may be seen; 0 for the others. Shapes: scores, weights [key_len]; visible [key_len], 0 for
// a key that may not be seen, or empty if all may. Returns false if nothing is seen.
bool attention_weights(std::span<const double> scores, std::span<const uint8_t> visible, std::span<double> weights);

// o = sum_j p_j v_j over the keys that may be seen: others are left out, not multiplied by 0.
// Shapes: weights, visible as above; values [key_len, head_dim], output [head_dim].
void weighted_sum(std::span<const double> weights, std::span<const uint8_t> visible, std::span<const double> values,
                  std::span<double> output);

}  // namespace clearhead::kernels::reference
