#ifndef ETC_ETC_WEIGHTS_OUTPUT_DIRECTORY_H_
#define ETC_ETC_WEIGHTS_OUTPUT_DIRECTORY_H_

#include <string>

#include "absl/status/status.h"

namespace etc {

// Checks that a directory, which need not be there, has none of the files that
// are looked for beside weights: weights of any format, configurations,
// vocabularies and the files that say how they are used, and those of a run. An
// import or export would replace them, or they would be read with it.
//   kAlreadyExists  it has; the message names the first in alphabetical order
// and the system's errors for a directory that cannot be listed.
absl::Status CheckNoWeightsIn(const std::string& directory);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_OUTPUT_DIRECTORY_H_
