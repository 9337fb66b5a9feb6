#ifndef ETC_BENCH_MACHINE_H_
#define ETC_BENCH_MACHINE_H_

#include <cstdint>

namespace etc {

// The machine that benchmarks report, and their count of memory.

// Adds the machine (DescribeMachine) to the text that the benchmarks of this
// program print first, and to the context in their JSON. Warns on standard
// error of a BLAS without AVX.
void AddMachineContext();

// main() of a program that computes with tensors: keeps the memory that it
// frees, as `realetc` does, describes the machine, registers benchmarks by
// `register_all`, and runs those that the flags of Google Benchmark select.
// Returns the exit code.
int RunTensorBenchmarks(int argc, char** argv, void (*register_all)());

// FLOP per second of a 1024 x 1024 x 1024 product in float32 (sgemm) at the
// current number of threads. Machines are noisy: it is measured right before
// and right after the computation compared with it, as a median of some
// products each.
class GemmRate {
 public:
  GemmRate();
  // Measures again; the mean of both.
  double Around() const;

 private:
  double before_;
};

// Bytes by which this process's resident set grew, at its largest, since
// construction. 0 where the system does not tell (no /proc).
class PeakMemory {
 public:
  PeakMemory();
  double Bytes() const;
  // The largest resident set since construction, all of it.
  double ProcessBytes() const;

 private:
  double before_ = 0.0;
};

}  // namespace etc

#endif  // ETC_BENCH_MACHINE_H_
