#include "etc/weights/formats/tensor_source.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "etc/weights/formats/sharded_tensors.h"
#include "etc/weights/formats/tensorflow/tensorflow_checkpoint.h"

namespace etc {
namespace {

template <typename Source>
absl::StatusOr<std::unique_ptr<TensorSource>> OpenAs(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(Source source, Source::Open(path));
  return std::make_unique<Source>(std::move(source));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TensorSource>> OpenTensorSource(
    const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored) &&
      ShardedTensors::FileIn(path).ok()) {
    return OpenAs<ShardedTensors>(path);
  }
  const auto prefix = TensorFlowCheckpointPrefix(path);
  if (prefix.ok()) {
    return OpenAs<TensorFlowCheckpoint>(path);
  }
  if (!std::filesystem::is_directory(path, ignored)) {
    return OpenAs<ShardedTensors>(path);
  }
  return absl::IsNotFound(prefix.status())
             ? absl::NotFoundError(
                   absl::StrCat(ShardedTensors::FileIn(path).status().message(),
                                ", nor a TensorFlow checkpoint"))
             : prefix.status();
}

}  // namespace etc
