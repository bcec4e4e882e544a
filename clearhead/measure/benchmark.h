// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/engine/session.h"
#include "clearhead/measure/attention_shape.h"
#include "clearhead/measure/clock.h"
#include "clearhead/measure/decoder_run.h"
#include "clearhead/measure/encoder_run.h"
#include "clearhead/measure/peak.h"

namespace clearhead::measure {

// One measured number, beside the peak of the same rounds. What has no meaning for it is absent.
struct Row {
  std::string name;   // attention, attention memory, encoder, decoder, tokenizer
  std::string shape;  // as AttentionShape, EncoderShape and DecoderShape write it; of a tokenizer: ids or tokens
  std::string evidence = "";      // name_of an Evidence, looks or none of a decoder; empty: there is no choice
  std::string precision = "f32";  // of products: f32, or bf16 where the processor has them; peak_gflops is theirs
  size_t threads = 1;
  double seconds = 0, best_seconds = 0;  // the middle one and the best of all rounds
  std::optional<double> gflops = std::nullopt, peak_gflops = std::nullopt;
  std::optional<double> share = std::nullopt, limit = std::nullopt;  // of the peak; limit: attention_limit
  std::optional<double> tokens_per_second = std::nullopt;
  std::optional<double> megabytes_per_second = std::nullopt;  // 10^6 bytes of text
  std::optional<size_t> working_bytes = std::nullopt;         // AttentionRun::working_bytes
};

struct Report {
  std::vector<size_t> threads;  // numbers of threads that were measured
  std::vector<Peak> peaks;      // one for each
  std::vector<Row> rows;
};

struct Options {
  std::vector<size_t> threads = {1};  // each of them, in turns
  Effort effort;
  // Called after each shape.
  std::function<void()> progress = [] {};
};

// Each function adds rows to a report; the number of threads is afterwards what it was.
// Throws: Error if an answer is wrong, before any clock starts; base::Interrupted.
void measure_peaks(const Options& options, Report& report);
void measure_attention(std::span<const AttentionShape> shapes, const Options& options, Report& report);
void measure_attention_memory(const AttentionShape& shape, const Options& options, Report& report);
void measure_encoder(const engine::Session& session, std::span<const EncoderShape> shapes, const Options& options,
                     Report& report);
void measure_decoder(const engine::Session& session, std::span<const DecoderShape> shapes, const Options& options,
                     Report& report);
void measure_tokenizer(std::string_view model, size_t text_bytes, const Options& options, Report& report);

}  // namespace clearhead::measure
