// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/reference_multi_head.h"

#include <algorithm>

#include "clearhead/attention/sizes.h"

namespace clearhead::attention {
namespace {

// y = x W^T + b. Shapes: x [rows, in]; result [rows, out].
std::vector<double> project(std::string_view name, std::span<const double> x, size_t rows, size_t out,
                            const ReferenceProjection& projection) {
  const size_t in = projection.weight.size() / out;
  check_size(name, {out, in}, projection.weight.size());
  check_size(name, {rows, in}, x.size());
  if (!projection.bias.empty()) check_size(name, {out}, projection.bias.size());
  std::vector<double> y(tensor::Shape{rows, out}.elements());
  for (size_t row = 0; row < rows; ++row) {
    for (size_t o = 0; o < out; ++o) {
      double sum = projection.bias.empty() ? 0.0 : projection.bias[o];
      for (size_t i = 0; i < in; ++i) sum += x[row * in + i] * projection.weight[o * in + i];
      y[row * out + o] = sum;
    }
  }
  return y;
}

// Each sequence of rows followed by the appended rows. Shapes: rows [batch, len, width]; appended [extra, width].
std::vector<double> append(std::span<const double> rows, size_t batch, std::span<const double> appended) {
  std::vector<double> all;
  const size_t sequence = batch == 0 ? 0 : rows.size() / batch;
  for (size_t b = 0; b < batch; ++b) {
    const auto one = rows.subspan(b * sequence, sequence);
    all.insert(all.end(), one.begin(), one.end());
    all.insert(all.end(), appended.begin(), appended.end());
  }
  return all;
}

}  // namespace

ReferenceMultiHeadOutput reference_multi_head_attention(const AttentionConfig& config,
                                                        const ReferenceParameters& parameters,
                                                        const ReferenceMultiHeadInput& input) {
  config.check();
  const size_t query_rows = input.batch * input.query_len, key_rows = input.batch * input.key_len;
  const size_t key_width = config.num_kv_heads * config.head_dim, value_width = config.num_kv_heads * config.value_dim;
  ReferenceMultiHeadOutput output;
  output.query = project("query", input.query, query_rows, config.num_heads * config.head_dim, parameters.query);
  output.key =
      append(project("key", input.key, key_rows, key_width, parameters.key), input.batch, parameters.appended_key);
  output.value = append(project("value", input.value, key_rows, value_width, parameters.value), input.batch,
                        parameters.appended_value);
  const size_t appended = parameters.appended_key.size() / key_width;
  output.attention = reference_attention(config, {input.batch, input.query_len, input.key_len + appended, output.query,
                                                  output.key, output.value, input.mask});
  const size_t d_model = parameters.output.weight.size() / (config.num_heads * config.value_dim);
  output.attention_output =
      project("head_output", output.attention.head_output, query_rows, d_model, parameters.output);
  return output;
}

}  // namespace clearhead::attention
