#ifndef ETC_BENCH_RUN_BENCHMARKS_H_
#define ETC_BENCH_RUN_BENCHMARKS_H_

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace etc {

// Registers a benchmark. An exception of `body` is the failure of that run
// alone, with the first line of its message.
inline benchmark::internal::Benchmark* AddBenchmark(
    const std::string& name, std::function<void(benchmark::State&)> body) {
  return benchmark::RegisterBenchmark(
      name.c_str(), [body = std::move(body)](benchmark::State& state) {
        try {
          body(state);
        } catch (const std::exception& error) {
          const std::string what = error.what();
          state.SkipWithError(what.substr(0, what.find('\n')).c_str());
        }
      });
}

// Calls `function` in each iteration of `state`. Returns the mean of the
// seconds that this takes, for counters that Google Benchmark has no flag for:
// shares of a rate.
template <typename Function>
double MeanSeconds(benchmark::State& state, const Function& function) {
  const auto begin = std::chrono::steady_clock::now();
  for (auto _ : state) {
    function();
  }
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - begin;
  return seconds.count() / static_cast<double>(state.iterations());
}

// Reports as the flags say, and notes failures.
class FailureNote final : public benchmark::BenchmarkReporter {
 public:
  bool has_failed() const { return has_failed_; }

  bool ReportContext(const Context& context) override {
    return display_->ReportContext(context);
  }
  void ReportRuns(const std::vector<Run>& runs) override {
    has_failed_ = has_failed_ ||
                  std::any_of(runs.begin(), runs.end(), [](const Run& run) {
                    return run.error_occurred;
                  });
    display_->ReportRuns(runs);
  }
  void Finalize() override { display_->Finalize(); }

 private:
  const std::unique_ptr<benchmark::BenchmarkReporter> display_{
      benchmark::CreateDefaultDisplayReporter()};
  bool has_failed_ = false;
};

// The rest of main(): runs the registered benchmarks that the flags of Google
// Benchmark select, or lists them. Returns the exit code: 1 if one of them
// failed, or there is none.
inline int RunBenchmarks(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 1;
  }
  FailureNote note;
  const size_t selected = benchmark::RunSpecifiedBenchmarks(&note);
  return selected == 0 || note.has_failed() ? 1 : 0;
}

}  // namespace etc

#endif  // ETC_BENCH_RUN_BENCHMARKS_H_
