#ifndef ETC_TASKS_DISTRIBUTED_MISSING_PROCESS_H_
#define ETC_TASKS_DISTRIBUTED_MISSING_PROCESS_H_

#include <chrono>
#include <string>

#include "tasks/distributed/process_place.h"

namespace c10d {
class Store;
}  // namespace c10d

namespace etc {

// Entries of the ranks of a run in their store, by which the others can name
// the missing one. These throw what the store throws.

// Stores this process's ProcessScope and pid, so that others of the same scope
// can see whether it runs.
void Introduce(const ProcessPlace& place, c10d::Store& store);

// Waits until all ranks have introduced themselves: false if some have not by
// `deadline`, or if one that had come has ended or has given up.
bool AwaitAll(const ProcessPlace& place,
              std::chrono::steady_clock::time_point deadline,
              c10d::Store& store);

// Stores the reason why this rank ends before the others.
void ReportLeaving(const ProcessPlace& place, const std::string& why,
                   c10d::Store& store);

// Time that a rank waits for the others to report, when one is missing. Rank 0,
// which has the store, waits twice as long.
inline constexpr auto kPatience = std::chrono::seconds(5);

// Names the missing rank and, as far as it is known, the reason: "process 2 has
// ended". `error` is the message of the collective operation that failed.
// Reports in the store that this rank runs, and waits for the others' reports.
// Throws nothing, but takes as long as the store.
std::string NameMissing(const ProcessPlace& place, c10d::Store& store,
                        const std::string& error);

// The same message if the store does not answer.
std::string NoStore(const ProcessPlace& place);

}  // namespace etc

#endif  // ETC_TASKS_DISTRIBUTED_MISSING_PROCESS_H_
