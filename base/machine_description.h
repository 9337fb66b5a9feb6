#ifndef ETC_BASE_MACHINE_DESCRIPTION_H_
#define ETC_BASE_MACHINE_DESCRIPTION_H_

#include <string>
#include <vector>

namespace etc {

// "BLAS" and "OpenBLAS 0.3.21 ...".
struct MachineFact {
  std::string name;
  std::string value;
};

// Describes the hardware and libraries of this process, for reports of speed
// and of problems: the versions of LibTorch and oneDNN, LibTorch's BLAS, the
// instructions of kernels, CUDA devices, threads. Asks LibTorch, and oneDNN if
// it can be opened.
std::vector<MachineFact> DescribeMachine();

// The instructions of a CPU that OpenBLAS has code for.
enum class CpuVectors { kNone, kAvx2, kAvx512 };

// The words of DescribeOpenBlas for a CPU that OpenBLAS does not know.
inline constexpr char kComputesWithoutAvx[] = "computes without AVX";

// What OpenBLAS says of itself (openblas_get_config), with a note behind it
// where it takes the CPU for one without AVX, as it does with CPUs that are
// newer than itself (0.3.21: Emerald Rapids): LibTorch's own products, those of
// the blocked path among them, then have a small part of their speed.
std::string DescribeOpenBlas(const std::string& config, CpuVectors vectors);

}  // namespace etc

#endif  // ETC_BASE_MACHINE_DESCRIPTION_H_
