// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/aligned_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "clearhead/base/error.h"

namespace clearhead::text {

void AlignedText::append(std::string_view bytes) {
  if (bytes_.size() > most_bytes_ || bytes.size() > most_bytes_ - bytes_.size()) {
    base::refuse("text", fmt::format("at most {} bytes when it is normalized", most_bytes_), "more",
                 "cut it, or see what the tokenizer's normalizer puts in");
  }
  bytes_ += bytes;
}

void AlignedText::keep(std::string_view bytes, uint32_t begin) {
  if (bytes.empty()) return;
  const auto at = static_cast<uint32_t>(bytes_.size());
  const bool follows =
      !runs_.empty() && runs_.back().length == kKept && runs_.back().begin + (at - runs_.back().at) == begin;
  if (!follows) runs_.push_back({at, begin, kKept});
  append(bytes);
}

std::span<char> AlignedText::keep(std::string_view bytes, const AlignedText& source, uint32_t begin) {
  const size_t before = bytes_.size();
  if (!tracked_ || !source.tracked_) {
    append(bytes);
    return std::span<char>(bytes_).subspan(before);
  }
  for (size_t run = source.run_of(begin); !bytes.empty(); ++run) {
    const bool last = run + 1 == source.runs_.size();
    const size_t left = last ? bytes.size() : std::min<size_t>(bytes.size(), source.runs_[run + 1].at - begin);
    if (source.runs_[run].length == kKept) {
      keep(bytes.substr(0, left), source.begin_of(run, begin));
    } else {
      replace(bytes.substr(0, left), {source.runs_[run].begin, source.runs_[run].begin + source.runs_[run].length});
    }
    bytes.remove_prefix(left);
    begin += static_cast<uint32_t>(left);
  }
  return std::span<char>(bytes_).subspan(before);
}

void AlignedText::replace(std::string_view bytes, Span original) {
  if (bytes.empty()) return;
  if (!tracked_) return void(append(bytes));
  const auto at = static_cast<uint32_t>(bytes_.size());
  runs_.push_back({at, original.begin, static_cast<uint32_t>(original.size())});
  append(bytes);
}

void AlignedText::truncate(size_t size) {
  bytes_.resize(size);
  while (!runs_.empty() && runs_.back().at >= size) runs_.pop_back();
}

void AlignedText::clear() {
  bytes_.clear();
  runs_.clear();
}

size_t AlignedText::run_of(uint32_t at) const {
  if (runs_.size() == 1) return 0;
  return std::ranges::upper_bound(runs_, at, {}, &Run::at) - runs_.begin() - 1;
}

Span AlignedText::original(Span span) const {
  if (!tracked_) return {0, 0};
  return {begin_of(run_of(span.begin), span.begin), end_of(run_of(span.end - 1), span.end)};
}

AlignedText AlignedText::slice(Span span) const {
  AlignedText result = empty_like();
  result.keep(bytes().substr(span.begin, span.size()), *this, span.begin);
  return result;
}

}  // namespace clearhead::text
