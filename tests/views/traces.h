// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clearhead/capture/trace.h"
#include "tests/support/temporary_folder.h"

namespace clearhead::tests {

// Tokens separated by single spaces of the text; those in square brackets are special.
inline std::vector<capture::TraceToken> tokens_of(const std::vector<std::string>& texts) {
  std::vector<capture::TraceToken> tokens;
  size_t at = 0;
  for (const std::string& text : texts) {
    capture::TraceToken token;
    token.text = token.piece = text;
    token.id = static_cast<int64_t>(tokens.size());
    token.special = text.front() == '[' && text.back() == ']' && text.size() > 2;
    if (!token.special) {
      token.begin = at;
      token.end = at + text.size();
      at = token.end + 1;
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

inline capture::TraceInfo info_of(std::vector<capture::TraceToken> tokens, size_t num_layers, size_t num_heads) {
  capture::TraceInfo info;
  info.model = "minilm";
  for (const auto& token : tokens)
    if (!token.special) info.text += (info.text.empty() ? "" : " ") + token.text;
  info.tokens = std::move(tokens);
  info.num_layers = num_layers;
  info.num_heads = num_heads;
  for (size_t i = 0; i < num_layers; ++i) info.layers.push_back(i);
  for (size_t i = 0; i < num_heads; ++i) info.heads.push_back(i);
  return info;
}

// A trace of one layer. Shapes: weights of each head [seq, seq].
inline capture::Trace trace_of(const std::vector<std::string>& texts, const std::vector<std::vector<float>>& heads,
                               const std::string& attention = "") {
  const size_t n = texts.size();
  capture::TraceInfo info = info_of(tokens_of(texts), 1, heads.size());
  info.attention = attention;
  capture::Trace trace(std::move(info));
  tensor::Tensor weights(tensor::Shape{1, heads.size(), n, n});
  for (size_t h = 0; h < heads.size(); ++h)
    std::copy(heads[h].begin(), heads[h].end(), weights.as<float>().begin() + static_cast<std::ptrdiff_t>(h * n * n));
  trace.add(capture::Stage::weights, 0, std::move(weights));
  return trace;
}

// All weights of minilm on "The cat sat on the mat", as PyTorch has them (golden/make_minilm_weights.py).
inline capture::Trace cat_trace() {
  const std::vector<int64_t> ids{101, 1996, 4937, 2938, 2006, 1996, 13523, 102};
  auto tokens = tokens_of({"[CLS]", "the", "cat", "sat", "on", "the", "mat", "[SEP]"});
  for (size_t i = 0; i < ids.size(); ++i) tokens[i].id = ids[i];
  capture::Trace trace(info_of(std::move(tokens), 6, 12));
  const std::string bytes = read_bytes(CLEARHEAD_TEST_DATA "/cat_sat_mat.f32");
  constexpr size_t kLayerBytes = 12 * 8 * 8 * sizeof(float);
  if (bytes.size() != 6 * kLayerBytes) throw std::runtime_error("cat_sat_mat.f32 has another size");
  for (size_t layer = 0; layer < 6; ++layer) {
    tensor::Tensor weights(tensor::Shape{1, 12, 8, 8});
    std::memcpy(weights.bytes().data(), bytes.data() + layer * kLayerBytes, kLayerBytes);
    trace.add(capture::Stage::weights, layer, std::move(weights));
  }
  return trace;
}

// Weights without a model: row i of head h looks at key (i + h) mod n with weight 3/4 and at the others alike.
inline capture::Trace cyclic_trace(const std::vector<std::string>& texts, size_t num_layers, size_t num_heads) {
  const size_t n = texts.size();
  capture::Trace trace(info_of(tokens_of(texts), num_layers, num_heads));
  for (size_t layer = 0; layer < num_layers; ++layer) {
    tensor::Tensor weights(tensor::Shape{1, num_heads, n, n});
    const auto values = weights.as<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t head = i / (n * n), query = i / n % n, key = i % n;
      const float others = n > 1 ? 0.25F / static_cast<float>(n - 1) : 0;
      values[i] = key == (query + head + layer) % n ? 1 - others * static_cast<float>(n - 1) : others;
    }
    trace.add(capture::Stage::weights, layer, std::move(weights));
  }
  return trace;
}

// The Chinese sentence of the textbook, and emoji and combining marks after it.
inline std::vector<std::string> wide_texts() {
  return {"[CLS]",
          "\u5c0f",
          "\u660e",
          "\u5728",
          "\u56fe\u4e66\u9986",
          "\u501f",
          "\u4e86",
          "\u4e00\u672c",
          "\u539a",
          "\u7684",
          "\u4e66",
          "\u3002",
          "\U0001F431",
          "\U0001F469\u200D\U0001F469\u200D\U0001F467",
          "\u2764\uFE0F",
          "e\u0301",
          "[SEP]"};
}

// The text without escape sequences of colour.
inline std::string without_colors(std::string_view text) {
  std::string output;
  while (!text.empty()) {
    const size_t escape = std::min(text.find("\x1b["), text.size());
    output += text.substr(0, escape);
    const size_t end = text.find('m', escape);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return output;
}

inline std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return lines;
}

}  // namespace clearhead::tests
