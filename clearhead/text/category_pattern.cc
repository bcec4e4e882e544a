// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/category_pattern.h"

#include <utility>
#include <vector>

#include "clearhead/text/category_program.h"
#include "clearhead/text/valid_utf8.h"

namespace clearhead::text {
namespace {

using Kind = PatternStep::Kind;

// Where a search goes on if it fails: at `step`, with the text from `at`, then from each code point before, down to
// `low`.
struct Resume {
  uint32_t step, at, low;
};

class CategoryPattern final : public Pattern {
 public:
  explicit CategoryPattern(PatternProgram program) : program_(std::move(program)) {
    const PatternStep& first = program_.steps.front();
    is_run_ = program_.steps.size() == 2 && first.kind == Kind::run && first.least == 1;
  }

  std::optional<Span> find(std::string_view text, uint32_t from) const override {
    if (is_run_) return find_run(text, from);
    std::vector<Resume> resumes;
    for (uint32_t begin = from; begin <= text.size(); begin = next_begin(text, begin)) {
      if (const auto end = match(text, 0, begin, resumes)) return Span{begin, *end};
    }
    return std::nullopt;
  }

 private:
  // The expression is nothing but a run: most texts hold few, so that passing by is what takes time.
  std::optional<Span> find_run(std::string_view text, uint32_t from) const {
    const PatternStep& run = program_.steps.front();
    const CodePointSet& set = program_.sets[run.set];
    for (uint32_t begin = from; begin < text.size();) {
      const auto byte = static_cast<unsigned char>(text[begin]);
      if (byte < set.ascii.size() ? set.ascii[byte] : contains_at(set, text, begin)) {
        return Span{begin, end_of_run(text, begin, run).second};
      }
      begin = after(text, begin);
    }
    return std::nullopt;
  }

  bool contains_at(const CodePointSet& set, std::string_view text, uint32_t at) const {
    const char32_t c = code_point_at(text, at).value;
    return set.contains(c, categories_[c]);
  }

  static uint32_t before(std::string_view text, uint32_t at) {
    return at - static_cast<uint32_t>(code_point_before(text, at).length);
  }

  static uint32_t after(std::string_view text, uint32_t at) {
    return at < text.size() ? at + static_cast<uint32_t>(code_point_at(text, at).length) : at + 1;
  }

  // Behind a beginning without a match. Where the expression opens with an endless run, no place inside the run can do
  // better than its beginning, which saves the square of its length.
  uint32_t next_begin(std::string_view text, uint32_t begin) const {
    const PatternStep& first = program_.steps.front();
    if (first.kind != Kind::run || first.most != UINT32_MAX) return after(text, begin);
    const uint32_t end = end_of_run(text, begin, first).second;
    return end > begin ? end : after(text, begin);
  }

  // The places behind the least and the most code points of a run; the second is before the first if there are too few.
  std::pair<uint32_t, uint32_t> end_of_run(std::string_view text, uint32_t at, const PatternStep& run) const {
    const CodePointSet& set = program_.sets[run.set];
    uint32_t low = run.least == 0 ? at : UINT32_MAX;
    for (uint32_t count = 0; count < run.most && at < text.size();) {
      const ValidCodePoint here = code_point_at(text, at);
      if (!set.contains(here.value, categories_[here.value])) break;
      at += static_cast<uint32_t>(here.length);
      if (++count == run.least) low = at;
    }
    return {low, at};
  }

  // The end of the match of the steps from `step` at byte `at`. resumes: room, left as it was found.
  std::optional<uint32_t> match(std::string_view text, uint32_t step, uint32_t at, std::vector<Resume>& resumes) const {
    const size_t bottom = resumes.size();
    for (;;) {
      const PatternStep& own = program_.steps[step];
      bool fits = true;
      switch (own.kind) {
        case Kind::run: {
          const auto [low, end] = end_of_run(text, at, own);
          fits = low <= end;
          if (fits && low < end) resumes.push_back({step + 1, before(text, end), low});
          at = end;
          ++step;
          break;
        }
        case Kind::fork:
          resumes.push_back({own.second, at, at});
          step = own.first;
          break;
        case Kind::jump: step = own.first; break;
        case Kind::ahead:
        case Kind::not_ahead:
          fits = match(text, own.first, at, resumes).has_value() == (own.kind == Kind::ahead);
          step = own.second;
          break;
        case Kind::end_of_text:
          fits = at == text.size();
          ++step;
          break;
        case Kind::match: resumes.resize(bottom); return at;
      }
      if (fits) continue;
      if (resumes.size() == bottom) return std::nullopt;
      Resume& resume = resumes.back();
      step = resume.step;
      at = resume.at;
      if (resume.at > resume.low) {
        resume.at = before(text, resume.at);
      } else {
        resumes.pop_back();
      }
    }
  }

  PatternProgram program_;
  bool is_run_ = false;
  const PropertyTable& categories_ = category_table();
};

}  // namespace

std::unique_ptr<Pattern> category_pattern(std::string_view expression) {
  return std::make_unique<CategoryPattern>(compile_pattern(expression));
}

}  // namespace clearhead::text
