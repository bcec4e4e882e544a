// SPDX-License-Identifier: Apache-2.0
#include "clearhead/apps/cli/writing_notes.h"

#include <fmt/format.h>

#include "clearhead/apps/cli/console.h"

namespace clearhead::apps {

void report_context(const engine::Session& session, const engine::Generated& written) {
  if (session.config().stretches(written.declared_len)) {
    note(fmt::format(
        "positions are stretched for {} tokens, those of the prompt and of --max-tokens: with another number "
        "the text may be another",
        written.declared_len));
  }
  if (written.stopped_by != "context") return;
  note(fmt::format("stopped at {} tokens, the positions of the model", session.config().context_len));
}

void report_non_finite_logits(const engine::Generated& written) {
  if (!written.non_finite) return;
  note(
      fmt::format("logits are not finite, first seen where new token {} was chosen: the model's parameters are damaged "
                  "(see `clearhead inspect`), and what is written means nothing",
                  *written.non_finite));
}

}  // namespace clearhead::apps
