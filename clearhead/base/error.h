// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace clearhead::base {

// What a program should answer with: failure is exit code 1, usage is exit code 2.
enum class Fault { failure, usage };

// The one exception of the library, thrown at borders only (file, config, selection, command line).
// Text: `[where] expected X; found Y; what to do`.
class Error : public std::runtime_error {
 public:
  Error(Fault fault, const std::string& text) : std::runtime_error(text), fault_(fault) {}
  Fault fault() const { return fault_; }

 private:
  Fault fault_;
};

// Throws Error(Fault::failure): the data or the machine is at fault. advice may be empty.
[[noreturn]] void fail(std::string_view where, std::string_view expected, std::string_view found,
                       std::string_view advice = {});

// Throws Error(Fault::usage): the call is at fault.
[[noreturn]] void refuse(std::string_view where, std::string_view expected, std::string_view found,
                         std::string_view advice = {});

// A name or text of somebody else's, safe to print in one line: in double quotes; control characters, line separators,
// direction marks and invalid UTF-8 as \xNN; cut after max_bytes with "...".
std::string quoted(std::string_view text, size_t max_bytes = 80);

}  // namespace clearhead::base
