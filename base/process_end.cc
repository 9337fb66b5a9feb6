#include "base/process_end.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace etc {

void EndProcess(int exit_code) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  std::exit(exit_code);
#else
  std::cout.flush();
  std::fflush(nullptr);
  _exit(exit_code);
#endif
}

}  // namespace etc
