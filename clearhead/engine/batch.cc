// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <ranges>
#include <utility>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/base/interrupt.h"
#include "clearhead/base/parallel.h"
#include "clearhead/capture/batch_recorder.h"
#include "clearhead/engine/memory_estimate.h"
#include "clearhead/engine/rebuilt.h"
#include "clearhead/engine/text_error.h"
#include "clearhead/model/workspace.h"

namespace clearhead::engine {
namespace {

constexpr size_t kBudgetsTogether = 8;  // texts of so many budgets are sorted by length together

// The first exception of several threads, kept until they are done.
class FirstProblem {
 public:
  template <class Work>
  void guard(const Work& work) {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!problem_) problem_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (problem_) std::rethrow_exception(problem_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr problem_;
};

}  // namespace

class Batch::Runner {
 public:
  Runner(const Session& session, capture::Selection selection, BatchOptions options)
      : session_(session),
        stages_(with_stages_of(session.transformer(), selection).stages),
        kept_(rebuildable(session.transformer(), selection)),
        options_(std::move(options)) {}

  void run(std::span<const std::string> texts, const std::function<std::string(const BatchItem&)>& make,
           const std::function<void(size_t index, std::string made)>& take) {
    size_t done = 0;
    const std::vector<size_t> lengths = lengths_of(texts);
    const size_t budget = tokens_together(lengths);
    for (size_t begin = 0; begin < texts.size();) {
      size_t end = begin, tokens = 0;
      while (end < texts.size() &&
             (end == begin || tokens + lengths[end] <= kBudgetsTogether * options_.token_budget)) {
        tokens += lengths[end++];
      }
      std::vector<std::string> made(end - begin);
      for (const std::vector<size_t>& batch : batches_of(lengths, begin, end, budget)) {
        base::check_interrupt();
        run_batch(texts, batch, lengths, [&](const BatchItem& item) { made[item.index - begin] = make(item); });
        done += batch.size();
        if (options_.progress) options_.progress(done, texts.size());
      }
      for (; begin < end; ++begin) take(begin, std::move(made[made.size() - (end - begin)]));
    }
  }

 private:
  // An error of one text says which it was.
  template <class Work>
  auto about_text(size_t index, size_t count, const Work& work) const {
    try {
      return work();
    } catch (const base::Error&) {
      throw_about(options_.name_of ? options_.name_of(index) : fmt::format("text {} of {}", index + 1, count));
    }
  }

  // Throws: Error for a text that cannot be read.
  std::vector<size_t> lengths_of(std::span<const std::string> texts) const {
    std::vector<size_t> lengths(texts.size());
    std::vector<FirstProblem> problems(texts.size());
    base::parallel_for(texts.size(), [&](size_t i) {
      problems[i].guard([&] {
        base::check_interrupt();
        lengths[i] =
            about_text(i, texts.size(), [&] { return session_.tokenize(texts[i], options_.truncate); }).tokens.size();
      });
    });
    for (const FirstProblem& problem : problems) problem.rethrow();  // that of the first text
    return lengths;
  }

  // The texts [begin, end) in batches of like lengths, the longest first.
  static std::vector<std::vector<size_t>> batches_of(const std::vector<size_t>& lengths, size_t begin, size_t end,
                                                     size_t budget) {
    std::vector<size_t> order;
    for (size_t i = begin; i < end; ++i) order.push_back(i);
    std::ranges::stable_sort(order, std::ranges::greater(), [&](size_t i) { return lengths[i]; });
    std::vector<std::vector<size_t>> batches;
    size_t tokens = 0;
    for (size_t i : order) {
      if (batches.empty() || tokens + lengths[i] > budget) {
        batches.emplace_back();
        tokens = 0;
      }
      batches.back().push_back(i);
      tokens += lengths[i];
    }
    return batches;
  }

  // How many tokens may run together: the budget, or fewer where that many would pass the memory limit.
  // Throws: Error for a text that passes the limit alone.
  size_t tokens_together(const std::vector<size_t>& lengths) const {
    const std::optional<size_t> available = options_.memory_limit ? std::nullopt : free_memory();
    if (!options_.memory_limit && !available) return options_.token_budget;
    const size_t limit = options_.memory_limit ? *options_.memory_limit : *available / 2;
    const auto bytes = [&](size_t tokens) { return estimate_run(session_.transformer(), tokens, kept_).total(); };
    const auto longest = std::ranges::max_element(lengths);
    if (longest != lengths.end() && bytes(*longest) > limit) {
      about_text(static_cast<size_t>(longest - lengths.begin()), lengths.size(), [&] {
        base::refuse("memory", fmt::format("a run that keeps at most {} bytes", limit),
                     fmt::format("{} bytes", bytes(*longest)), "record fewer layers or heads, or raise the limit");
      });
    }
    const auto sizes = std::views::iota(size_t{1}, options_.token_budget + 1);
    return static_cast<size_t>(std::ranges::partition_point(sizes, [&](size_t n) { return bytes(n) <= limit; }) -
                               sizes.begin());
  }

  template <class Visit>
  void run_batch(std::span<const std::string> texts, const std::vector<size_t>& batch,
                 const std::vector<size_t>& all_lengths, const Visit& visit) {
    std::vector<TokenizedText> tokenized;
    std::vector<int64_t> ids, types;
    std::vector<size_t> lengths;
    std::vector<capture::TraceInfo> infos;
    for (size_t index : batch) {
      TokenizedText& one = tokenized.emplace_back(session_.tokenize(texts[index], options_.truncate));
      for (const capture::TraceToken& token : one.tokens) ids.push_back(token.id);
      types.insert(types.end(), one.type_ids.begin(), one.type_ids.end());
      lengths.push_back(all_lengths[index]);
      infos.push_back(session_.trace_info(one));
    }
    capture::BatchRecorder recorder(kept_, std::move(infos), session_.config().attention.num_kv_heads);
    const std::span<const float> hidden = session_.transformer().run({ids, types, lengths}, workspace_, &recorder);
    std::vector<capture::Trace> traces = std::move(recorder).take();
    std::vector<size_t> firsts;
    for (size_t first = 0; size_t length : lengths) firsts.push_back(std::exchange(first, first + length));
    const size_t d_model = session_.config().d_model;
    std::vector<FirstProblem> problems(batch.size());
    base::parallel_for(batch.size(), [&](size_t i) {
      problems[i].guard([&] {
        attach_rebuilt(session_.transformer(), stages_, traces[i]);
        about_text(batch[i], texts.size(), [&] {
          visit({batch[i], tokenized[i], hidden.subspan(firsts[i] * d_model, lengths[i] * d_model), traces[i]});
        });
      });
    });
    for (const FirstProblem& problem : problems) problem.rethrow();
  }

  const Session& session_;
  std::vector<capture::Stage> stages_;  // as selected
  capture::Selection kept_;             // what they are rebuilt from
  BatchOptions options_;
  model::Workspace workspace_;
};

Batch::Batch(const Session& session, capture::Selection selection, BatchOptions options)
    : runner_(std::make_unique<Runner>(session, std::move(selection), std::move(options))) {}
Batch::~Batch() = default;

void Batch::run(std::span<const std::string> texts, const std::function<std::string(const BatchItem&)>& make,
                const std::function<void(size_t index, std::string made)>& take) {
  runner_->run(texts, make, take);
}

}  // namespace clearhead::engine
