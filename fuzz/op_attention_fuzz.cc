// SPDX-License-Identifier: Apache-2.0
// Shapes, types, masks, caches and attributes of the operator Attention, drawn from any bytes: either it is refused by
// an Error of one line, or weights sum to 1, and what it says about rows is what its weights say.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "clearhead/apps/cli/op/operators.h"
#include "clearhead/base/error.h"
#include "clearhead/format/safetensors.h"
#include "clearhead/tensor/tensor.h"

namespace {

using namespace clearhead;

// Choices, as long as there are bytes; then always the first.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : data_(data, size) {}
  size_t below(size_t count) {
    if (data_.empty()) return 0;
    const size_t value = data_.front();
    data_ = data_.subspan(1);
    return value % count;
  }
  bool one_in(size_t count) { return below(count) + 1 == count; }

 private:
  std::span<const uint8_t> data_;
};

// A safetensors file in memory.
class Tensors {
 public:
  void add(const std::string& name, const std::string& type, const std::vector<size_t>& shape,
           const std::vector<std::byte>& bytes) {
    std::string sizes;
    for (size_t size : shape) sizes += fmt::format("{}{}", sizes.empty() ? "" : ",", size);
    header_ += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", header_.empty() ? "" : ",",
                           name, type, sizes, data_.size(), data_.size() + bytes.size());
    data_.insert(data_.end(), bytes.begin(), bytes.end());
  }

  void add_numbers(const std::string& name, const std::vector<size_t>& shape, Choices& choices) {
    constexpr float kSpecial[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 0.0f};
    const bool half = choices.one_in(8), special = choices.one_in(6);
    size_t count = 1, seed = choices.below(256);
    for (size_t size : shape) count *= size;
    std::vector<std::byte> bytes(count * (half ? 2 : 4));
    for (size_t i = 0; i < count; ++i) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      float value = static_cast<float>(seed >> 40) * 0x1p-22f - 2.0f;
      if (special && seed >> 60 == 0) value = kSpecial[(seed >> 50) % 6];
      const uint32_t bits = std::bit_cast<uint32_t>(value);
      const uint16_t upper = static_cast<uint16_t>(bits >> 16);
      half ? std::memcpy(&bytes[i * 2], &upper, 2) : std::memcpy(&bytes[i * 4], &bits, 4);
    }
    add(name, half ? "BF16" : "F32", shape, bytes);
  }

  void add_truths(const std::string& name, const std::vector<size_t>& shape, Choices& choices) {
    size_t count = 1, seed = choices.below(256);
    for (size_t size : shape) count *= size;
    std::vector<std::byte> bytes(count);
    for (std::byte& one : bytes) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      one = std::byte{static_cast<uint8_t>(seed >> 62 == 0 ? 0 : 1)};
    }
    add(name, "BOOL", shape, bytes);
  }

  format::SafetensorsFile file() const {
    std::string header = "{" + header_ + "}";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    std::vector<std::byte> bytes(8);
    const uint64_t size = header.size();
    std::memcpy(bytes.data(), &size, 8);
    const auto text = std::as_bytes(std::span(header));
    bytes.insert(bytes.end(), text.begin(), text.end());
    bytes.insert(bytes.end(), data_.begin(), data_.end());
    return format::SafetensorsFile::read(std::move(bytes), "fuzz");
  }

 private:
  std::string header_;
  std::vector<std::byte> data_;
};

Tensors draw_inputs(Choices& choices) {
  constexpr size_t kLengths[] = {5, 1, 16, 17, 70, 255, 256, 257, 300, 0};
  const size_t batch = 1 + choices.below(3), kv_heads = 1 + choices.below(3), heads = kv_heads * (1 + choices.below(3));
  const size_t queries = kLengths[choices.below(10)], keys = kLengths[choices.below(10)];
  const size_t dim = 1 + choices.below(20), value_dim = 1 + choices.below(20);
  Tensors inputs;
  inputs.add_numbers("Q", {batch, heads, queries, dim}, choices);
  inputs.add_numbers("K", {batch, kv_heads, keys, dim}, choices);
  inputs.add_numbers("V", {batch, kv_heads, keys, value_dim}, choices);
  size_t all = keys;
  if (choices.one_in(4)) {
    const size_t past = choices.below(40);
    inputs.add_numbers("past_key", {batch, kv_heads, past, dim}, choices);
    inputs.add_numbers("past_value", {batch, kv_heads, past, value_dim}, choices);
    all += past;
  } else if (choices.one_in(4)) {
    std::vector<std::byte> lengths(batch * 8);
    for (size_t i = 0; i < batch; ++i) {
      const uint64_t length = choices.below(all + 1);
      std::memcpy(&lengths[i * 8], &length, 8);
    }
    inputs.add("nonpad_kv_seqlen", "I64", {batch}, lengths);
  }
  if (choices.one_in(3))
    inputs.add_truths("attn_mask", {queries, all}, choices);
  else if (choices.one_in(3))
    inputs.add_numbers("attn_mask", {heads, queries, choices.one_in(2) ? 1 : all}, choices);
  inputs.add_truths("key_groups", {1 + choices.below(4), all + (choices.one_in(20) ? 1 : 0)}, choices);
  if (choices.one_in(20)) inputs.add_numbers("unknown", {1}, choices);
  return inputs;
}

