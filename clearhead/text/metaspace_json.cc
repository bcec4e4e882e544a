// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/metaspace_json.h"

#include "clearhead/base/error.h"
#include "clearhead/text/valid_utf8.h"

namespace clearhead::text {

MetaspaceConfig read_metaspace_config(JsonFields& fields) {
  using Prepend = MetaspaceConfig::Prepend;
  MetaspaceConfig config;
  config.mark = fields.string("replacement");
  if (config.mark.empty() || code_point_at(config.mark, 0).length != config.mark.size()) {
    base::fail(fields.where() + " replacement", "one character", base::quoted(config.mark));
  }
  if (fields.has("split")) config.split = fields.boolean("split");
  // Early files say add_prefix_space, later ones prepend_scheme, some both.
  const bool prefix = !fields.has("add_prefix_space") || fields.boolean("add_prefix_space");
  config.prepend = prefix ? Prepend::always : Prepend::never;
  if (fields.has("prepend_scheme")) {
    static constexpr Prepend kSchemes[] = {Prepend::always, Prepend::first, Prepend::never};
    config.prepend = kSchemes[fields.one_of("prepend_scheme", {"always", "first", "never"})];
    if (fields.has("add_prefix_space") && !prefix && config.prepend != Prepend::never) {
      base::fail(fields.where(), "prepend_scheme that agrees with add_prefix_space", "never and another scheme");
    }
  }
  if (fields.has("str_rep")) fields.string("str_rep");  // the replacement once more
  return config;
}

}  // namespace clearhead::text
