// SPDX-License-Identifier: Apache-2.0
#include "clearhead/measure/benchmark.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/base/parallel.h"
#include "clearhead/format/checkpoint.h"
#include "clearhead/format/known_models.h"
#include "clearhead/measure/attention_run.h"
#include "clearhead/measure/bf16_rounds.h"
#include "clearhead/measure/tokenizer_run.h"

namespace clearhead::measure {
namespace {

// Puts the number of threads back.
class Threads {
 public:
  Threads() : before_(base::num_threads()) {}
  ~Threads() { base::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  size_t before_;
};

// What is measured in one set of rounds: works on some number of threads, each number's peaks beside them.
class Rounds {
 public:
  explicit Rounds(const Options& options) : options_(options) {
    for (const size_t threads : options.threads) {
      turns_.push_back([threads] { return multiply_add_peak(threads); });
      turns_.push_back([threads] { return exp2_peak(threads); });
      turns_.push_back([threads] { return bf16_peak(threads).value_or(0); });
    }
  }

  // The next row of the report: work on so many threads.
  void add(Row row, std::function<void()> work) {
    const double turn_seconds = options_.effort.turn_seconds;
    turns_.push_back([threads = row.threads, turn_seconds, work = std::move(work)] {
      base::set_num_threads(threads);
      return median_seconds(work, turn_seconds);
    });
    rows_.push_back(std::move(row));
  }

  // Measures; rows get their seconds and the peak.
  std::vector<Row> take() {
    const Threads before;
    const auto results = take_turns(turns_, options_.effort);
    std::vector<double> middles;
    for (const auto& values : results) middles.push_back(median_of(values));
    for (size_t i = 0; i < options_.threads.size(); ++i) {
      peaks_[options_.threads[i]] = {middles[3 * i], middles[3 * i + 1], middles[3 * i + 2]};
    }
    const size_t first = 3 * options_.threads.size();
    for (size_t i = 0; i < rows_.size(); ++i) {
      rows_[i].seconds = middles[first + i];
      rows_[i].best_seconds = *std::ranges::min_element(results[first + i]);
    }
    return std::move(rows_);
  }

  // The peak beside a row that take returned, of its products.
  Peak peak_of(const Row& row) const {
    Peak peak = peaks_.at(row.threads);
    if (row.precision == "bf16") peak.multiply_add_gflops = *peak.bf16_gflops;
    return peak;
  }

