// SPDX-License-Identifier: Apache-2.0
#include "clearhead/apps/cli/sampling_flags.h"

#include <CLI/CLI.hpp>

#include "clearhead/apps/cli/common.h"

namespace clearhead::apps {

void add_sampling_flags(CLI::App& command, engine::Sampling& sampling) {
  command.add_option("--temperature", sampling.temperature, "0: always the likeliest token (default); 1: as trained")
      ->type_name("T");
  command.add_option("--top-k", sampling.top_k, "draw among the K likeliest tokens only (default 0: all)")
      ->check(whole_number)
      ->type_name("K");
  command
      .add_option("--top-p", sampling.top_p, "draw among the fewest tokens whose probabilities sum to P (default 1)")
      ->type_name("P");
  command.add_option("--min-p", sampling.min_p, "draw among tokens at least P times as likely as the likeliest")
      ->type_name("P");
  command
      .add_option("--repetition-penalty", sampling.repetition_penalty,
                  "above 1: tokens of the text so far are less likely")
      ->type_name("R");
  command.add_option("--seed", sampling.seed, "the same seed draws the same tokens (default 0)")
      ->check(whole_number)
      ->type_name("S");
}

}  // namespace clearhead::apps
