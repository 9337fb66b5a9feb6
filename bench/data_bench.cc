// Speed of turning raw records into examples, on one core: MB/s of the text of
// the official files, JSON parsing and tokenizing included. Each task whose
// bundled sample is JSON is measured on it, and on real questions with BERT's
// vocabulary where a folder of them lies beside the checkout (see
// CONTRIBUTING.md):
//
//   data_bench --benchmark_filter=Examples/hotpotqa

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "bench/run_benchmarks.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config.h"
#include "tasks/data/example_source.h"
#include "tasks/registry.h"
#include "tasks/task/task.h"
#include "tasks/text/load_tokenizer.h"

namespace etc {
namespace {

struct Source {
  std::string task;
  std::string name;
  std::string data;
  std::string vocabulary;
};

std::string SharedFolder() {
  const char* from_environment = std::getenv("ETC_SHARED_DIR");
  return from_environment != nullptr
             ? from_environment
             : absl::StrCat(ETC_SOURCE_DIR, "/../shared");
}

// The bundled sample of each task that has one in JSON, and the real one where
// it is.
std::vector<Source> Sources() {
  const std::vector<std::pair<std::string, std::string>> real_files = {
      {"wikihop", "wikihop/dev.sample.json"},
      {"hotpotqa", "hotpotqa/hotpot_dev_distractor_v1.sample.json"},
      {"openkp", "openkp/OpenKP.sample.jsonl"},
      {"nq", "natural_questions/nq-dev-original.sample.jsonl"}};
  std::vector<Source> sources;
  for (const TaskEntry& task : Tasks()) {
    const std::string sample =
        absl::StrCat(ETC_SOURCE_DIR, "/tasks/", task.name, "/sample/");
    for (const char* held_out : {"dev.json", "dev.jsonl"}) {
      sources.push_back({.task = task.name,
                         .name = "sample",
                         .data = sample + held_out,
                         .vocabulary = sample + "vocab.txt"});
    }
  }
  for (const auto& [task, file] : real_files) {
    const std::string folder = absl::StrCat(SharedFolder(), "/data/");
    sources.push_back({.task = task,
                       .name = "real",
                       .data = absl::StrCat(folder, file),
                       .vocabulary = folder + "vocab/bert-uncased/vocab.txt"});
  }
  std::erase_if(sources, [](const Source& source) {
    return !std::filesystem::exists(source.data);
  });
  return sources;
}

absl::StatusOr<std::unique_ptr<Task>> MakeTask(const Source& source) {
  const nlohmann::json json = {{"task", source.task},
                               {"model", {{"preset", "base"}}}};
  ETC_ASSIGN_OR_RETURN(const RunConfig config,
                       RunConfigFromJson(json, "data_bench"));
  ETC_ASSIGN_OR_RETURN(auto tokenizer, LoadTokenizer(source.vocabulary));
  ETC_ASSIGN_OR_RETURN(const TaskEntry* entry, FindTask(source.task));
  return entry->make(config, std::move(tokenizer));
}

// One pass over all records; returns the tokens of their examples.
absl::StatusOr<int64_t> MakeAll(const ExampleSource& records) {
  int64_t tokens = 0;
  for (int64_t i = 0; i < records.size(); ++i) {
    ETC_ASSIGN_OR_RETURN(const Examples examples,
                         records.Make(RequestForEvaluation(i)));
    for (const auto& example : examples) {
      tokens += example->long_length();
    }
  }
  return tokens;
}

absl::Status Measure(benchmark::State& state, const Source& source) {
  ETC_ASSIGN_OR_RETURN(const std::unique_ptr<Task> task, MakeTask(source));
  ETC_ASSIGN_OR_RETURN(const std::unique_ptr<ExampleSource> records,
                       task->Open({.patterns = {source.data}}));
  int64_t tokens = 0;
  for (auto _ : state) {
    ETC_ASSIGN_OR_RETURN(const int64_t made, MakeAll(*records));
    tokens += made;
  }
  state.SetBytesProcessed(
      static_cast<int64_t>(std::filesystem::file_size(source.data)) *
      state.iterations());
  state.counters["tokens"] = benchmark::Counter(static_cast<double>(tokens),
                                                benchmark::Counter::kIsRate);
  return absl::OkStatus();
}

void BM_Examples(benchmark::State& state, const Source& source) {
  if (const absl::Status status = Measure(state, source); !status.ok()) {
    state.SkipWithError(std::string(status.message()).c_str());
  }
}

}  // namespace
}  // namespace etc

int main(int argc, char** argv) {
  for (const etc::Source& source : etc::Sources()) {
    etc::AddBenchmark(
        absl::StrCat("Examples/", source.task, "/", source.name),
        [=](benchmark::State& state) { etc::BM_Examples(state, source); })
        ->Unit(benchmark::kMillisecond);
  }
  return etc::RunBenchmarks(argc, argv);
}
