#ifndef ETC_BENCH_RUN_BENCHMARKS_H_
#define ETC_BENCH_RUN_BENCHMARKS_H_

#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace etc {

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
// Benchmark select. Returns the exit code: 1 if one of them failed.
inline int RunBenchmarks(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 1;
  }
  FailureNote note;
  benchmark::RunSpecifiedBenchmarks(&note);
  return note.has_failed() ? 1 : 0;
}

}  // namespace etc

#endif  // ETC_BENCH_RUN_BENCHMARKS_H_
