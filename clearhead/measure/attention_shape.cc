// SPDX-License-Identifier: Apache-2.0
#include "clearhead/measure/attention_shape.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "clearhead/base/error.h"

namespace clearhead::measure {
namespace {

constexpr size_t kLargestSize = 1 << 20;

// Takes a number off the front of the text.
std::optional<size_t> take_number(std::string_view& text) {
  size_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value == 0 || value > kLargestSize) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(rest - text.data()));
  return value;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

std::optional<AttentionShape> read(std::string_view text) {
  const auto batch = take_number(text);
  if (!batch || !take(text, "x")) return std::nullopt;
  const auto heads = take_number(text);
  if (!heads) return std::nullopt;
  const auto kv_heads = take(text, "/") ? take_number(text) : heads;
  if (!kv_heads || *heads % *kv_heads != 0 || !take(text, " ")) return std::nullopt;
  const auto queries = take_number(text);
  if (!queries) return std::nullopt;
  const auto keys = take(text, " of ") ? take_number(text) : queries;
  if (!keys || *keys < *queries || !take(text, " ")) return std::nullopt;
  const auto head_dim = take_number(text);
  const bool causal = take(text, " causal");
  if (!head_dim || !text.empty()) return std::nullopt;
  return AttentionShape{*batch, *heads, *kv_heads, *queries, *keys, *head_dim, causal};
}

constexpr AttentionShape kShapes[] = {
    {1, 8, 8, 64, 64, 64, false},     {1, 12, 12, 128, 128, 32, false},  {1, 12, 12, 512, 512, 32, false},
    {1, 9, 3, 512, 512, 64, true},    {1, 9, 3, 2048, 2048, 64, true},   {1, 9, 3, 8192, 8192, 64, true},
    {1, 9, 3, 2048, 2048, 64, false}, {32, 12, 12, 128, 128, 32, false}, {1, 9, 3, 1, 4096, 64, false},
};

}  // namespace

AttentionShape AttentionShape::parse(std::string_view text) {
  if (const auto shape = read(text)) return *shape;
  base::refuse("attention shape", "BATCHxHEADS[/KV_HEADS] LENGTH HEAD_DIM [causal], such as \"1x9/3 512 64 causal\"",
               base::quoted(text));
}

std::string AttentionShape::text() const {
  std::string text = fmt::format("{}x{}", batch, num_heads);
  if (num_kv_heads != num_heads) text += fmt::format("/{}", num_kv_heads);
  text += query_len == key_len ? fmt::format(" {}", key_len) : fmt::format(" {} of {}", query_len, key_len);
  return text + fmt::format(" {}{}", head_dim, causal ? " causal" : "");
}

double AttentionShape::operations() const {
  return (causal ? 2.0 : 4.0) * double(batch * num_heads) * double(query_len) * double(key_len * head_dim);
}

attention::AttentionConfig AttentionShape::config() const {
  attention::AttentionConfig config;
  config.num_heads = num_heads;
  config.num_kv_heads = num_kv_heads;
  config.head_dim = config.value_dim = head_dim;
  config.causal = causal ? attention::Causal::offset : attention::Causal::none;
  config.key_offset = attention::bottom_right(query_len, key_len);
  return config;
}

std::span<const AttentionShape> attention_shapes() { return kShapes; }

}  // namespace clearhead::measure
