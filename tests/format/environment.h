// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdlib.h>

#include <map>
#include <optional>
#include <string>

namespace clearhead::tests {

// Sets or removes environment variables and puts them back at the end of the scope.
class Environment {
 public:
  Environment() = default;
  ~Environment() {
    for (const auto& [name, value] : before_) apply(name, value);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  void set(const std::string& name, std::optional<std::string> value) {
    const char* now = ::getenv(name.c_str());
    before_.emplace(name, now != nullptr ? std::optional<std::string>(now) : std::nullopt);
    apply(name, value);
  }

 private:
  static void apply(const std::string& name, const std::optional<std::string>& value) {
    if (value) {
      ::setenv(name.c_str(), value->c_str(), 1);
    } else {
      ::unsetenv(name.c_str());
    }
  }

  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace clearhead::tests
