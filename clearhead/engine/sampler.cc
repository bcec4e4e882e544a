// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "clearhead/base/error.h"

namespace clearhead::engine {
namespace {

void expect(bool holds, std::string_view what, std::string_view range, double found) {
  if (!holds) base::refuse(what, range, fmt::format("{}", found));
}

// A token that may be drawn.
struct Candidate {
  size_t id;
  double logit, probability = 0;
};

// The logits of tokens, nearer to none for those that were seen.
class Penalized {
 public:
  Penalized(std::span<const float> logits, double penalty, std::span<const int64_t> seen)
      : logits_(logits), penalty_(penalty) {
    if (penalty != 1) seen_.insert(seen.begin(), seen.end());
  }

  double operator[](size_t id) const {
    const auto logit = static_cast<double>(logits_[id]);
    if (penalty_ == 1 || !seen_.contains(static_cast<int64_t>(id))) return logit;
    return logit > 0 ? logit / penalty_ : logit * penalty_;
  }

 private:
  std::span<const float> logits_;
  double penalty_;
  std::set<int64_t> seen_;
};

[[noreturn]] void refuse_logits() {
  base::fail("generate", "logits that are numbers", "none", "the model's parameters are damaged");
}

bool comes_first(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// The candidate that comes first, found without a list of all.
size_t first_candidate(std::span<const float> logits, const Penalized& penalized, const Choices& choices) {
  std::optional<Candidate> best;
  for (size_t id = 0; id < logits.size(); ++id) {
    if (std::isnan(logits[id]) || !choices.contains(id)) continue;
    const Candidate candidate{id, penalized[id]};
    if (!best || comes_first(candidate, *best)) best = candidate;
  }
  if (!best) refuse_logits();
  return best->id;
}

// Probabilities of sorted candidates, up to a common factor.
void set_probabilities(double temperature, std::vector<Candidate>& candidates) {
  const double largest = candidates.front().logit;
  double sum = 0;
  for (Candidate& candidate : candidates)
    sum += candidate.probability = std::exp((candidate.logit - largest) / temperature);
  for (Candidate& candidate : candidates) candidate.probability /= sum;
}

// How many of the sorted candidates min_p and top_p leave; at least one.
size_t kept(const Sampling& sampling, std::span<const Candidate> candidates) {
  size_t count = 1;
  double sum = candidates[0].probability;
  while (count < candidates.size() && sum < sampling.top_p &&
         candidates[count].probability >= sampling.min_p * candidates[0].probability) {
    sum += candidates[count++].probability;
  }
  return count;
}

}  // namespace

void Sampling::check() const {
  expect(std::isfinite(temperature) && temperature >= 0, "temperature", "a finite number, 0 or more", temperature);
  expect(top_p > 0 && top_p <= 1, "top-p", "above 0 and at most 1", top_p);
  expect(min_p >= 0 && min_p <= 1, "min-p", "0 to 1", min_p);
  expect(std::isfinite(repetition_penalty) && repetition_penalty > 0, "repetition-penalty", "a finite number above 0",
         repetition_penalty);
}

bool Choices::contains(size_t id) const {
  const auto token = static_cast<int64_t>(id);
  return (id < num_pieces && (holes.empty() || !holes.contains(token))) || end_ids.contains(token);
}

Sampler::Sampler(const Sampling& sampling, Choices choices) : sampling_(sampling), choices_(std::move(choices)) {
  sampling.check();
}

// Source: Steele, Lea and Flood 2014, Fast Splittable Pseudorandom Number Generators (SplitMix64).
double Sampler::next_uniform() {
  uint64_t z = sampling_.seed + 0x9e3779b97f4a7c15 * ++drawn_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1p-53;
}

size_t Sampler::pick(std::span<const float> logits, std::span<const int64_t> seen) {
  const Penalized penalized(logits, sampling_.repetition_penalty, seen);
  if (sampling_.temperature == 0) return first_candidate(logits, penalized, choices_);
  std::vector<Candidate> candidates;
  candidates.reserve(logits.size());
  for (size_t id = 0; id < logits.size(); ++id) {
    if (!std::isnan(logits[id]) && choices_.contains(id)) candidates.push_back({id, penalized[id]});
  }
  if (candidates.empty()) refuse_logits();
  const size_t most = sampling_.top_k == 0 ? candidates.size() : std::min(sampling_.top_k, candidates.size());
  std::ranges::partial_sort(candidates, candidates.begin() + static_cast<std::ptrdiff_t>(most), comes_first);
  candidates.resize(most);
  set_probabilities(sampling_.temperature, candidates);
  candidates.resize(kept(sampling_, candidates));
  double sum = 0;
  for (const Candidate& candidate : candidates) sum += candidate.probability;
  double left = next_uniform() * sum;
  for (const Candidate& candidate : candidates) {
    left -= candidate.probability;
    if (left < 0) return candidate.id;
  }
  return candidates.back().id;
}

}  // namespace clearhead::engine
