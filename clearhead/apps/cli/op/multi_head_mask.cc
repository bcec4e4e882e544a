// SPDX-License-Identifier: Apache-2.0
#include "clearhead/apps/cli/op/multi_head_mask.h"

#include <fmt/format.h>

#include <limits>
#include <vector>

#include "clearhead/base/error.h"

namespace clearhead::apps {
namespace {

using tensor::DType;

constexpr double kForbidden = -std::numeric_limits<double>::infinity();

// A mask as numbers to add.
std::vector<double> additive(std::string_view name, const tensor::TensorView& view) {
  if (view.dtype() != DType::bool_ && !tensor::is_floating(view.dtype())) {
    base::refuse("op multi_head_attention", fmt::format("{} of type BOOL, F32, F16, BF16 or F64", name),
                 std::string(tensor::name_of(view.dtype())));
  }
  const tensor::Tensor numbers = tensor::to_dtype(view, DType::f64);
  std::vector<double> added(numbers.as<double>().begin(), numbers.as<double>().end());
  if (view.dtype() == DType::bool_) {
    for (double& value : added) value = value != 0 ? kForbidden : 0.0;
  }
  return added;
}

template <class Real>
class Combined {
 public:
  Combined(const ModuleMasks& masks, const ModuleSizes& sizes, tensor::Tensor& values)
      : sizes_(sizes), causal_(masks.causal), values_(values) {
    if (masks.attention) attention_ = additive("attn_mask", *masks.attention);
    if (masks.padding) padding_ = additive("key_padding_mask", *masks.padding);
    per_head_ = masks.attention && masks.attention->shape().rank() == 3;
  }

  void fill() {
    const tensor::Shape& shape = values_.shape();
    const auto out = values_.template as<Real>();
    size_t at = 0;
    for (size_t batch = 0; batch < shape[0]; ++batch) {
      for (size_t head = 0; head < shape[1]; ++head) {
        for (size_t query = 0; query < shape[2]; ++query) {
          for (size_t key = 0; key < shape[3]; ++key) out[at++] = static_cast<Real>(sum(batch, head, query, key));
        }
      }
    }
  }

 private:
  double sum(size_t batch, size_t head, size_t query, size_t key) const {
    if (key >= sizes_.key_len) return 0;
    if (causal_ && key > query) return kForbidden;
    const size_t plane = per_head_ ? batch * sizes_.num_heads + head : 0;
    const double by_pair =
        attention_.empty() ? 0 : attention_[(plane * sizes_.query_len + query) * sizes_.key_len + key];
    const double by_key = padding_.empty() ? 0 : padding_[batch * sizes_.key_len + key];
    if (by_pair == kForbidden || by_key == kForbidden) return kForbidden;
    return by_pair + by_key;
  }

  ModuleSizes sizes_;
  bool causal_, per_head_ = false;
  std::vector<double> attention_, padding_;
  tensor::Tensor& values_;
};

}  // namespace

tensor::Tensor combine_masks(const Inputs& inputs, const ModuleMasks& masks, const ModuleSizes& sizes,
                             tensor::DType real) {
  const bool per_head = masks.attention && masks.attention->shape().rank() == 3;
  if (per_head) {
    inputs.check_shape("attn_mask", *masks.attention, {sizes.batch * sizes.num_heads, sizes.query_len, sizes.key_len},
                       "[batch * num_heads, query, key]");
  } else if (masks.attention) {
    inputs.check_shape("attn_mask", *masks.attention, {sizes.query_len, sizes.key_len}, "[query, key]");
  }
  const size_t batch = per_head || masks.padding ? sizes.batch : 1;
  tensor::Tensor values(real, {batch, per_head ? sizes.num_heads : 1, sizes.query_len, sizes.key_len + sizes.appended});
  if (real == DType::f64) {
    Combined<double>(masks, sizes, values).fill();
  } else {
    Combined<float>(masks, sizes, values).fill();
  }
  return values;
}

}  // namespace clearhead::apps
