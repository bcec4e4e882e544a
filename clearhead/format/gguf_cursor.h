// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "clearhead/base/error.h"

namespace clearhead::format {

// Reads a file from front to back and never past its end.
class GgufCursor {
 public:
  GgufCursor(std::span<const std::byte> file, std::string_view where) : file_(file), where_(where) {}

  size_t at() const { return at_; }
  size_t remaining() const { return file_.size() - at_; }
  std::string_view where() const { return where_; }

  // what names the part in errors.
  std::span<const std::byte> take(size_t bytes, std::string_view what) {
    if (bytes > remaining()) {
      base::fail(where_, fmt::format("{} bytes of {} at byte {}", bytes, what, at_),
                 fmt::format("an end of the file after {} of them", remaining()), "the file was cut off");
    }
    const auto part = file_.subspan(at_, bytes);
    at_ += bytes;
    return part;
  }

  template <class T>
  T number(std::string_view what) {
    T value;
    std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
    return value;
  }

  // A count of things that take at least least bytes each, so that no more of them can follow than the file has room
  // for. Throws also for a count that is negative as the format means it.
  size_t count(std::string_view what, size_t least) {
    const auto value = number<uint64_t>(what);
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) || value > remaining() / least) {
      base::fail(where_, fmt::format("{}: at most {}, for which the file has room", what, remaining() / least),
                 fmt::format("{}", value), "the file is damaged");
    }
    return static_cast<size_t>(value);
  }

  std::string_view string(std::string_view what, size_t most) {
    const auto length = number<uint64_t>(what);
    if (length > most) {
      base::fail(where_, fmt::format("{} of at most {} bytes", what, most), fmt::format("{}", length),
                 "the file is damaged");
    }
    const auto bytes = take(static_cast<size_t>(length), what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  std::span<const std::byte> file_;
  std::string_view where_;
  size_t at_ = 0;
};

}  // namespace clearhead::format
