// SPDX-License-Identifier: Apache-2.0
#include "clearhead/apps/cli/bench_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "clearhead/views/json_writer.h"

namespace clearhead::apps {
namespace {

using measure::Machine;
using measure::Report;
using measure::Row;

void write_machine(views::JsonWriter& json, const Machine& machine) {
  json.key("machine").begin_object();
  json.member("cpu", machine.cpu).member("features", machine.features).member("cores", machine.cores);
  json.member("memory_bytes", machine.memory_bytes).member("target", machine.target);
  json.member("compiler", machine.compiler).member("version", machine.version).end_object();
}

void write_row(views::JsonWriter& json, const Row& row) {
  json.begin_object().member("name", row.name).member("shape", row.shape);
  json.key("evidence");
  row.evidence.empty() ? json.null() : json.value(row.evidence);
  json.member("precision", row.precision);
  json.member("threads", row.threads).member("seconds", row.seconds).member("best_seconds", row.best_seconds);
  json.member("gflops", row.gflops).member("peak_gflops", row.peak_gflops).member("share", row.share);
  json.member("limit", row.limit).member("tokens_per_second", row.tokens_per_second);
  json.member("megabytes_per_second", row.megabytes_per_second).member("working_bytes", row.working_bytes);
  json.end_object();
}

// A number of a table; nothing where there is none.
std::string number(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "";
}

std::string threads_word(size_t threads) { return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s"); }

std::string peak_table(const Report& report) {
  std::string table = fmt::format("\n{:<40}", "peak of this machine, 10^9 operations/s");
  for (const size_t threads : report.threads) table += fmt::format("{:>12}", threads_word(threads));
  const auto line = [&](std::string_view name, auto rate_of) {
    if (!rate_of(report.peaks.front())) return;
    table += fmt::format("\n  {:<38}", name);
    for (const measure::Peak& peak : report.peaks) table += fmt::format("{:>12.1f}", *rate_of(peak));
  };
  using Rate = std::optional<double>;
  line("fused multiply-add, F32 (2 each)", [](const measure::Peak& peak) { return Rate(peak.multiply_add_gflops); });
  line("multiply-add, BF16 (2 each)", [](const measure::Peak& peak) { return peak.bf16_gflops; });
  line("exp2, F32", [](const measure::Peak& peak) { return Rate(peak.exp2_giga); });
  return table + "\n";
}

// The rows of one shape are neighbours: number of threads after number of threads, evidence after evidence.
class ShapeRows {
 public:
  ShapeRows(std::span<const Row> rows, std::string_view name, std::string_view shape) {
    for (const Row& row : rows) {
      if (row.name == name && row.shape == shape) rows_.push_back(&row);
    }
  }

  const Row* find(size_t threads, std::string_view evidence, std::string_view precision = "f32") const {
    for (const Row* row : rows_) {
      if (row->threads == threads && row->evidence == evidence && row->precision == precision) return row;
    }
    return nullptr;
  }

 private:
  std::vector<const Row*> rows_;
};

std::vector<std::string> shapes_of(const Report& report, std::string_view name) {
  std::vector<std::string> shapes;
  for (const Row& row : report.rows) {
    if (row.name == name && std::ranges::find(shapes, row.shape) == shapes.end()) shapes.push_back(row.shape);
  }
  return shapes;
}

// How many times as fast the most threads are as the fewest.
std::string speedup(const Row* few, const Row* many) {
  return few == nullptr || many == nullptr || few == many ? "" : number(few->seconds / many->seconds, 2);
}

// "123.4 GFLOP/s 56 %", or as many spaces.
std::string rate(const Row* row) {
  if (row == nullptr) return std::string(22, ' ');
  return fmt::format("{:>9.1f} GFLOP/s{:>3.0f} %", *row->gflops, 100 * *row->share);
}

// How much longer another run of the same shape takes.
std::string more_time(const Row* row, const Row* than) {
  return row == nullptr ? "" : fmt::format("{:>+8.1f} %", 100 * (row->seconds / than->seconds - 1));
}

std::string attention_table(const Report& report) {
  const auto shapes = shapes_of(report, "attention");
  if (shapes.empty()) return "";
  const size_t few = report.threads.front(), many = report.threads.back();
  std::string table = fmt::format("\n{:<24}", "core attention, F32");
  for (const size_t threads : report.threads) table += fmt::format("{:>22}", threads_word(threads));
  table += fmt::format("{:>9}{:>8}{:>10}{:>10}{:>10}{:>22}", "limit", "faster", "rows", "all", "received", "BF16");
  for (const std::string& shape : shapes) {
    const ShapeRows rows(report.rows, "attention", shape);
    table += fmt::format("\n  {:<22}", shape);
    for (const size_t threads : report.threads) table += rate(rows.find(threads, "none"));
    const Row* plain = rows.find(many, "none");
    table += fmt::format("{:>7.0f} %{:>8}", 100 * *plain->limit, speedup(rows.find(few, "none"), plain));
    for (const auto& evidence : {"rows", "all", "received"}) table += more_time(rows.find(many, evidence), plain);
    table += rate(rows.find(many, "none", "bf16"));
  }
  return table + "\n";
}

std::string memory_table(const Report& report) {
  std::string table;
  for (const Row& row : report.rows) {
    if (!row.working_bytes) continue;
    table += fmt::format("  {:<30} statistics: {:<8}{:>12.2f} MB\n", row.shape, row.evidence,
                         double(*row.working_bytes) / 1e6);
  }
  return table.empty() ? "" : "\nworking memory of a run, beyond inputs and results\n" + table;
}

std::string encoder_table(const Report& report) {
  const auto shapes = shapes_of(report, "encoder");
  if (shapes.empty()) return "";
  std::string table = fmt::format("\n{:<24}", "encoder, F32");
  for (const size_t threads : report.threads) table += fmt::format("{:>22}", threads_word(threads));
  table += fmt::format("{:>9}", "faster");
  for (const std::string& shape : shapes) {
    const ShapeRows rows(report.rows, "encoder", shape);
    table += fmt::format("\n  {:<22}", shape);
    for (const size_t threads : report.threads) {
      const Row& row = *rows.find(threads, "");
      table += fmt::format("{:>8.0f} tokens/s{:>3.0f} %", *row.tokens_per_second, 100 * *row.share);
    }
    table += fmt::format("{:>9}", speedup(rows.find(report.threads.front(), ""), rows.find(report.threads.back(), "")));
  }
  return table + "\n";
}

std::string decoder_table(const Report& report) {
  const auto shapes = shapes_of(report, "decoder");
  if (shapes.empty()) return "";
  const size_t many = report.threads.back();
  std::string table = fmt::format("\n{:<24}", "decoder, tokens/s");
  for (const size_t threads : report.threads) table += fmt::format("{:>12}", threads_word(threads));
  table += fmt::format("{:>10}{:>9}{:>12}{:>10}", "share", "faster", "BF16", "looks");
  for (const std::string& shape : shapes) {
    const ShapeRows rows(report.rows, "decoder", shape);
    const Row *plain = rows.find(many, "none"), *rounded = rows.find(many, "none", "bf16");
    table += fmt::format("\n  {:<22}", shape);
    for (const size_t threads : report.threads) {
      table += fmt::format("{:>12.0f}", *rows.find(threads, "none")->tokens_per_second);
    }
    table += fmt::format("{:>10}", plain->share ? fmt::format("{:.0f} %", 100 * *plain->share) : "");
    table += fmt::format("{:>9}", speedup(rows.find(report.threads.front(), "none"), plain));
    table += fmt::format("{:>12}{:>10}", rounded == nullptr ? "" : number(rounded->tokens_per_second, 0),
                         more_time(rows.find(many, "looks"), plain));
  }
  return table + "\n";
}

std::string tokenizer_table(const Report& report) {
  std::string table;
  for (const Row& row : report.rows) {
    if (!row.megabytes_per_second) continue;
    table += fmt::format("  {:<22}{:>12.1f} MB/s\n", row.shape == "ids" ? "ids alone" : "tokens with offsets",
                         *row.megabytes_per_second);
  }
  return table.empty() ? "" : "\ntokenizer, 1 thread\n" + table;
}

}  // namespace

std::string bench_json(const Machine& machine, const Report& report) {
  views::JsonWriter json;
  json.begin_object();
  write_machine(json, machine);
  json.key("peaks").begin_list();
  for (size_t i = 0; i < report.peaks.size(); ++i) {
    const measure::Peak& peak = report.peaks[i];
    json.begin_object().member("threads", report.threads[i]);
    json.member("multiply_add_gflops", peak.multiply_add_gflops).member("exp2_giga", peak.exp2_giga);
    json.member("bf16_gflops", peak.bf16_gflops).end_object();
  }
  json.end_list().key("rows").begin_list();
  for (const Row& row : report.rows) write_row(json, row);
  json.end_list().end_object();
  return std::move(json).take();
}

std::string bench_page(const Machine& machine, const Report& report) {
  std::string page =
      fmt::format("{}, {} cores, {:.1f} GB; kernels run on {}; clearhead {} by {}\n", machine.cpu, machine.cores,
                  double(machine.memory_bytes) / 1e9, machine.target, machine.version, machine.compiler);
  page += peak_table(report) + attention_table(report) + memory_table(report) + encoder_table(report);
  return page + decoder_table(report) + tokenizer_table(report);
}

}  // namespace clearhead::apps
