#ifndef ETC_TASKS_COMMANDS_VERSION_H_
#define ETC_TASKS_COMMANDS_VERSION_H_

#include <string>

namespace etc {

// What a report of a problem should have: this program's version, LibTorch's,
// the SIMD instructions that the kernels use on this CPU, the BLAS library and
// the threads, a line each.
std::string VersionText();

}  // namespace etc

#endif  // ETC_TASKS_COMMANDS_VERSION_H_
