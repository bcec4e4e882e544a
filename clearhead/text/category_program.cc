// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/category_program.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

#include "clearhead/base/error.h"

namespace clearhead::text {
namespace {

using Kind = PatternStep::Kind;

// Steps whose places count from their own beginning, so that they can be put anywhere.
struct Fragment {
  std::vector<PatternStep> steps;
  bool may_be_empty = true;
};

uint32_t size_of(const Fragment& fragment) { return static_cast<uint32_t>(fragment.steps.size()); }

void append(Fragment& to, const Fragment& from) {
  const uint32_t offset = size_of(to);
  for (PatternStep step : from.steps) {
    step.first += offset;
    step.second += offset;
    to.steps.push_back(step);
  }
  to.may_be_empty = to.may_be_empty && from.may_be_empty;
}

Fragment one_step(PatternStep step) { return {{step}, step.kind != Kind::run || step.least == 0}; }

class Compiler {
 public:
  explicit Compiler(std::string_view expression) : expression_(expression) {}

  PatternProgram compile() {
    Fragment all = alternatives();
    if (!done()) refuse();
    all.steps.push_back({.kind = Kind::match});
    return {std::move(all.steps), std::move(sets_)};
  }

 private:
  [[noreturn]] void refuse() const {
    base::fail("pattern", "a regular expression of the kind of category_pattern.h", base::quoted(expression_));
  }

  bool done() const { return at_ >= expression_.size(); }
  char peek() const { return done() ? '\0' : expression_[at_]; }

  char next() {
    if (done()) refuse();
    return expression_[at_++];
  }

