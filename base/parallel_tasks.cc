#include "base/parallel_tasks.h"

#include <ATen/Parallel.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>

// at::parallel_for is a template in a header: without OpenMP it compiles, and
// runs on one thread.
#if AT_PARALLEL_OPENMP && !defined(_OPENMP)
#error "This file has to be compiled with OpenMP, as LibTorch was"
#endif

#ifdef ETC_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace etc {
namespace {

// The thread sanitizer does not see that OpenMP begins and ends a parallel loop
// for all threads at once: libgomp is not built for it. It is told here, and
// this file, where the loop's own variables are, is built without it.
void Release([[maybe_unused]] void* place) {
#ifdef ETC_THREAD_SANITIZER
  __tsan_release(place);
#endif
}
void Acquire([[maybe_unused]] void* place) {
#ifdef ETC_THREAD_SANITIZER
  __tsan_acquire(place);
#endif
}

constexpr std::align_val_t kAlignment{64};

struct DeleteAligned {
  void operator()(float* memory) const {
    ::operator delete(memory, kAlignment);
  }
};
using Workspace = std::unique_ptr<float, DeleteAligned>;

// While it lives, regions of OpenMP that this thread begins have one thread:
// those of LibTorch's operations and of oneDNN, which asks for that number also
// when it plans a primitive, even within a region.
class OneOpenMpThread {
 public:
  OneOpenMpThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneOpenMpThread() { omp_set_num_threads(before_); }
  OneOpenMpThread(const OneOpenMpThread&) = delete;
  OneOpenMpThread& operator=(const OneOpenMpThread&) = delete;

 private:
  const int before_;
};

Workspace MakeWorkspace(int64_t floats) {
  return Workspace(static_cast<float*>(
      ::operator new(static_cast<size_t>(floats) * sizeof(float), kAlignment)));
}

}  // namespace

void ForEachTask(int64_t tasks, int64_t floats,
                 const std::function<void(int64_t, float*)>& function) {
  std::atomic<int64_t> next = 0;
  const int64_t workers = std::min<int64_t>(tasks, at::get_num_threads());
  Release(&next);
  at::parallel_for(0, workers, 1, [&](int64_t, int64_t) {
    Acquire(&next);
    const Workspace workspace = MakeWorkspace(floats);
    const OneOpenMpThread one_thread;
    for (int64_t task = next++; task < tasks; task = next++) {
      function(task, workspace.get());
    }
    Release(&next);
  });
  Acquire(&next);
}

void OnOneThread(const std::function<void()>& function) {
  // LibTorch sets OpenMP's number when it is asked for its own the first time.
  at::get_num_threads();
  const OneOpenMpThread one_thread;
  function();
}

}  // namespace etc
