#ifndef ETC_BASE_LARGE_PAGES_H_
#define ETC_BASE_LARGE_PAGES_H_

#include <ATen/core/Tensor.h>

namespace etc {

// Asks the system to back a new tensor on the CPU with large pages where it
// can; gives the tensor back. Scores of a layer are more than 100 MB that are
// written once and read once, and it takes longer to get them in pages of 4 KB
// than to fill them (measured, in the commit that added this). Has no effect
// on small tensors, after the first write, on other devices, and where there is
// no madvise.
at::Tensor WithLargePages(at::Tensor tensor);

}  // namespace etc

#endif  // ETC_BASE_LARGE_PAGES_H_
