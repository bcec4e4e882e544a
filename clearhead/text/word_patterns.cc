// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/word_patterns.h"

#include <algorithm>
#include <array>
#include <vector>

#include "clearhead/text/category.h"
#include "clearhead/text/unicode.h"
#include "clearhead/text/valid_utf8.h"

namespace clearhead::text {
namespace {

enum class Class : uint8_t { other, letter, number, space };

Class class_of(char32_t c) {
  return is_letter(c) ? Class::letter : is_number(c) ? Class::number : is_white_space(c) ? Class::space : Class::other;
}

Class class_of_category(uint8_t bits) {
  return (bits & kLetter) != 0   ? Class::letter
         : (bits & kNumber) != 0 ? Class::number
         : (bits & kSpace) != 0  ? Class::space
                                 : Class::other;
}

// Each table is built by the first tokenizer that reads it.
const PropertyTable& library_classes() {
  static const PropertyTable table = [] {
    std::vector<uint8_t> classes(0x110000);
    for (char32_t c = 0; c < classes.size(); ++c) classes[c] = static_cast<uint8_t>(class_of(c));
    return PropertyTable(classes);
  }();
  return table;
}

const PropertyTable& category_classes() {
  static const PropertyTable table = category_table().mapped(class_of_category);
  return table;
}

const PropertyTable& class_table(WordClasses classes) {
  return classes == WordClasses::tokenizers_library ? library_classes() : category_classes();
}

// A text and a place in it, read code point by code point.
struct Reader {
  const PropertyTable& classes;
  std::string_view text;
  uint32_t at;

  bool done() const { return at >= text.size(); }
  char32_t peek() const { return code_point_at(text, at).value; }
  Class kind() const { return static_cast<Class>(classes[peek()]); }
  void pass() { at += static_cast<uint32_t>(code_point_at(text, at).length); }

  uint32_t pass_all(Class kind_of_all, uint32_t most = UINT32_MAX) {
    uint32_t count = 0;
    for (; count < most && !done(); ++count) {
      const ValidCodePoint here = code_point_at(text, at);
      if (static_cast<Class>(classes[here.value]) != kind_of_all) break;
      at += static_cast<uint32_t>(here.length);
    }
    return count;
  }
};

bool is_line_end(char32_t c) { return c == '\r' || c == '\n'; }

// \s+(?!\S)|\s+ : white space, its last character left to what follows; alone it is taken.
uint32_t end_of_space(Reader reader) {
  uint32_t last = reader.at;
  const uint32_t begin = reader.at;
  while (!reader.done() && reader.kind() == Class::space) {
    last = reader.at;
    reader.pass();
  }
  return reader.done() || last == begin ? reader.at : last;
}

enum class Case { as_it_stands, ascii, any };

// Behind an apostrophe: s t d m, re ve ll.
uint32_t end_of_contraction(Reader reader, Case letter_case) {
  constexpr char32_t kLongS = 0x17f;  // in any case an s
  const bool any_case = letter_case != Case::as_it_stands;
  const uint32_t at = reader.at;
  if (reader.text[at] != '\'') return at;
  reader.pass();
  std::array<char32_t, 2> letters{};
  std::array<uint32_t, 2> ends{};
  for (size_t i = 0; i < letters.size() && !reader.done(); ++i) {
    letters[i] = reader.peek();
    if (any_case && letters[i] >= 'A' && letters[i] <= 'Z') letters[i] += 'a' - 'A';
    if (letter_case == Case::any && letters[i] == kLongS) letters[i] = 's';
    reader.pass();
    ends[i] = reader.at;
  }
  const auto [first, second] = letters;
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return ends[0];
  if ((first == 'r' || first == 'v') && second == 'e') return ends[1];
  return first == 'l' && second == 'l' ? ends[1] : at;
}

// The words of GPT-2.
class Gpt2Words final : public Pattern {
 public:
  explicit Gpt2Words(WordClasses classes) : classes_(class_table(classes)) {}

  std::optional<Span> find(std::string_view text, uint32_t from) const override {
    if (from >= text.size()) return std::nullopt;
    Reader reader = {classes_, text, from};
    if (const uint32_t end = end_of_contraction(reader, Case::as_it_stands); end > from) return Span{from, end};
    Class kind = reader.kind();
    if (text[from] == ' ' && from + 1 < text.size()) {
      ++reader.at;
      const Class next = reader.kind();
      if (next == Class::space) {
        --reader.at;
      } else {
        kind = next;
      }
    }
    if (kind == Class::space) return Span{from, end_of_space(reader)};
    reader.pass_all(kind);
    return Span{from, reader.at};
  }

 private:
  const PropertyTable& classes_;
};

// The words of GPT-4 and those who follow it: numbers of at most `most_digits` digits, one mark of any kind before
// letters, line ends with the white space or the marks before them.
class Gpt4Words final : public Pattern {
 public:
  Gpt4Words(WordClasses classes, uint32_t most_digits)
      : classes_(class_table(classes)),
        contractions_(classes == WordClasses::tokenizers_library ? Case::any : Case::ascii),
        most_digits_(most_digits) {}

  std::optional<Span> find(std::string_view text, uint32_t from) const override {
    if (from >= text.size()) return std::nullopt;
    Reader reader = {classes_, text, from};
    if (const uint32_t end = end_of_contraction(reader, contractions_); end > from) return Span{from, end};
    const Class kind = reader.kind();
    const bool line_end = is_line_end(reader.peek());
    if (kind != Class::letter && kind != Class::number && !line_end) reader.pass();
    if (reader.pass_all(Class::letter) > 0) return Span{from, reader.at};
    reader.at = from;
    if (reader.pass_all(Class::number, most_digits_) > 0) return Span{from, reader.at};
    if (reader.peek() == ' ') reader.pass();
    if (reader.pass_all(Class::other) > 0) {
      while (!reader.done() && is_line_end(reader.peek())) reader.pass();
      return Span{from, reader.at};
    }
    return Span{from, end_of_lines({classes_, text, from})};
  }

 private:
  // \s*[\r\n]+ , else as white space.
  static uint32_t end_of_lines(Reader reader) {
    const Reader begin = reader;
    uint32_t end = reader.at;
    while (!reader.done() && reader.kind() == Class::space) {
      const bool line_end = is_line_end(reader.peek());
      reader.pass();
      if (line_end) end = reader.at;
    }
    return end > begin.at ? end : end_of_space(begin);
  }

  const PropertyTable& classes_;
  Case contractions_;
  uint32_t most_digits_;
};

template <class Words, uint32_t... argument>
std::unique_ptr<Pattern> make(WordClasses classes) {
  return std::make_unique<Words>(classes, argument...);
}

struct Known {
  std::string_view expression;
  std::unique_ptr<Pattern> (*make)(WordClasses classes);
};

constexpr Known kKnown[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", make<Gpt2Words>},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", make<Gpt2Words>},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     make<Gpt4Words, 3>},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     make<Gpt4Words, 1>},
};

}  // namespace

std::unique_ptr<Pattern> known_word_pattern(std::string_view expression, WordClasses classes) {
  const auto known = std::ranges::find(kKnown, expression, &Known::expression);
  return known == std::end(kKnown) ? nullptr : known->make(classes);
}

std::unique_ptr<Pattern> gpt2_pattern() { return std::make_unique<Gpt2Words>(WordClasses::tokenizers_library); }

}  // namespace clearhead::text
