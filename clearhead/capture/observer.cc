// SPDX-License-Identifier: Apache-2.0
#include "clearhead/capture/observer.h"

#include <span>

namespace clearhead::capture {

void Observer::observe_source(Stage stage, size_t layer, const WeightSource& source) {
  observe(stage, layer, source.all());
}

}  // namespace clearhead::capture