std::string draw_attributes(Choices& choices) {
  std::string text = R"({"qk_matmul_output_mode": 3)";
  const auto add = [&](const char* name, auto value) { text += fmt::format(R"(, "{}": {})", name, value); };
  if (choices.one_in(2)) add("is_causal", choices.below(2));
  if (choices.one_in(3)) add("scale", 0.1 * static_cast<double>(choices.below(30)));
  if (choices.one_in(3)) add("softcap", static_cast<double>(choices.below(9)));
  if (choices.one_in(3)) add("left_window_size", static_cast<int>(choices.below(40)) - 1);
  if (choices.one_in(3)) add("right_window_size", static_cast<int>(choices.below(40)) - 1);
  if (choices.one_in(2)) add("top_k", choices.below(66));
  if (choices.one_in(2)) add("map_queries", choices.below(20));
  if (choices.one_in(2)) add("map_keys", choices.below(300));
  if (choices.one_in(20)) add("unknown", 1);
  return text + "}";
}

void require(bool holds) {
  if (!holds) std::abort();
}

bool near(double a, double b, double tolerance) { return std::isnan(a) ? std::isnan(b) : std::abs(a - b) <= tolerance; }

// What the outputs of one row say, against its weights.
void check_row(std::span<const float> weights, std::span<const float> top, float entropy) {
  std::vector<float> falling(weights.begin(), weights.end());
  const bool nan = std::ranges::any_of(falling, [](float weight) { return std::isnan(weight); });
  if (nan) return require(std::isnan(entropy) && std::ranges::all_of(top, [](float w) { return std::isnan(w); }));
  if (std::isnan(entropy)) return;  // every key of a row that is NaN is hidden
  double sum = 0, defined = 0;
  for (float weight : falling) {
    sum += weight;
    if (weight > 0) defined -= weight * std::log(double{weight});
  }
  require(sum == 0 || near(sum, 1, 1e-6));
  require(near(entropy, defined, 5e-5));
  std::ranges::sort(falling, std::greater<>());
  for (size_t k = 0; k < top.size(); ++k) require(near(top[k], k < falling.size() ? falling[k] : 0, 2e-7));
}

void check(const apps::Outputs& outputs) {
  const auto values = [&](const char* name) { return tensor::to_dtype(outputs.get(name), tensor::DType::f32); };
  const tensor::Tensor weights = values("qk_matmul_output"), top = values("top_weights"), entropy = values("entropy");
  const tensor::Tensor received = values("received"), map = values("map_sum");
  const size_t queries = weights.shape()[2], keys = weights.shape()[3], k = top.shape()[3];
  for (size_t row = 0; row < entropy.as<float>().size(); ++row) {
    check_row(weights.as<float>().subspan(row * keys, keys), top.as<float>().subspan(row * k, k),
              entropy.as<float>()[row]);
  }
  for (size_t head = 0; head < weights.shape()[0] * weights.shape()[1]; ++head) {
    double given = 0, seen = 0, pooled = 0;
    for (float weight : weights.as<float>().subspan(head * queries * keys, queries * keys)) given += weight;
    for (float sum : received.as<float>().subspan(head * keys, keys)) seen += sum;
    const size_t cells = map.shape()[2] * map.shape()[3];
    for (float sum : map.as<float>().subspan(head * cells, cells)) pooled += sum;
    require(near(given, seen, 1e-4) && (near(given, pooled, 1e-4) || std::isnan(pooled)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Choices choices(data, size);
  const format::SafetensorsFile file = draw_inputs(choices).file();
  const std::string json = draw_attributes(choices);
  const std::vector<std::string> wanted = {"Y",        "qk_matmul_output", "entropy",     "distance", "top_weights",
                                           "top_keys", "group_mass",       "map_maximum", "map_sum",  "received"};
  try {
    apps::Attributes attributes("op attention", json);
    apps::Inputs inputs("op attention", file);
    const apps::Outputs outputs = apps::attention_operator({"attention", {}, {}, json, wanted}, inputs, attributes);
    if (outputs.get("qk_matmul_output").dtype() == tensor::DType::f32) check(outputs);
  } catch (const base::Error& error) {
    require(std::string(error.what()).starts_with("[op attention] ") ||
            std::string(error.what()).starts_with("[attention"));
  }
  return 0;
}
