// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "clearhead/engine/generate.h"
#include "clearhead/engine/session.h"

namespace clearhead::apps {

// Says on standard error that a writing ended at the last position of the model, if it did, and for how many tokens
// positions were stretched, if that depends on the length (model::ModelConfig::stretches).
void report_context(const engine::Session& session, const engine::Generated& written);

// Says on standard error from which new token on the logits were no finite numbers, if they were not.
void report_non_finite_logits(const engine::Generated& written);

}  // namespace clearhead::apps
