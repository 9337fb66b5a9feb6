#ifndef ETC_TASKS_NQ_EXAMPLE_CAST_H_
#define ETC_TASKS_NQ_EXAMPLE_CAST_H_

#include <c10/util/Exception.h>

#include "tasks/nq/example.h"

namespace etc {

// Throws c10::Error if the example is one of another task.
inline const NqExample& AsNq(const Example& example) {
  const auto* nq = dynamic_cast<const NqExample*>(&example);
  TORCH_CHECK(nq != nullptr, "example ", example.record_id,
              " is not one of Natural Questions");
  return *nq;
}

}  // namespace etc

#endif  // ETC_TASKS_NQ_EXAMPLE_CAST_H_
