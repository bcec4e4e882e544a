// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "clearhead/text/json_fields.h"
#include "clearhead/text/metaspace.h"

namespace clearhead::text {

// The fields that the pre-tokenizer Metaspace and the decoder of that name share. Throws: Error.
MetaspaceConfig read_metaspace_config(JsonFields& fields);

}  // namespace clearhead::text
