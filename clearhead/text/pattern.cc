// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/pattern.h"

#include <algorithm>
#include <utility>

#include "clearhead/text/regex.h"
#include "clearhead/text/word_patterns.h"

namespace clearhead::text {
namespace {

class Literal final : public Pattern {
 public:
  explicit Literal(std::string literal) : literal_(std::move(literal)) {}

  std::optional<Span> find(std::string_view text, uint32_t from) const override {
    const size_t at = text.find(literal_, from);
    if (at == std::string_view::npos) return std::nullopt;
    return Span{static_cast<uint32_t>(at), static_cast<uint32_t>(at + literal_.size())};
  }

 private:
  std::string literal_;
};

// " {2,}": two spaces or more.
class SpaceRun final : public Pattern {
 public:
  std::optional<Span> find(std::string_view text, uint32_t from) const override {
    const size_t at = text.find("  ", from);
    if (at == std::string_view::npos) return std::nullopt;
    const size_t end = std::min(text.find_first_not_of(' ', at), text.size());
    return Span{static_cast<uint32_t>(at), static_cast<uint32_t>(end)};
  }
};

}  // namespace

std::unique_ptr<Pattern> literal_pattern(std::string literal) { return std::make_unique<Literal>(std::move(literal)); }

std::unique_ptr<Pattern> regex_pattern(std::string_view expression, std::string_view where) {
  if (expression == " {2,}") return std::make_unique<SpaceRun>();
  if (auto words = known_word_pattern(expression)) return words;
  return regex_by_backtracking(expression, where);
}

}  // namespace clearhead::text
