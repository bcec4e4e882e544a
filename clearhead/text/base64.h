// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace clearhead::text {

// The bytes of a text in base64, with padding and without line ends.
// Throws: Error if it is none; `where` opens the text.
// Source: RFC 4648, section 4.
std::string decode_base64(std::string_view text, const std::string& where);

// The text of some bytes, likewise.
std::string encode_base64(std::string_view bytes);

}  // namespace clearhead::text
