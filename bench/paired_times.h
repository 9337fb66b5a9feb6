#ifndef ETC_BENCH_PAIRED_TIMES_H_
#define ETC_BENCH_PAIRED_TIMES_H_

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <utility>
#include <vector>

namespace etc {

// Times of calls, in seconds.
struct CallTimes {
  std::vector<double> wall, cpu;
};

// The upper middle of values, at least one.
inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Median of the ratios, each of two measured one after the other.
inline double MedianRatio(const std::vector<double>& above,
                          const std::vector<double>& below) {
  std::vector<double> ratios;
  for (size_t i = 0; i < above.size(); ++i) {
    ratios.push_back(above[i] / below[i]);
  }
  return Median(std::move(ratios));
}

// Adds the times of one `side.Run()`; CPU time is that of all threads.
template <typename Side>
void MeasureCall(Side& side, CallTimes* times) {
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t cpu_start = std::clock();
  side.Run();
  times->cpu.push_back(static_cast<double>(std::clock() - cpu_start) /
                       CLOCKS_PER_SEC);
  times->wall.push_back(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count());
}

// Times of `a.Run()` and of `b.Run()`, by turns, after a call of each that is
// not measured: what the machine does meanwhile slows both.
template <typename A, typename B>
std::pair<CallTimes, CallTimes> MeasureByTurns(benchmark::State& state, A& a,
                                               B& b) {
  constexpr int kPairs = 3;  // in each iteration
  a.Run();
  b.Run();
  std::pair<CallTimes, CallTimes> times;
  for (auto _ : state) {
    for (int pair = 0; pair < kPairs; ++pair) {
      MeasureCall(a, &times.first);
      MeasureCall(b, &times.second);
    }
  }
  return times;
}

}  // namespace etc

#endif  // ETC_BENCH_PAIRED_TIMES_H_
