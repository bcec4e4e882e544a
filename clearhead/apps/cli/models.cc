// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "clearhead/apps/cli/commands.h"
#include "clearhead/apps/cli/common.h"
#include "clearhead/apps/cli/console.h"
#include "clearhead/apps/cli/table.h"
#include "clearhead/format/known_models.h"

namespace clearhead::apps {
namespace {

std::string models_json() {
  nlohmann::ordered_json models = nlohmann::ordered_json::array();
  for (const auto& model : format::known_models()) {
    const auto folder = format::present(model);
    nlohmann::ordered_json row;
    row["name"] = model.name;
    row["description"] = model.description;
    row["family"] = model.family;
    row["license"] = model.license;
    row["needs_license_acceptance"] = model.needs_license_acceptance;
    row["num_layers"] = model.num_layers;
    row["num_heads"] = model.num_heads;
    row["num_kv_heads"] = model.num_kv_heads;
    row["d_model"] = model.d_model;
    row["download_megabytes"] = model.download_megabytes();
    row["disk_megabytes"] = model.disk_megabytes;
    row["path"] = folder ? nlohmann::ordered_json(folder->string()) : nlohmann::ordered_json();
    models.push_back(std::move(row));
  }
  nlohmann::ordered_json document;
  document["home"] = format::model_home().string();
  document["models"] = std::move(models);
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string models_table(const views::Style& style) {
  Table table({{"name", 22}, {"family", 7}, {"layers x heads", 14, true}, {"width", 6, true}, {"license", 20}, {""}});
  for (const auto& model : format::known_models()) {
    const bool here = format::present(model).has_value();
    const std::string state =
        here ? "present" : fmt::format("`clearhead fetch {}` ({} MB)", model.name, model.download_megabytes());
    table.add({model.name, model.family, fmt::format("{} x {}", model.num_layers, model.num_heads),
               fmt::format("{}", model.d_model), model.license, state});
    table.remark(model.description);
  }
  const std::string ending =
      fmt::format("Models live in {}. Any folder with config.json or name in the Hugging Face cache works too.",
                  format::model_home().string());
  return table.draw(style) + "\n" + wrapped("", ending, style);
}

}  // namespace

void add_models(CLI::App& program, Action& action) {
  auto flags = std::make_shared<OutputFlags>();
  CLI::App& command = *program.add_subcommand("models", "Show which models are known and which are present");
  add_output_flags(command, *flags);
  command.callback([flags, &action] {
    action = [flags] {
      const views::Style style = flags->apply();
      write_output(flags->json ? models_json() + "\n" : models_table(style));
    };
  });
}

}  // namespace clearhead::apps
