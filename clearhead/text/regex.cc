// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/regex.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/text/regex_syntax.h"
#include "clearhead/text/unicode.h"
#include "clearhead/text/valid_utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace clearhead::text {
namespace {

// Steps from one place of a text before it counts as a hard one, by how much more is then allowed again and again, and
// how many all hard places of a text may take together, and for each of its characters.
constexpr uint32_t kFewSteps = 200, kMoreSteps = 16;
constexpr uint64_t kMostSteps = uint64_t{1} << 27, kMostStepsEach = 64;

// Characters that may be passed over between two looks at the clock, and the time that a text has, and each of its
// characters: many times what the slowest expressions of tokenizers in use need.
constexpr uint64_t kWorkBetween = uint64_t{1} << 26;
constexpr double kSeconds = 1, kSecondsEach = 4e-6;

constexpr uint32_t kHeapKilobytes = 64 << 10;
constexpr size_t kFirstStackBytes = 32 << 10, kMostStackBytes = 4 << 20;

// The most kinds of characters that an expression tells apart: a byte has no more values.
constexpr size_t kMostKinds = 256;

template <auto free>
struct Free {
  template <class T>
  void operator()(T* pointer) const {
    free(pointer);
  }
};

using Code = std::unique_ptr<pcre2_code, Free<pcre2_code_free>>;

std::string error_text(int error) {
  PCRE2_UCHAR text[160];
  return pcre2_get_error_message(error, text, sizeof(text)) < 0 ? fmt::format("error {}", error)
                                                                : reinterpret_cast<const char*>(text);
}

// Of this thread.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The kinds of code points that a list of sets tells apart: two of one kind are in the same sets.
class Kinds {
 public:
  Kinds(const std::vector<CodeSet>& sets, std::string_view where) : kind_of_(0x110000) {
    std::map<std::vector<bool>, size_t> known;
    std::map<char32_t, std::vector<size_t>> changes;  // where a set begins or ends
    changes[0];
    for (size_t set = 0; set < sets.size(); ++set) {
      for (const CodeSet::Range& range : sets[set].ranges()) {
        changes[range.first].push_back(set);
        changes[range.last + 1].push_back(set);
      }
    }
    std::vector<bool> is_in(sets.size());
    for (auto change = changes.begin(); change != changes.end() && change->first < kind_of_.size(); ++change) {
      for (const size_t set : change->second) is_in[set] = !is_in[set];
      const size_t kind = known.emplace(is_in, known.size()).first->second;
      if (kind == kMostKinds) {
        base::fail(where,
                   fmt::format("a regular expression that tells at most {} kinds of characters apart", kMostKinds),
                   "more");
      }
      const auto next = std::next(change);
      const size_t end = next == changes.end() ? kind_of_.size() : std::min<size_t>(next->first, kind_of_.size());
      std::fill(kind_of_.begin() + change->first, kind_of_.begin() + static_cast<std::ptrdiff_t>(end),
                static_cast<uint8_t>(kind));
    }
    kinds_in_.resize(sets.size());
    for (const auto& [members, kind] : known) {
      for (size_t set = 0; set < sets.size(); ++set) {
        if (members[set]) kinds_in_[set].push_back(kind);
      }
    }
  }

  // [0x110000]
  const std::vector<uint8_t>& kind_of() const { return kind_of_; }

  // A class of PCRE2 with the bytes of a set.
  std::string written(size_t set) const {
    if (kinds_in_[set].empty()) return "(?!)";
    std::string result = "[";
    for (const size_t kind : kinds_in_[set]) result += fmt::format("\\x{:02x}", kind);
    return result + "]";
  }

 private:
  std::vector<uint8_t> kind_of_;
  std::vector<std::vector<size_t>> kinds_in_;
};

// What matching needs besides the expression, once for each thread.
struct Workspace {
  std::unique_ptr<pcre2_match_data, Free<pcre2_match_data_free>> match{pcre2_match_data_create(1, nullptr)};
  std::unique_ptr<pcre2_match_context, Free<pcre2_match_context_free>> context{pcre2_match_context_create(nullptr)};
  std::unique_ptr<pcre2_jit_stack, Free<pcre2_jit_stack_free>> stack{
      pcre2_jit_stack_create(kFirstStackBytes, kMostStackBytes, nullptr)};

