#ifndef ETC_BASE_PARALLEL_TASKS_H_
#define ETC_BASE_PARALLEL_TASKS_H_

#include <cstdint>
#include <functional>

namespace etc {

// Calls function(task, workspace) for each task in [0, tasks), on
// at::get_num_threads() threads, each of which takes the next task when it is
// done with one. Every thread has its own uninitialised workspace of `floats`
// floats, aligned to 64 bytes. `function` must not throw. Libraries called from
// it run on one thread, so that results do not depend on the number of threads,
// as they would where a library divides sums among threads.
void ForEachTask(int64_t tasks, int64_t floats,
                 const std::function<void(int64_t, float*)>& function);

// Calls function() once, on the calling thread, with everything that it calls
// on one thread (at::get_num_threads() is 1 within): for small computations
// that would differ by rounding from one number of threads to another.
void OnOneThread(const std::function<void()>& function);

}  // namespace etc

#endif  // ETC_BASE_PARALLEL_TASKS_H_
