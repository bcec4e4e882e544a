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

// The steps that a place of a text may take before it counts as a hard one, by what PCRE2 calls a match limit. Each
// goes over the rest of the text and over the expression a few times at most, unless groups are repeated, which a
// compiled expression does without a step: expressions that do so are guarded from the beginning.
constexpr uint32_t kFewSteps = 64, kMoreSteps = 4096;

// The processor time that a text has, and each of its characters: many times what the slowest expressions of tokenizers
// in use need. How many characters may be gone over between two looks at the clock, for a text and each of its
// characters: some tenths of that time. A step at the end of a text counts as so many, and one for some bytes of code.
constexpr double kSeconds = 1, kSecondsEach = 4e-6;
constexpr uint64_t kWorkBetween = uint64_t{1} << 27, kWorkBetweenEach = kMoreSteps, kWorkAtEnd = 16, kCodeBytes = 16;

// Memory in which is noted where to go back to, for each thread; and for one place that needs more, as long as it does,
// by the length of the text. Compiled expressions have it on a stack, others need about ten times as much, on the heap.
constexpr size_t kFirstBytes = 32 << 10, kMostBytes = 4 << 20;
constexpr size_t kDeepBytes = 64 << 20, kDeepBytesEach = 512, kMostDeepBytes = 512 << 20;

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

// What matching needs besides the expression.
struct Workspace {
  std::unique_ptr<pcre2_match_data, Free<pcre2_match_data_free>> match{pcre2_match_data_create(1, nullptr)};
  std::unique_ptr<pcre2_match_context, Free<pcre2_match_context_free>> context{pcre2_match_context_create(nullptr)};
  std::unique_ptr<pcre2_jit_stack, Free<pcre2_jit_stack_free>> stack;

  explicit Workspace(size_t most_bytes) : stack(pcre2_jit_stack_create(kFirstBytes, most_bytes, nullptr)) {
    if (!match || !context) base::fail("regular expressions", "memory for matching", "none");
    pcre2_set_heap_limit(context.get(), static_cast<uint32_t>(most_bytes >> 10));
    if (stack) pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

// That of this thread.
Workspace& workspace() {
  static thread_local Workspace own(kMostBytes);
  return own;
}

// That lives on this thread, or nullptr.
thread_local RegexTime* shared_time = nullptr;

}  // namespace

RegexTime::RegexTime() {
  if (shared_time == nullptr) shared_time = this;
}

RegexTime::~RegexTime() {
  if (shared_time == this) shared_time = nullptr;
}

// The processor time that a text may take. The clock is looked at whenever enough may have happened since it last was.
class RegexBudget {
 public:
  RegexBudget(size_t characters, size_t code_bytes)
      : between_(kWorkBetween + kWorkBetweenEach * characters), beside_(kWorkAtEnd + code_bytes / kCodeBytes) {
    shared_time->seconds_ += kSecondsEach * static_cast<double>(characters);
  }

  // How many steps over `characters` characters there may be between two looks at the clock.
  uint64_t steps_between(size_t characters) const { return between_ / (characters + beside_); }

  // Notes that so many steps over `characters` characters were taken, at most. Whether there is time left.
  bool spend(uint64_t steps, size_t characters) {
    RegexTime& shared = *shared_time;
    shared.work_ += steps * (characters + beside_);
    if (shared.work_ < between_) return true;
    shared.work_ = 0;
    const double now = processor_seconds();
    if (!shared.begun_) shared.begun_ = now;
    return now - *shared.begun_ <= kSeconds + shared.seconds_;
  }

 private:
  RegexTime own_;  // unless one lives already
  uint64_t between_, beside_;
};

namespace {

// A text with one byte for each code point, and where each begins in it.
struct Subject {
  Subject(std::string_view text, const PropertyTable& kinds, size_t code_bytes) {
    bytes.reserve(text.size());
    begins.reserve(text.size() + 1);
    for (size_t at = 0; at < text.size();) {
      const ValidCodePoint here = code_point_at(text, at);
      bytes += static_cast<char>(kinds[here.value]);
      begins.push_back(static_cast<uint32_t>(at));
      at += here.length;
    }
    begins.push_back(static_cast<uint32_t>(text.size()));
    budget.emplace(bytes.size(), code_bytes);
  }

