// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/text_error.h"

#include <fmt/format.h>

namespace clearhead::engine {

void throw_about(std::string_view text_name) {
  try {
    throw;
  } catch (const TextTooLong& error) {
    throw TextTooLong(error.fault(), fmt::format("{}: {}", text_name, error.what()));
  } catch (const base::Error& error) {
    throw base::Error(error.fault(), fmt::format("{}: {}", text_name, error.what()));
  }
}

}  // namespace clearhead::engine
