// SPDX-License-Identifier: Apache-2.0
#include "clearhead/format/safetensors_json.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "clearhead/base/error.h"

namespace clearhead::format {
namespace {

// Receives the events of the JSON reader. The state is what the next value has to be.
class HeaderReader {
 public:
  HeaderReader(SafetensorsHeader& header, std::string_view where) : header_(header), where_(where) {}

  bool null() { return scalar("null"); }
  bool boolean(bool value) { return scalar(value ? "true" : "false"); }
  bool number_integer(int64_t value) { return scalar(fmt::format("{}", value)); }
  bool number_float(double, const std::string& text) { return scalar(base::quoted(text)); }
  bool number_unsigned(uint64_t value) {
    if (state_ == State::shape_size) {
      if (sizes_.size() == kMaxAxes) reject(fmt::format("a shape of at most {} axes", kMaxAxes), "more");
      sizes_.push_back(value);
      return true;
    }
    if (state_ == State::offset) {
      if (offset_count_ == 2) reject("two data_offsets", "more");
      offsets_[offset_count_++] = value;
      return true;
    }
    return scalar(fmt::format("{}", value));
  }
  bool string(std::string& value) {
    if (state_ == State::dtype) {
      dtype_name_ = std::move(value);
      state_ = State::field;
    } else if (state_ == State::metadata_value) {
      header_.metadata[key_] = std::move(value);
      state_ = State::metadata_key;
    } else {
      return scalar(base::quoted(value));
    }
    return true;
  }
  bool binary(nlohmann::json::binary_t&) { return scalar("binary data"); }

  bool start_object(size_t) {
    enter();
    if (state_ == State::root) {
      state_ = State::name;
    } else if (state_ == State::entry) {
      state_ = State::field;
    } else if (state_ == State::metadata) {
      state_ = State::metadata_key;
    } else if (state_ != State::ignored) {
      reject(wanted(), "an object");
    }
    return true;
  }

  bool end_object() {
    --depth_;
    if (state_ == State::ignored) return leave_ignored();
    if (state_ == State::field) finish_entry();
    state_ = State::name;
    return true;
  }

  bool start_array(size_t) {
    enter();
    if (state_ == State::shape) {
      state_ = State::shape_size;
    } else if (state_ == State::offsets) {
      state_ = State::offset;
    } else if (state_ != State::ignored) {
      reject(wanted(), "an array");
    }
    return true;
  }

  bool end_array() {
    --depth_;
    if (state_ == State::ignored) return leave_ignored();
    if (state_ == State::offset && offset_count_ != 2) reject("two data_offsets", fmt::format("{}", offset_count_));
    state_ = State::field;
    return true;
  }

  bool key(std::string& text) {
    if (state_ == State::name) {
      start_entry(std::move(text));
    } else if (state_ == State::metadata_key) {
      if (header_.metadata.size() == kMaxMetadata) reject(fmt::format("at most {} entries", kMaxMetadata), "more");
      key_ = std::move(text);
      if (!header_.metadata.emplace(key_, "").second) reject("each key once", base::quoted(key_) + " again");
      state_ = State::metadata_value;
    } else if (state_ == State::field) {
      start_field(text);
    }
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    base::fail(where_, "a header of JSON", fmt::format("a mistake at byte {} of the header", position),
               "this is no safetensors file or it is damaged");
  }

  // To be called at the end of the text.
  void finish() {
    if (unknown_fields_ == 0) return;
    header_.warnings.push_back(fmt::format("{}: {} unknown fields of tensors are ignored, the first is {}", where_,
                                           unknown_fields_, first_unknown_));
  }

 private:
  enum class State {
    root,            // the outermost object
    name,            // a key: the name of a tensor or __metadata__
    entry,           // the object of a tensor
    field,           // a key in it
    dtype,           // a string
    shape,           // an array
    shape_size,      // in it
    offsets,         // an array
    offset,          // in it
    ignored,         // the value of an unknown field
    metadata,        // the object of __metadata__
    metadata_key,    // a key in it
    metadata_value,  // a string
  };