  std::string bytes;
  std::vector<uint32_t> begins;       // [code points + 1]
  std::optional<RegexBudget> budget;  // always there
};

// PCRE2 calls it before each item of a guarded expression, between two of which it goes over the rest of the text a few
// times at most.
int look_at_budget(pcre2_callout_block* block, void* budget) {
  const size_t left = block->subject_length - block->current_position;
  return static_cast<RegexBudget*>(budget)->spend(1, left) ? 0 : PCRE2_ERROR_CALLOUT;
}

// A place at which more steps or memory may be what is missing.
bool is_hard(int result) {
  return result == PCRE2_ERROR_MATCHLIMIT || result == PCRE2_ERROR_JIT_STACKLIMIT || result == PCRE2_ERROR_HEAPLIMIT;
}

class Regex final : public Pattern {
 public:
  Regex(std::string_view expression, std::string_view where, RegexEngine engine)
      : Regex(expression, where, engine, read_regex(expression, where)) {}

  std::optional<Span> find(std::string_view text, uint32_t from) const override {
    Subject subject(text, kinds_, code_bytes_);
    const auto at = std::ranges::lower_bound(subject.begins, from) - subject.begins.begin();
    const auto match = search(subject, static_cast<size_t>(at));
    if (!match) return std::nullopt;
    return Span{subject.begins[match->first], subject.begins[match->second]};
  }

  // As the library goes through a text: an empty match right behind a match counts for nothing.
  std::optional<std::vector<Span>> find_all(std::string_view text) const override {
    Subject subject(text, kinds_, code_bytes_);
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

  static constexpr std::string_view kTooLong = "too long";

  Regex(std::string_view expression, std::string_view where, RegexEngine engine, const RegexProgram& program)
      : Regex(expression, where, engine, program, Kinds(program.sets, where)) {}

  Regex(std::string_view expression, std::string_view where, RegexEngine engine, const RegexProgram& program,
        const Kinds& kinds)
      : expression_(expression), where_(where), kinds_(kinds.kind_of()) {
    std::string written;
    for (const RegexProgram::Item& item : program.items) {
      written += item.set == RegexProgram::kNoSet ? item.frame : kinds.written(item.set);
    }
    repeats_groups_ = program.repeats_groups;
    code_ = compiled(written, engine, 0);
    pcre2_pattern_info(code_.get(), PCRE2_INFO_SIZE, &code_bytes_);
    guarded_code_ = compiled(written, engine, PCRE2_AUTO_CALLOUT);
  }

  // Where the processor is one for which PCRE2 has no compiler, or the engine is to do without, it interprets: several
  // times as slow, and its steps are counted in another way, but they bound no more than when a place is a hard one.
  Code compiled(const std::string& written, RegexEngine engine, uint32_t options) const {
    int error = 0;
    size_t at = 0;
    Code code(
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(written.data()), written.size(),
                      PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_NO_AUTO_CAPTURE | PCRE2_USE_OFFSET_LIMIT | options,
                      &error, &at, nullptr));
    if (!code) {
      base::fail(where_, "a regular expression that PCRE2 can compile",
                 fmt::format("{}: {}", base::quoted(expression_), error_text(error)));
    }
    if (engine == RegexEngine::kCompiled) pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
    return code;
  }

  // The first match that begins at code point `from` or behind it. Looks at many places at once, but not at more than
  // may be done between two looks at the clock.
  std::optional<Match> search(Subject& subject, size_t from) const {
    const size_t size = subject.bytes.size();
    for (size_t at = from; at <= size;) {
      const size_t last = std::min<size_t>(size, at + subject.budget->steps_between(size - at) / kFewSteps);
      std::optional<Match> found;
      int result = repeats_groups_ ? match_guarded(subject, at, last, workspace(), found)
                                   : match(subject, at, last, kFewSteps, found);
      spend(subject, at, kFewSteps * ((found ? found->first : last) - at + 1));
      if (is_hard(result)) result = match_each(subject, at, last, found);
      if (found) return found;
      if (result != PCRE2_ERROR_NOMATCH) fail_with(subject, at, result);
      at = last + 1;
    }
    return std::nullopt;
  }

