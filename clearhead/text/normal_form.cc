// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/normal_form.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "clearhead/text/rewriter.h"
#include "clearhead/text/unicode.h"
#include "clearhead/text/valid_utf8.h"

namespace clearhead::text {
namespace {

using Form = NormalForm::Form;

bool composes(Form form) { return form == Form::nfc || form == Form::nfkc; }
bool compatible(Form form) { return form == Form::nfkc || form == Form::nfkd; }

// A code point on its way: how it moves on in the source, and its combining class.
struct Part {
  char32_t value;
  int32_t moves;
  uint8_t combining_class;
};

void decompose(char32_t c, Form form, std::vector<Part>& parts) {
  int32_t moves = 0;
  const auto add = [&](char32_t part) {
    parts.push_back({part, moves, combining_class_of(part)});
    moves = 1;
  };
  const std::span<const char32_t> compatibility =
      compatible(form) ? compatibility_decomposition_of(c) : std::span<const char32_t>();
  if (!compatibility.empty()) {
    for (const char32_t part : compatibility) add(part);
  } else {
    for (const char32_t part : decomposition_of(c)) add(part);
  }
}

// Marks between two starters in the order of their classes.
void order(std::vector<Part>& parts) {
  const auto is_starter = [](const Part& part) { return part.combining_class == 0; };
  for (auto at = parts.begin(); at != parts.end();) {
    at = std::find_if_not(at, parts.end(), is_starter);
    const auto end = std::find_if(at, parts.end(), is_starter);
    std::stable_sort(at, end, [](const Part& a, const Part& b) { return a.combining_class < b.combining_class; });
    at = end;
  }
}

// Joins each starter with the marks behind it that are not blocked, in place.
void compose(std::vector<Part>& parts) {
  constexpr size_t kNone = SIZE_MAX;
  size_t starter = kNone, size = 0;
  int last_class = -1;  // of the marks that stay behind the starter; -1: none does
  for (const Part part : parts) {
    const int own_class = part.combining_class;
    if (starter != kNone && last_class < own_class) {
      if (const auto composed = composition_of(parts[starter].value, part.value)) {
        parts[starter] = {*composed, parts[starter].moves + part.moves - 1, 0};
        continue;
      }
    }
    if (own_class == 0) {
      starter = size;
      last_class = -1;
    } else if (starter != kNone) {
      last_class = own_class;
    }
    parts[size++] = part;
  }
  parts.resize(size);
}

// Bit of a form in the table of those code points that it may change: those that are decomposed, marks, and those that
// join what is before them.
uint8_t bit_of(Form form) { return static_cast<uint8_t>(1u << static_cast<unsigned>(form)); }

bool may_change(char32_t c, Form form, std::vector<Part>& parts) {
  parts.clear();
  decompose(c, form, parts);
  if (parts.front().combining_class != 0) return true;
  if (composes(form)) {
    if (joins_back(parts.front().value)) return true;
    order(parts);
    compose(parts);
  }
  return parts.size() != 1 || parts.front().value != c;
}

PropertyTable make_table() {
  std::vector<uint8_t> bits(0x110000);
  std::vector<Part> parts;
  for (const char32_t c : normalized_code_points()) {
    for (const Form form : {Form::nfc, Form::nfd, Form::nfkc, Form::nfkd}) {
      if (may_change(c, form, parts)) bits[c] |= bit_of(form);
    }
  }
  return PropertyTable(bits);
}

const PropertyTable& change_table() {
  static const PropertyTable table = make_table();
  return table;
}

class Pass {
 public:
  Pass(Form form, const AlignedText& source, AlignedText& result)
      : form_(form),
        bit_(bit_of(form)),
        table_(change_table()),
        text_(source.bytes()),
        rewriter_(source, {0, static_cast<uint32_t>(text_.size())}, result) {
    result.reserve(result.bytes().size() + text_.size() + text_.size() / 8);
  }

  void run() {
    while (rewriter_.at() < text_.size()) {
      const size_t begin = rewriter_.at();
      size_t end = end_of_unchanged(begin);
      if (end < text_.size() && end > begin && composes(form_)) end -= code_point_before(text_, end).length;
      rewriter_.keep_to(static_cast<uint32_t>(end));
      if (end < text_.size()) rewrite(end);
    }
  }

 private:
  bool changes(char32_t c) const { return (table_[c] & bit_) != 0; }

  size_t end_of_unchanged(size_t at) const {
    while (at < text_.size()) {
      uint64_t word;
      while (at + sizeof(word) <= text_.size()) {
        std::memcpy(&word, text_.data() + at, sizeof(word));
        if ((word & 0x8080808080808080) != 0) break;
        at += sizeof(word);
      }
      if (at == text_.size()) break;
      const ValidCodePoint here = code_point_at(text_, at);
      if (changes(here.value)) break;
      at += here.length;
    }
    return at;
  }

  // Rewrites the code point at `at` and all behind it that may change: what comes then neither joins them nor is moved.
  void rewrite(size_t at) {
    parts_.clear();
    bool first = true;
    while (at < text_.size()) {
      const ValidCodePoint here = code_point_at(text_, at);
      if (!first && !changes(here.value)) break;
      first = false;
      decompose(here.value, form_, parts_);
      at += here.length;
    }
    order(parts_);
    if (composes(form_)) compose(parts_);
    for (const Part& part : parts_) rewriter_.put({part.value, part.moves});
  }

  Form form_;
  uint8_t bit_;
  const PropertyTable& table_;
  std::string_view text_;
  Rewriter rewriter_;
  std::vector<Part> parts_;
};

}  // namespace

void NormalForm::normalize(const AlignedText& source, AlignedText& result) const { Pass(form_, source, result).run(); }

}  // namespace clearhead::text
