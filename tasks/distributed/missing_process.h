#ifndef ETC_TASKS_DISTRIBUTED_MISSING_PROCESS_H_
#define ETC_TASKS_DISTRIBUTED_MISSING_PROCESS_H_

#include <chrono>
#include <string>

#include "tasks/distributed/process_place.h"

namespace c10d {
class Store;
}  // namespace c10d

namespace etc {

// What the processes of a run leave in their store, so that the others can say
// which of them is missing. These throw what the store throws.

// Who this process is, for those on the same machine to see whether it runs.
void Introduce(const ProcessPlace& place, c10d::Store& store);

// Waits until all processes have introduced themselves: false if some have not
// by `deadline`, or if one that had come has ended or has given up.
bool AwaitAll(const ProcessPlace& place,
              std::chrono::steady_clock::time_point deadline,
              c10d::Store& store);

// Why it ends before the others.
void SayWhyItLeaves(const ProcessPlace& place, const std::string& why,
                    c10d::Store& store);

// How long a process waits for the others to say that they are there, when one
// is missing. The first, which has the store, waits twice as long.
inline constexpr auto kPatience = std::chrono::seconds(5);

// Who is missing, and as far as it is known why: "process 2 has ended". `error`
// is what an operation of all said. Says in the store that this process is
// there, and waits for the others to. Throws nothing, but takes as long as the
// store.
std::string NameMissing(const ProcessPlace& place, c10d::Store& store,
                        const std::string& error);

// The same where the store does not answer.
std::string NoStore(const ProcessPlace& place);

}  // namespace etc

#endif  // ETC_TASKS_DISTRIBUTED_MISSING_PROCESS_H_
