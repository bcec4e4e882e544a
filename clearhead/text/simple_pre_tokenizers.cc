// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/simple_pre_tokenizers.h"

#include <algorithm>
#include <array>

#include "clearhead/text/unicode.h"
#include "clearhead/text/valid_utf8.h"

namespace clearhead::text {
namespace {

class KindPattern final : public Pattern {
 public:
  KindPattern(bool (*is_kind)(char32_t), bool runs) : is_kind_(is_kind), runs_(runs) {
    for (char32_t c = 0; c < ascii_.size(); ++c) ascii_[c] = is_kind(c);
  }

  std::optional<Span> find(std::string_view text, uint32_t from) const override {
    uint32_t begin = from;
    while (begin < text.size() && !is_at(text, begin)) begin = after(text, begin);
    if (begin >= text.size()) return std::nullopt;
    uint32_t end = after(text, begin);
    while (runs_ && end < text.size() && is_at(text, end)) end = after(text, end);
    return Span{begin, end};
  }

 private:
  static uint32_t after(std::string_view text, uint32_t at) {
    return at + static_cast<uint32_t>(code_point_at(text, at).length);
  }

  bool is_at(std::string_view text, uint32_t at) const {
    const auto byte = static_cast<unsigned char>(text[at]);
    return byte < ascii_.size() ? ascii_[byte] : is_kind_(code_point_at(text, at).value);
  }

  bool (*is_kind_)(char32_t);
  bool runs_;
  std::array<bool, 0x80> ascii_;
};

struct Part {
  Span span;
  bool is_match;
};

// Puts matches together with what is before them (or behind, read from the end): two matches side by side stay two.
void merge_matches(std::vector<Part>& parts, bool with_next) {
  std::vector<Part> merged;
  bool last_is_match = false;
  const auto add = [&](const Part& part) {
    if (part.is_match && !last_is_match && !merged.empty()) {
      Span& span = merged.back().span;
      with_next ? span.begin = part.span.begin : span.end = part.span.end;
    } else {
      merged.push_back(part);
    }
    last_is_match = part.is_match;
  };
  if (with_next) {
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) add(*part);
    std::ranges::reverse(merged);
  } else {
    for (const Part& part : parts) add(part);
  }
  parts.swap(merged);
}

void merge_equal(std::vector<Part>& parts) {
  std::vector<Part> merged;
  for (const Part& part : parts) {
    if (!merged.empty() && merged.back().is_match == part.is_match) {
      merged.back().span.end = part.span.end;
    } else {
      merged.push_back(part);
    }
  }
  parts.swap(merged);
}

}  // namespace

std::unique_ptr<Pattern> kind_pattern(bool (*is_kind)(char32_t), bool runs) {
  return std::make_unique<KindPattern>(is_kind, runs);
}

void Split::split(AlignedText& text, std::vector<Span>& words) const {
  std::vector<Span> cut;
  cut.reserve(words.size() + text.bytes().size() / 4);
  std::vector<Part> parts;
  for (const Span word : words) {
    if (word.size() == 0) continue;
    if (behavior_ == Behavior::isolated) {
      for_each_part(*pattern_, text.bytes(), word, [&](Span span, bool) {
        if (span.size() > 0) cut.push_back(span);
      });
      continue;
    }
    parts.clear();
    for_each_part(*pattern_, text.bytes(), word, [&](Span span, bool match) {
      parts.push_back({span, match != invert_});
    });
    if (behavior_ == Behavior::contiguous) merge_equal(parts);
    if (behavior_ == Behavior::merged_with_previous) merge_matches(parts, false);
    if (behavior_ == Behavior::merged_with_next) merge_matches(parts, true);
    for (const Part& part : parts) {
      if (part.span.size() > 0 && !(behavior_ == Behavior::removed && part.is_match)) cut.push_back(part.span);
    }
  }
  words.swap(cut);
}

void PreTokenizerSequence::split(AlignedText& text, std::vector<Span>& words) const {
  for (const auto& step : steps_) step->split(text, words);
}

void PreTokenizerSequence::split_unwritten(AlignedText& text, std::vector<Span>& words) const {
  for (const auto& step : steps_) step == steps_.back() ? step->split_unwritten(text, words) : step->split(text, words);
}

bool PreTokenizerSequence::asks_origins() const {
  return std::ranges::any_of(steps_, [](const auto& step) { return step->asks_origins(); });
}

void WhitespaceSplit::split(AlignedText& text, std::vector<Span>& words) const {
  const PropertyTable& table = property_table();
  std::vector<Span> cut;
  cut.reserve(words.size() + text.bytes().size() / 5);
  for (const Span whole : words) {
    uint32_t word = whole.begin;
    for (uint32_t at = whole.begin; at < whole.end;) {
      const ValidCodePoint here = code_point_at(text.bytes(), at);
      const auto next = at + static_cast<uint32_t>(here.length);
      if ((table[here.value] & kWhiteSpace) != 0) {
        if (word < at) cut.push_back({word, at});
        word = next;
      }
      at = next;
    }
    if (word < whole.end) cut.push_back({word, whole.end});
  }
  words.swap(cut);
}

void Whitespace::split(AlignedText& text, std::vector<Span>& words) const {
  const PropertyTable& table = property_table();
  std::vector<Span> cut;
  cut.reserve(words.size() + text.bytes().size() / 4);
  for (const Span whole : words) {
    int last = kWhiteSpace;
    uint32_t begin = whole.begin;
    for (uint32_t at = whole.begin; at < whole.end;) {
      const ValidCodePoint here = code_point_at(text.bytes(), at);
      const int kind = table[here.value] & (kWhiteSpace | kWord);
      if (kind != last) {
        if (last != kWhiteSpace) cut.push_back({begin, at});
        begin = at;
        last = kind;
      }
      at += static_cast<uint32_t>(here.length);
    }
    if (last != kWhiteSpace) cut.push_back({begin, whole.end});
  }
  words.swap(cut);
}

void FixedLength::split(AlignedText& text, std::vector<Span>& words) const {
  std::vector<Span> cut;
  for (const Span whole : words) {
    size_t count = 0;
    uint32_t begin = whole.begin;
    for (uint32_t at = whole.begin; at < whole.end;) {
      if (count++ == length_) {
        cut.push_back({begin, at});
        begin = at;
        count = 1;
      }
      at += static_cast<uint32_t>(code_point_at(text.bytes(), at).length);
    }
    if (begin < whole.end) cut.push_back({begin, whole.end});
  }
  words.swap(cut);
}

}  // namespace clearhead::text
