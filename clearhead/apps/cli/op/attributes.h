// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>

namespace clearhead::apps {

// The attributes of one operator, read from a JSON object. Each is asked for by name and type; what nobody asked for is
// refused at the end.
class Attributes {
 public:
  // where names the operator in errors ("op attention").
  // Throws: Error (usage) unless json is one object without repeated keys.
  Attributes(std::string where, std::string_view json);

  // Nothing if absent. Throws: Error (usage) naming the attribute if it has another type.
  std::optional<bool> flag(const std::string& name);  // true, false, 0 or 1
  std::optional<int64_t> integer(const std::string& name);
  std::optional<double> number(const std::string& name);  // finite in float
  std::optional<std::string> text(const std::string& name);
  // A count of at least 1.
  std::optional<size_t> count(const std::string& name);

  // Throws: Error (usage) for an attribute that was not asked for.
  void check_all_known() const;

 private:
  // monostate stands for a value that no attribute has (null, list, object).
  using Value = std::variant<std::monostate, bool, int64_t, double, std::string>;
  const Value* find(const std::string& name);
  [[noreturn]] void refuse_type(const std::string& name, std::string_view expected) const;

  std::string where_;
  std::map<std::string, Value> values_;
  std::set<std::string> asked_;
};

}  // namespace clearhead::apps
