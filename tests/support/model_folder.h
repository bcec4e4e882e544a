// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "clearhead/format/known_models.h"

namespace clearhead::tests {

// The folder of minilm for tests: $CLEARHEAD_MODEL_MINILM, else where `clearhead fetch minilm` puts it. A test that
// needs the model fails without it.
inline std::filesystem::path minilm_folder() {
  const char* variable = std::getenv("CLEARHEAD_MODEL_MINILM");
  const std::filesystem::path folder = variable != nullptr && *variable != '\0'
                                           ? std::filesystem::path(variable)
                                           : format::model_home() / "models" / "minilm";
  std::error_code missing;
  if (!std::filesystem::exists(folder / "config.json", missing)) {
    throw std::runtime_error("this test needs the model minilm in " + folder.string() +
                             ": run `clearhead fetch minilm` or set CLEARHEAD_MODEL_MINILM to its folder");
  }
  return folder;
}

}  // namespace clearhead::tests
