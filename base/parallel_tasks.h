#ifndef ETC_BASE_PARALLEL_TASKS_H_
#define ETC_BASE_PARALLEL_TASKS_H_

#include <cstdint>
#include <functional>

namespace etc {

// Calls function(task, workspace) for each task in [0, tasks), on as many
// threads as at::get_num_threads() says, each of which takes the next task when
// it is done with one. Every thread has its own workspace of `floats` floats,
// aligned to 64 bytes, with nothing in particular in it. `function` must not
// throw. What it calls computes on one thread, and so that results do not
// follow from the number of threads: libraries that divide sums among threads
// do not.
void ForEachTask(int64_t tasks, int64_t floats,
                 const std::function<void(int64_t, float*)>& function);

// Calls function() once, on the calling thread, with all that it calls on one
// thread (at::get_num_threads() is 1 within): for what is small, and would
// differ by rounding from one number of threads to another.
void OnOneThread(const std::function<void()>& function);

}  // namespace etc

#endif  // ETC_BASE_PARALLEL_TASKS_H_
