// SPDX-License-Identifier: Apache-2.0
#include "clearhead/apps/cli/writing_notes.h"

#include <fmt/format.h>

#include "clearhead/apps/cli/console.h"

namespace clearhead::apps {

void report_context(const engine::Session& session, const engine::Generated& written) {
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
