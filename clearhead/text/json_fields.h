// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clearhead::text {

// The fields of one JSON object of a foreign file. Each is asked for by name; close() refuses those that nobody asked
// for, so that nothing in a file is ignored without a word. `where` opens each error text.
class JsonFields {
 public:
  using Element = simdjson::dom::element;

  // Throws: Error if element is no object, has too many fields, or one twice.
  JsonFields(Element element, std::string where);

  const std::string& where() const { return where_; }
  bool has(std::string_view name) const { return peek(name) != nullptr; }

  // The field, or nothing if it is absent or null.
  std::optional<Element> optional(std::string_view name);

  // Throws: Error if the field is absent.
  Element required(std::string_view name);

  // Throws: Error if the field is absent or of another type.
  bool boolean(std::string_view name);
  std::string_view string(std::string_view name);
  uint64_t number(std::string_view name);

  // The index in `names` of the field's text. Throws: Error that lists the names if it is none of them.
  size_t one_of(std::string_view name, std::span<const std::string_view> names);
  size_t one_of(std::string_view name, std::initializer_list<std::string_view> names) {
    return one_of(name, std::span(names.begin(), names.size()));
  }

  // Throws: Error if there is a field that was not asked for.
  void close() const;

  // Throws: Error "expected X; found what the element is".
  [[noreturn]] static void fail(std::string_view where, std::string_view expected, Element found);

 private:
  struct Field {
    std::string_view name;
    Element value;
    bool asked = false;
  };

  const Field* peek(std::string_view name) const;

  std::string where_;
  std::vector<Field> fields_;
};

// How a component with the type `type` is read from its fields, all but closing them.
template <class Component>
struct Reader {
  std::string_view type;
  std::unique_ptr<Component> (*read)(JsonFields& fields);
};

// Reads a component by its field "type". Throws: Error that lists the types if it is none of them.
template <class Component, size_t size>
std::unique_ptr<Component> read_by_type(JsonFields::Element value, const std::string& where,
                                        const Reader<Component> (&readers)[size]) {
  JsonFields fields(value, where);
  std::vector<std::string_view> types;
  for (const Reader<Component>& reader : readers) types.push_back(reader.type);
  std::unique_ptr<Component> component = readers[fields.one_of("type", types)].read(fields);
  fields.close();
  return component;
}

}  // namespace clearhead::text
