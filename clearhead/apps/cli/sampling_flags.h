// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "clearhead/engine/sampler.h"

namespace CLI {
class App;
}

namespace clearhead::apps {

// Flags that say how tokens are drawn.
void add_sampling_flags(CLI::App& command, engine::Sampling& sampling);

}  // namespace clearhead::apps
