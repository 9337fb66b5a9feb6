#ifndef ETC_BASE_ONEDNN_LOADER_H_
#define ETC_BASE_ONEDNN_LOADER_H_

#include "absl/status/statusor.h"
#include "base/onednn_module.h"

namespace etc {

// oneDNN, opened with the first call; kFailedPrecondition as in OpenModule
// (base/module_loader.h).
const absl::StatusOr<const OnednnModule*>& LoadedOnednn();

}  // namespace etc

#endif  // ETC_BASE_ONEDNN_LOADER_H_