  // Looks at each place by itself: one that takes more than few steps gets more of them, then as many as there is time
  // for, then more memory too.
  int match_each(Subject& subject, size_t from, size_t last, std::optional<Match>& found) const {
    for (size_t at = from; at <= last; ++at) {
      int result = PCRE2_ERROR_MATCHLIMIT;
      for (const uint32_t steps : {kFewSteps, kMoreSteps}) {
        if (!is_hard(result) || repeats_groups_) break;
        result = match(subject, at, at, steps, found);
        spend(subject, at, steps);
      }
      if (is_hard(result)) result = match_guarded(subject, at, at, workspace(), found);
      if (is_hard(result)) {
        Workspace deep(std::min(kMostDeepBytes, kDeepBytes + kDeepBytesEach * subject.bytes.size()));
        result = match_guarded(subject, at, at, deep, found);
      }
      if (found) return result;
      if (result != PCRE2_ERROR_NOMATCH) fail_with(subject, at, result);
    }
    return PCRE2_ERROR_NOMATCH;
  }

  // So many steps from `at` on.
  void spend(Subject& subject, size_t at, uint64_t steps) const {
    if (!subject.budget->spend(steps, subject.bytes.size() - at)) fail_at(subject, at, kTooLong);
  }

  // Looks from `from` to `last` for where a match begins.
  int match(const Subject& subject, size_t from, size_t last, uint32_t steps, std::optional<Match>& found) const {
    pcre2_set_match_limit(workspace().context.get(), steps);
    pcre2_set_offset_limit(workspace().context.get(), last);
    return run(*code_, subject, from, workspace(), found);
  }

  // The same for as long as there is time.
  int match_guarded(Subject& subject, size_t from, size_t last, Workspace& own, std::optional<Match>& found) const {
    pcre2_set_match_limit(own.context.get(), UINT32_MAX);
    pcre2_set_depth_limit(own.context.get(), UINT32_MAX);
    pcre2_set_offset_limit(own.context.get(), last);
    pcre2_set_callout(own.context.get(), look_at_budget, &*subject.budget);
    return run(*guarded_code_, subject, from, own, found);
  }

  static int run(const pcre2_code& code, const Subject& subject, size_t from, Workspace& own,
                 std::optional<Match>& found) {
    const int result = pcre2_match(&code, reinterpret_cast<PCRE2_SPTR>(subject.bytes.data()), subject.bytes.size(),
                                   from, 0, own.match.get(), own.context.get());
    const size_t* ends = pcre2_get_ovector_pointer(own.match.get());
    if (result >= 0) found = Match{ends[0], ends[1]};
    return result;
  }

  [[noreturn]] void fail_with(const Subject& subject, size_t at, int error) const {
    fail_at(subject, at, error == PCRE2_ERROR_CALLOUT ? std::string(kTooLong) : error_text(error));
  }

  [[noreturn]] void fail_at(const Subject& subject, size_t at, std::string_view what) const {
    base::fail(
        where_, fmt::format("a text that {} can be looked for in", base::quoted(expression_)),
        fmt::format("one that stops it at byte {}: {}", subject.begins[std::min(at, subject.bytes.size())], what),
        "cut the text there, or take a tokenizer with another expression");
  }

  std::string expression_, where_;
  PropertyTable kinds_;
  Code code_, guarded_code_;
  bool repeats_groups_ = false;
  size_t code_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Pattern> regex_by_backtracking(std::string_view expression, std::string_view where,
                                               RegexEngine engine) {
  return std::make_unique<Regex>(expression, where, engine);
}

}  // namespace clearhead::text
