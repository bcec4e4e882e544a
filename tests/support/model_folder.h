// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "clearhead/format/known_models.h"

namespace clearhead::tests {

// The folder of a known model for tests: where $`variable` says, else where `clearhead fetch NAME` puts it. A test that
// needs the model fails without it.
inline std::filesystem::path model_folder(const std::string& name, const char* variable) {
  const char* place = std::getenv(variable);
  const std::filesystem::path folder =
      place != nullptr && *place != '\0' ? std::filesystem::path(place) : format::model_home() / "models" / name;
  std::error_code missing;
  if (!std::filesystem::exists(folder / "config.json", missing)) {
    throw std::runtime_error("this test needs the model " + name + " in " + folder.string() +
                             ": run `clearhead fetch " + name + "` or set " + variable + " to its folder");
  }
  return folder;
}

inline std::filesystem::path minilm_folder() { return model_folder("minilm", "CLEARHEAD_MODEL_MINILM"); }

inline std::filesystem::path e5_folder() {
  return model_folder("multilingual-e5-small", "CLEARHEAD_MODEL_MULTILINGUAL_E5_SMALL");
}

// The file of a known model that is one file, likewise.
inline std::filesystem::path model_file(const std::string& name, const char* variable) {
  const char* place = std::getenv(variable);
  const format::KnownModel& model = *format::find_known_model(name);
  const std::filesystem::path file = place != nullptr && *place != '\0'
                                         ? std::filesystem::path(place)
                                         : format::model_home() / "models" / model.name / model.main_file;
  std::error_code missing;
  if (!std::filesystem::exists(file, missing)) {
    throw std::runtime_error("this test needs " + file.string() + ": run `clearhead fetch " + name + "` or set " +
                             variable + " to it");
  }
  return file;
}

inline std::filesystem::path smollm2_file() { return model_file("smollm2-135m-instruct", "CLEARHEAD_MODEL_SMOLLM2"); }

}  // namespace clearhead::tests
