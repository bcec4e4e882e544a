// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <stdlib.h>

#include <rapidcheck.h>
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "clearhead/base/utf8.h"
#include "clearhead/format/safetensors.h"
#include "clearhead/tensor/compare.h"
#include "tests/format/safetensors_text.h"
#include "tests/support/temporary_folder.h"

namespace clearhead::format {
namespace {

using tensor::DType;

// The same cases in every run; RC_PARAMS in the environment draws others.
const int kSeeded = ::setenv("RC_PARAMS", "seed=20250101", 0);

std::string any_text() {
  std::string text;
  for (const char32_t value : *rc::gen::container<std::u32string>(rc::gen::inRange<char32_t>(0, 0x11000))) {
    if (value < 0xd800 || value > 0xdfff) base::append_utf8(text, value);
  }
  return text;
}

tensor::Tensor any_tensor() {
  constexpr std::array kTypes{DType::f32, DType::f16, DType::bf16, DType::f64,
                              DType::i64, DType::i32, DType::u8,   DType::bool_};
  const DType dtype = *rc::gen::elementOf(kTypes);
  const auto sizes = *rc::gen::resize(4, rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, 5)));
  tensor::Tensor values(dtype, tensor::Shape(sizes));
  for (std::byte& byte : values.bytes()) byte = std::byte{*rc::gen::arbitrary<uint8_t>()};
  return values;
}

TEST(SafetensorsProperty, RoundTrip) {
  ASSERT_EQ(kSeeded, 0);
  const tests::TemporaryFolder folder;
  const bool holds = rc::check("what is written is read back to the bit", [&] {
    std::map<std::string, tensor::Tensor> tensors;
    for (size_t i = *rc::gen::inRange<size_t>(0, 6); i > 0; --i) tensors.insert_or_assign(any_text(), any_tensor());
    std::map<std::string, std::string> metadata;
    for (size_t i = *rc::gen::inRange<size_t>(0, 3); i > 0; --i) metadata.insert_or_assign(any_text(), any_text());

    std::vector<NamedTensor> named;
    for (const auto& [name, values] : tensors) named.push_back({name, values});
    write_safetensors(folder / "m", named, metadata);
    const auto file = SafetensorsFile::open(folder / "m");
    RC_ASSERT(file.entries().size() == tensors.size());
    RC_ASSERT(file.metadata() == metadata);
    for (const auto& [name, values] : tensors) RC_ASSERT(tensor::same_bits(file.view(name), values));
  });
  EXPECT_TRUE(holds);
}

TEST(SafetensorsProperty, DamageIsAnErrorOrAnotherValidFile) {
  const tests::TemporaryFolder folder;
  const tensor::Tensor a({2, 3}), b(DType::u8, {5});
  write_safetensors(folder / "m", std::array<NamedTensor, 2>{{{"a", a}, {"b", b}}}, {{"k", "v"}});
  const std::string good = tests::read_bytes(folder / "m");
  size_t refused = 0;
  const bool holds = rc::check("a changed byte is refused, or the entries still tile the data", [&] {
    std::string bad = good;
    bad[*rc::gen::inRange<size_t>(0, good.size())] = *rc::gen::arbitrary<char>();
    bad.resize(*rc::gen::element(good.size(), good.size() - 1, good.size() / 2));
    try {
      const auto header = tests::parse_header(bad);
      size_t at = 0;
      for (const TensorEntry& entry : header.entries) {
        RC_ASSERT(entry.begin == at);
        at = entry.end;
      }
      RC_ASSERT(header.data_begin + at == bad.size());
    } catch (const base::Error&) {
      ++refused;
    }
  });
  EXPECT_TRUE(holds);
  EXPECT_GT(refused, 0u);
}

}  // namespace
}  // namespace clearhead::format
