#include "etc/process_memory.h"

#include <cstdlib>  // says __GLIBC__

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace etc {

void KeepFreedMemory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);  // never
#endif
}

}  // namespace etc