  Workspace() {
    if (!match || !context) base::fail("regular expressions", "memory for matching", "none");
    pcre2_set_heap_limit(context.get(), kHeapKilobytes);
    if (stack) pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

Workspace& workspace() {
  static thread_local Workspace own;
  return own;
}

// A text with one byte for each code point, and where each begins in it.
struct Subject {
  Subject(std::string_view text, const PropertyTable& kinds) {
    bytes.reserve(text.size());
    begins.reserve(text.size() + 1);
    for (size_t at = 0; at < text.size();) {
      const ValidCodePoint here = code_point_at(text, at);
      bytes += static_cast<char>(kinds[here.value]);
      begins.push_back(static_cast<uint32_t>(at));
      at += here.length;
    }
    begins.push_back(static_cast<uint32_t>(text.size()));
    steps_left = kMostSteps + kMostStepsEach * bytes.size();
  }

  std::string bytes;
  std::vector<uint32_t> begins;  // [code points + 1]
  uint64_t steps_left;
  uint64_t work = 0;            // characters passed over, at most, since the clock was looked at
  std::optional<double> begun;  // when that first was done
};

class Regex final : public Pattern {
 public:
  Regex(std::string_view expression, std::string_view where)
      : Regex(expression, where, read_regex(expression, where)) {}

  std::optional<Span> find(std::string_view text, uint32_t from) const override {
    Subject subject(text, kinds_);
    const auto at = std::ranges::lower_bound(subject.begins, from) - subject.begins.begin();
    const auto match = search(subject, static_cast<size_t>(at));
    if (!match) return std::nullopt;
    return Span{subject.begins[match->first], subject.begins[match->second]};
  }

  // As the library goes through a text: an empty match right behind a match counts for nothing.
  std::optional<std::vector<Span>> find_all(std::string_view text) const override {
    Subject subject(text, kinds_);
    std::vector<Span> matches;
    size_t last = SIZE_MAX;  // where the last match ends
    for (size_t at = 0; at <= subject.bytes.size();) {
      const auto match = search(subject, at);
      if (!match) break;
      const auto [begin, end] = *match;
      if (begin == end && end == last) {
        ++at;
        continue;
      }
      matches.push_back({subject.begins[begin], subject.begins[end]});
      at = last = end;
    }
    return matches;
  }

 private:
  using Match = std::pair<size_t, size_t>;

  Regex(std::string_view expression, std::string_view where, const RegexProgram& program)
      : Regex(expression, where, program, Kinds(program.sets, where)) {}

  Regex(std::string_view expression, std::string_view where, const RegexProgram& program, const Kinds& kinds)
      : expression_(expression), where_(where), kinds_(kinds.kind_of()) {
    std::string written;
    for (const RegexProgram::Item& item : program.items) {
      written += item.set == RegexProgram::kNoSet ? item.frame : kinds.written(item.set);
    }
    int error = 0;
    size_t at = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(written.data()), written.size(),
                              PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_NO_AUTO_CAPTURE | PCRE2_USE_OFFSET_LIMIT,
                              &error, &at, nullptr));
    if (!code_) {
      base::fail(where, "a regular expression that PCRE2 can compile",
                 fmt::format("{}: {}", base::quoted(expression), error_text(error)));
    }
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // without it the same, slower
  }

  // The first match that begins at code point `from` or behind it.
  std::optional<Match> search(Subject& subject, size_t from) const {
    const size_t size = subject.bytes.size();
    for (size_t at = from; at <= size;) {
      const uint64_t left = size - at + 1;
      const size_t last = std::min<size_t>(size, at + kWorkBetween / left);
      int result = match(subject, at, last, kFewSteps);
      if (result == PCRE2_ERROR_MATCHLIMIT) result = match_each(subject, at, last);
      if (result < 0 && result != PCRE2_ERROR_NOMATCH) fail_at(subject, at, error_text(result));
      const size_t* ends = pcre2_get_ovector_pointer(workspace().match.get());
      spend(subject, at, ((result < 0 ? last : ends[0]) - at + 1) * left);
      if (result >= 0) return Match{ends[0], ends[1]};
      at = last + 1;
    }
    return std::nullopt;
  }

  // Looks at each place by itself: one that takes more than few steps gets more and more of them.
  int match_each(Subject& subject, size_t from, size_t last) const {
    for (size_t at = from; at <= last; ++at) {
      int result = match(subject, at, at, kFewSteps);
      for (uint64_t steps = kFewSteps; result == PCRE2_ERROR_MATCHLIMIT;) {
        steps *= kMoreSteps;
        if (steps > subject.steps_left) fail_at(subject, at, "too many steps");
        subject.steps_left -= steps;
        result = match(subject, at, at, static_cast<uint32_t>(steps));
      }
      if (result != PCRE2_ERROR_NOMATCH) return result;
      spend(subject, at, subject.bytes.size() - at + 1);
    }
    return PCRE2_ERROR_NOMATCH;
  }

  // Passing over characters is no step, and may be the whole of the text from each of its places. So the clock, that of
  // the processor, is looked at between.
  void spend(Subject& subject, size_t at, uint64_t work) const {
    subject.work += work;
    if (subject.work < kWorkBetween) return;
    subject.work = 0;
    const double now = processor_seconds();
    if (!subject.begun) subject.begun = now;
    if (now - *subject.begun > kSeconds + kSecondsEach * static_cast<double>(subject.bytes.size())) {
      fail_at(subject, at, "too long");
    }
  }

  // Looks from `from` to `last` for where a match begins.
  int match(const Subject& subject, size_t from, size_t last, uint32_t steps) const {
    Workspace& own = workspace();
    pcre2_set_match_limit(own.context.get(), steps);
    pcre2_set_offset_limit(own.context.get(), last);
    const auto run = [&](uint32_t options) {
      return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(subject.bytes.data()), subject.bytes.size(), from,
                         options, own.match.get(), own.context.get());
    };
    const int result = run(0);
    return result == PCRE2_ERROR_JIT_STACKLIMIT ? run(PCRE2_NO_JIT) : result;
  }

  [[noreturn]] void fail_at(const Subject& subject, size_t at, std::string_view what) const {
    base::fail(
        where_, fmt::format("a text that {} can be looked for in", base::quoted(expression_)),
        fmt::format("one that stops it at byte {}: {}", subject.begins[std::min(at, subject.bytes.size())], what),
        "cut the text there, or take a tokenizer with another expression");
  }

  std::string expression_, where_;
  PropertyTable kinds_;
  Code code_;
};

}  // namespace

std::unique_ptr<Pattern> regex_by_backtracking(std::string_view expression, std::string_view where) {
  return std::make_unique<Regex>(expression, where);
}

}  // namespace clearhead::text