  void start_entry(std::string name) {
    name_ = std::move(name);
    if (name_ == "__metadata__") {
      if (std::exchange(seen_metadata_, true)) reject("__metadata__ once", "it again");
      state_ = State::metadata;
      return;
    }
    seen_dtype_ = seen_shape_ = seen_offsets_ = false;
    sizes_.clear();
    offset_count_ = 0;
    unknown_names_.clear();
    state_ = State::entry;
  }

  void start_field(const std::string& text) {
    bool again = false;
    if (text == "dtype") {
      again = std::exchange(seen_dtype_, true);
      state_ = State::dtype;
    } else if (text == "shape") {
      again = std::exchange(seen_shape_, true);
      state_ = State::shape;
    } else if (text == "data_offsets") {
      again = std::exchange(seen_offsets_, true);
      state_ = State::offsets;
    } else {
      if (unknown_names_.size() == kMaxUnknownFields) {
        reject(fmt::format("at most {} unknown fields", kMaxUnknownFields), "more");
      }
      again = !unknown_names_.insert(text).second;
      if (unknown_fields_++ == 0) {
        first_unknown_ = fmt::format("{} of {}", base::quoted(text), base::quoted(name_));
      }
      state_ = State::ignored;
      ignored_depth_ = depth_;
    }
    if (again) reject("each field once", base::quoted(text) + " again");
  }

  void finish_entry() {
    if (!seen_dtype_ || !seen_shape_ || !seen_offsets_) {
      reject("dtype, shape and data_offsets", fmt::format("no {}", !seen_dtype_   ? "dtype"
                                                                   : !seen_shape_ ? "shape"
                                                                                  : "data_offsets"));
    }
    const auto dtype = tensor::dtype_of(dtype_name_);
    header_.entries.push_back({std::move(name_), std::move(dtype_name_), dtype,
                               tensor::Shape(std::vector<size_t>(sizes_)), offsets_[0], offsets_[1]});
  }

  void enter() {
    if (++depth_ > kMaxHeaderDepth) {
      base::fail(where_, fmt::format("a header nested at most {} deep", kMaxHeaderDepth), "a deeper one");
    }
  }

  bool leave_ignored() {
    if (depth_ == ignored_depth_) state_ = State::field;
    return true;
  }

  // A value that is neither an object nor an array and that no other function has taken.
  bool scalar(const std::string& found) {
    if (state_ != State::ignored) reject(wanted(), found);
    return leave_ignored();
  }

  const char* wanted() const {
    switch (state_) {
      case State::dtype: return "a string as dtype";
      case State::shape: return "an array as shape";
      case State::shape_size: return "unsigned integers in shape";
      case State::offsets: return "an array as data_offsets";
      case State::offset: return "unsigned integers in data_offsets";
      case State::metadata_value: return "only strings in __metadata__";
      default: return "an object";
    }
  }

  [[noreturn]] void reject(std::string_view expected, std::string_view found) const {
    if (name_.empty() && state_ == State::root) base::fail(where_, expected, found);
    const bool metadata = name_ == "__metadata__";
    base::fail(fmt::format("{}, {} {}", where_, metadata ? "key" : "tensor", base::quoted(name_)), expected, found);
  }

  SafetensorsHeader& header_;
  std::string_view where_;
  State state_ = State::root;
  size_t depth_ = 0;

  std::string name_;  // of the tensor that is being read
  std::string dtype_name_;
  std::vector<size_t> sizes_;
  size_t offsets_[2] = {0, 0};
  size_t offset_count_ = 0;
  bool seen_dtype_ = false, seen_shape_ = false, seen_offsets_ = false;
  std::unordered_set<std::string> unknown_names_;
  size_t ignored_depth_ = 0;

  std::string key_;  // of __metadata__
  bool seen_metadata_ = false;
  size_t unknown_fields_ = 0;
  std::string first_unknown_;
};

}  // namespace

SafetensorsHeader read_safetensors_json(std::string_view text, std::string_view where) {
  SafetensorsHeader header;
  HeaderReader reader(header, where);
  nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &reader);
  reader.finish();
  return header;
}

}  // namespace clearhead::format
