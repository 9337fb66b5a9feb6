#ifndef ETC_TASKS_OPENKP_EXAMPLE_CAST_H_
#define ETC_TASKS_OPENKP_EXAMPLE_CAST_H_

#include <c10/util/Exception.h>

#include "tasks/openkp/example.h"

namespace etc {

// Throws c10::Error if the example is one of another task.
inline const OpenkpExample& AsOpenkp(const Example& example) {
  const auto* openkp = dynamic_cast<const OpenkpExample*>(&example);
  TORCH_CHECK(openkp != nullptr, "example ", example.record_id,
              " is not one of OpenKP");
  return *openkp;
}

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_EXAMPLE_CAST_H_
