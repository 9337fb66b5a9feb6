#ifndef ETC_ETC_WEIGHTS_PYTORCH_WRITER_H_
#define ETC_ETC_WEIGHTS_PYTORCH_WRITER_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "etc/weights/checkpoint.h"
#include "nlohmann/json_fwd.hpp"

namespace etc {

// Writes what torch.save does for
//
//   {<name>: <entry>, ..., <tensors_name>: OrderedDict(tensors)}
//
// as a zip archive with a pickle of protocol 2 (doc/formats.md 6.1). Each
// tensor has a storage of its own and is contiguous; they may be on any device,
// and are on the CPU in the file. Written atomically.
//
//   entries     an object: numbers, texts, lists and dictionaries
//   namespaces  entries, objects, that become an argparse.Namespace, which
//               torch.load reads with weights_only=False alone
//
//   kInvalidArgument  a dtype other than float64, float32, float16, bfloat16,
//                     int64, int32 and bool
//   others            what writing the file gives
absl::Status WritePytorchFile(const std::string& path,
                              const nlohmann::json& entries,
                              const std::set<std::string>& namespaces,
                              const std::string& tensors_name,
                              const NamedTensors& tensors);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_PYTORCH_WRITER_H_
