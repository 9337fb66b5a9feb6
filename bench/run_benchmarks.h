#ifndef ETC_BENCH_RUN_BENCHMARKS_H_
#define ETC_BENCH_RUN_BENCHMARKS_H_

#include <benchmark/benchmark.h>

namespace etc {

// The rest of main(): runs the registered benchmarks that the flags of Google
// Benchmark select. Returns the exit code.
inline int RunBenchmarks(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 1;
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace etc

#endif  // ETC_BENCH_RUN_BENCHMARKS_H_
