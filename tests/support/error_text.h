// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "clearhead/base/error.h"

namespace clearhead::tests {

// What action complains of: the text of the Error it throws, "usage: " in front if the call is at fault, or "no error".
template <class Action>
std::string error_text(const Action& action) {
  try {
    action();
  } catch (const base::Error& error) {
    return (error.fault() == base::Fault::usage ? "usage: " : "") + std::string(error.what());
  }
  return "no error";
}

}  // namespace clearhead::tests
