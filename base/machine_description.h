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

}  // namespace etc

#endif  // ETC_BASE_MACHINE_DESCRIPTION_H_
