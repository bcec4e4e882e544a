// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/rewriter.h"

#include <string>

#include "clearhead/base/utf8.h"
#include "clearhead/text/valid_utf8.h"

namespace clearhead::text {

Rewriter::Rewriter(const AlignedText& source, Span range, AlignedText& result)
    : source_(source), result_(result), at_(range.begin), end_(range.end), last_{range.begin, range.begin} {}

void Rewriter::keep_to(uint32_t end) {
  if (at_ >= end) return;
  result_.keep(source_.bytes().substr(at_, end - at_), source_, at_);
  skip_to(end);
}

void Rewriter::skip_to(uint32_t end) {
  if (at_ >= end) return;
  at_ = end;
  const auto length = static_cast<uint32_t>(code_point_before(source_.bytes(), end).length);
  last_ = {end - length, end};
  first_ = false;
}

void Rewriter::pass_one() {
  if (at_ < end_) skip_to(at_ + static_cast<uint32_t>(code_point_at(source_.bytes(), at_).length));
}

void Rewriter::put(Change change) {
  std::string bytes;
  base::append_utf8(bytes, change.value);
  if (change.moves > 0) return insert(bytes);
  const uint32_t begin = at_;
  pass_one();
  if (source_.bytes().substr(begin, at_ - begin) == bytes) {
    result_.keep(bytes, source_, begin);
  } else {
    insert(bytes);
  }
  for (int32_t gone = change.moves; gone < 0; ++gone) pass_one();
}

void Rewriter::insert(std::string_view text) {
  if (!first_) return result_.replace(text, source_.original(last_));
  if (source_.bytes().empty()) return;
  const uint32_t begin = source_.original({last_.begin, last_.begin + 1}).begin;
  result_.replace(text, {begin, begin});
}

}  // namespace clearhead::text