  bool take(std::string_view text) {
    if (!expression_.substr(std::min(at_, expression_.size())).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }

  // a|b|c
  Fragment alternatives() {
    const Fragment first = sequence();
    if (!take("|")) return first;
    const Fragment rest = alternatives();
    Fragment both;
    both.steps.push_back({.kind = Kind::fork, .first = 1, .second = size_of(first) + 2});
    append(both, first);
    both.steps.push_back({.kind = Kind::jump, .first = size_of(first) + 2 + size_of(rest)});
    append(both, rest);
    both.may_be_empty = first.may_be_empty || rest.may_be_empty;
    return both;
  }

  Fragment sequence() {
    Fragment all;
    while (!done() && peek() != '|' && peek() != ')') append(all, repeated(atom()));
    return all;
  }

  Fragment atom() {
    if (take("$")) return one_step({.kind = Kind::end_of_text});
    if (take("(?=")) return look(Kind::ahead);
    if (take("(?!")) return look(Kind::not_ahead);
    if (take("(?:") || take("(")) {
      Fragment group = alternatives();
      if (!take(")")) refuse();
      return group;
    }
    CodePointSet set;
    if (take("[")) {
      read_class(set);
    } else if (std::string_view("?*+{})|").find(peek()) != std::string_view::npos) {
      refuse();
    } else {
      add_one(set);
    }
    sets_.push_back(std::move(set));
    return one_step({.kind = Kind::run, .set = static_cast<uint32_t>(sets_.size() - 1)});
  }

  Fragment look(Kind kind) {
    Fragment inner = alternatives();
    if (!take(")")) refuse();
    inner.steps.push_back({.kind = Kind::match});
    Fragment all;
    all.steps.push_back({.kind = kind, .first = 1, .second = size_of(inner) + 1});
    append(all, inner);
    all.may_be_empty = true;
    return all;
  }

  uint32_t number() {
    uint32_t value = 0;
    const char* begin = expression_.data() + at_;
    const auto [end, error] = std::from_chars(begin, expression_.data() + expression_.size(), value);
    if (error != std::errc()) refuse();
    at_ += static_cast<size_t>(end - begin);
    return value;
  }

  Fragment repeated(const Fragment& part) {
    uint32_t least = 1, most = 1;
    if (take("?")) {
      least = 0;
    } else if (take("*")) {
      least = 0, most = UINT32_MAX;
    } else if (take("+")) {
      most = UINT32_MAX;
    } else if (take("{")) {
      least = number();
      most = take(",") ? number() : least;
      if (!take("}") || most < least || most == 0) refuse();
    }
    if (least == 1 && most == 1) return part;
    if (part.steps.size() == 1 && part.steps[0].kind == Kind::run) {
      if (part.steps[0].least != 1 || part.steps[0].most != 1) refuse();
      PatternStep run = part.steps[0];
      run.least = least;
      run.most = most;
      return one_step(run);
    }
    return repeated_group(part, least, most);
  }

  Fragment repeated_group(const Fragment& part, uint32_t least, uint32_t most) const {
    if (part.may_be_empty) refuse();
    Fragment all;
    for (uint32_t i = 0; i < least; ++i) append(all, part);
    if (most == UINT32_MAX) {
      const uint32_t fork = size_of(all);
      all.steps.push_back({.kind = Kind::fork, .first = fork + 1, .second = fork + size_of(part) + 2});
      append(all, part);
      all.steps.push_back({.kind = Kind::jump, .first = fork});
    } else {
      const uint32_t one = size_of(part) + 1, end = size_of(all) + (most - least) * one;
      for (uint32_t i = least; i < most; ++i) {
        all.steps.push_back({.kind = Kind::fork, .first = size_of(all) + 1, .second = end});
        append(all, part);
      }
    }
    all.may_be_empty = least == 0;
    return all;
  }

  // What stands behind "[".
  void read_class(CodePointSet& set) {
    const bool negated = take("^");
    while (!take("]")) add_one(set);
    if (negated) {
      set.ascii.flip();
      set.negated = true;
    }
  }

  // A code point, a range of them where a class is read, or a set that has a name.
  void add_one(CodePointSet& set) {
    const char c = next();
    if (c == '\\') {
      if (take("p{")) return add_category(set);
      if (take("s")) return add_space(set);
      if (take("S")) {
        CodePointSet space;
        add_space(space);
        set.ascii |= ~space.ascii;
        set.categories = 0xff;
        set.ranges.emplace_back(0x80, 0x10ffff);
        return;
      }
      if (take("d")) return add_range(set, '0', '9');
    }
    const char32_t first = code_point(c);
    if (peek() != '-' || at_ + 1 >= expression_.size() || expression_[at_ + 1] == ']')
      return add_range(set, first, first);
    ++at_;
    const char32_t last = code_point(next());
    if (last < first) refuse();
    add_range(set, first, last);
  }

  char32_t code_point(char c) {
    if (c != '\\') return static_cast<unsigned char>(c);
    const char escaped = next();
    if (escaped == 'r') return '\r';
    if (escaped == 'n') return '\n';
    if (escaped == 't') return '\t';
    if (escaped != 'x')
      return std::isalnum(static_cast<unsigned char>(escaped)) ? (refuse(), 0) : static_cast<char32_t>(escaped);
    if (!take("{")) refuse();
    uint32_t value = 0;
    const char* begin = expression_.data() + at_;
    const auto [end, error] = std::from_chars(begin, expression_.data() + expression_.size(), value, 16);
    if (error != std::errc() || value > 0x10ffff) refuse();
    at_ += static_cast<size_t>(end - begin);
    if (!take("}")) refuse();
    return value;
  }

  static void add_range(CodePointSet& set, char32_t first, char32_t last) {
    for (char32_t c = first; c <= last && c < set.ascii.size(); ++c) set.ascii.set(c);
    if (last >= set.ascii.size()) set.ranges.emplace_back(std::max<char32_t>(first, 0x80), last);
  }

  static void add_space(CodePointSet& set) {
    add_range(set, '\t', '\r');
    set.ascii.set(' ');
  }

  void add_category(CodePointSet& set) {
    struct Name {
      std::string_view name;
      Category category;
    };
    static constexpr Name kNames[] = {{"L}", kLetter},  {"Lu}", kLetter},        {"Ll}", kLetter}, {"Lt}", kLetter},
                                      {"Lm}", kLetter}, {"Lo}", kLetter},        {"N}", kNumber},  {"M}", kMark},
                                      {"S}", kSymbol},  {"P}", kPunctuationMark}};
    for (const Name& name : kNames) {
      if (!take(name.name)) continue;
      set.categories |= name.category;
      for (char32_t c = 0; c < set.ascii.size(); ++c) {
        if ((category_table()[c] & name.category) != 0) set.ascii.set(c);
      }
      return;
    }
    refuse();
  }

  std::string_view expression_;
  size_t at_ = 0;
  std::vector<CodePointSet> sets_;
};

}  // namespace

PatternProgram compile_pattern(std::string_view expression) { return Compiler(expression).compile(); }

}  // namespace clearhead::text