 private:
  const Options& options_;
  std::vector<Turn> turns_;
  std::vector<Row> rows_;
  std::map<size_t, Peak> peaks_;  // by number of threads
};

void set_rate(Row& row, double operations, const Peak& peak) {
  row.gflops = operations / row.seconds / 1e9;
  row.peak_gflops = peak.multiply_add_gflops;
  row.share = *row.gflops / *row.peak_gflops;
}

void check_answer(AttentionRun& problem) {
  if (problem.is_right()) return;
  base::fail("bench", fmt::format("the bits of the exact path for {}", problem.shape().text()), "other bits",
             "please report it");
}

}  // namespace

void measure_peaks(const Options& options, Report& report) {
  report.threads = options.threads;
  for (const size_t threads : options.threads) report.peaks.push_back(measure_peak(threads));
  options.progress();
}

void measure_attention(std::span<const AttentionShape> shapes, const Options& options, Report& report) {
  for (const AttentionShape& shape : shapes) {
    AttentionRun single(shape);
    check_answer(single);
    std::optional<AttentionRun> bfloat16;
    if (has_bf16_products()) check_answer(bfloat16.emplace(shape, attention::Precision::bfloat16));
    Rounds rounds(options);
    Row row{.name = "attention", .shape = shape.text()};
    for (const size_t threads : options.threads) {
      row.threads = threads;
      row.precision = "f32";
      for (const Evidence evidence : kEvidence) {
        row.evidence = name_of(evidence);
        rounds.add(row, [&single, evidence] { single.run(evidence); });
      }
      row.evidence = name_of(Evidence::none);
      row.precision = "bf16";
      if (bfloat16) rounds.add(row, [&bfloat16] { bfloat16->run(Evidence::none); });
    }
    for (Row& measured : rounds.take()) {
      const Peak peak = rounds.peak_of(measured);
      set_rate(measured, shape.operations(), peak);
      measured.limit = attention_limit(peak, shape.head_dim);
      report.rows.push_back(std::move(measured));
    }
    options.progress();
  }
}

void measure_attention_memory(const AttentionShape& shape, const Options& options, Report& report) {
  const Threads before;
  AttentionRun problem(shape);
  for (const Evidence evidence : kEvidence) {
    Row row{.name = "attention memory", .shape = shape.text(), .evidence = std::string(name_of(evidence))};
    row.threads = options.threads.back();
    base::set_num_threads(row.threads);
    row.seconds = row.best_seconds = seconds_of([&] { row.working_bytes = problem.working_bytes(evidence); });
    report.rows.push_back(std::move(row));
  }
  options.progress();
}

void measure_encoder(const engine::Session& session, std::span<const EncoderShape> shapes, const Options& options,
                     Report& report) {
  for (const EncoderShape& shape : shapes) {
    EncoderRun problem(session, shape);
    problem.run();
    Rounds rounds(options);
    for (const size_t threads : options.threads) {
      Row row{.name = "encoder", .shape = shape.text()};
      row.threads = threads;
      rounds.add(std::move(row), [&problem] { problem.run(); });
    }
    for (Row& row : rounds.take()) {
      set_rate(row, encoder_operations(session.config(), shape), rounds.peak_of(row));
      row.tokens_per_second = double(shape.tokens()) / row.seconds;
      report.rows.push_back(std::move(row));
    }
    options.progress();
  }
}

void measure_decoder(const engine::Session& session, std::span<const DecoderShape> shapes, const Options& options,
                     Report& report) {
  for (const DecoderShape& shape : shapes) {
    DecoderRun single(session, shape);
    std::optional<DecoderRun> bfloat16;
    if (has_bf16_products() && !shape.decodes) bfloat16.emplace(session, shape, linear::Compute::bfloat16);
    single.run();
    Rounds rounds(options);
    for (const size_t threads : options.threads) {
      Row row{.name = "decoder", .shape = shape.text(), .evidence = "none"};
      row.threads = threads;
      rounds.add(row, [&single] { single.run(); });
      if (shape.decodes) {
        row.evidence = "looks";
        rounds.add(row, [&single] { single.run(true); });
      } else if (bfloat16) {
        row.precision = "bf16";
        rounds.add(row, [&bfloat16] { bfloat16->run(); });
      }
    }
    for (Row& row : rounds.take()) {
      const EncoderShape as_text{1, shape.context};
      if (!shape.decodes) set_rate(row, encoder_operations(session.config(), as_text), rounds.peak_of(row));
      row.tokens_per_second = double(single.tokens()) / row.seconds;
      report.rows.push_back(std::move(row));
    }
    options.progress();
  }
}

void measure_tokenizer(std::string_view model, size_t text_bytes, const Options& options, Report& report) {
  const auto checkpoint = format::Checkpoint::open(format::resolve_model(model).path);
  const auto tokenizer = text::Tokenizer::from_file(checkpoint.tokenizer_path());
  const std::string text = sample_text(tokenizer, text_bytes);
  if (tokenize_lines(tokenizer, text, true) != tokenize_lines(tokenizer, text, false)) {
    base::fail("bench", "as many tokens as ids", "another number", "please report it");
  }
  Options alone = options;
  alone.threads = {1};  // a text is tokenized by one thread
  Rounds rounds(alone);
  for (const bool offsets : {false, true}) {
    rounds.add(Row{.name = "tokenizer", .shape = offsets ? "tokens" : "ids"},
               [&, offsets] { tokenize_lines(tokenizer, text, offsets); });
  }
  for (Row& row : rounds.take()) {
    row.megabytes_per_second = double(text.size()) / row.seconds / 1e6;
    report.rows.push_back(std::move(row));
  }
  options.progress();
}

}  // namespace clearhead::measure
