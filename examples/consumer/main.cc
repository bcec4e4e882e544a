// SPDX-License-Identifier: Apache-2.0
// Rounds a number to half precision and says how far that is from the truth.
#include <clearhead/base/error.h>
#include <clearhead/tensor/compare.h>

#include <iostream>

int main() try {
  using namespace clearhead;
  tensor::Tensor third(tensor::Shape{1});
  third.as<float>()[0] = 1.0f / 3;
  const tensor::Tensor half = to_dtype(third, tensor::DType::f16);
  std::cout << "1/3 as F16 is off by " << tensor::compare(half, third).max_abs << '\n';
  return 0;
} catch (const clearhead::base::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
