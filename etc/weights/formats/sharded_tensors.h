#ifndef ETC_ETC_WEIGHTS_FORMATS_SHARDED_TENSORS_H_
#define ETC_ETC_WEIGHTS_FORMATS_SHARDED_TENSORS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/weights/formats/tensor_source.h"

namespace etc {

// The tensors of a model, from one file or from the shards that an index lists
// (formats spec 1.6): safetensors, or those of torch.save (PytorchFile).
// Movable.
class ShardedTensors final : public TensorSource {
 public:
  // `path`: a directory with the first of `model.safetensors`,
  // `model.safetensors.index.json`, `pytorch_model.bin` and
  // `pytorch_model.bin.index.json` that is there; or such a file of whatever
  // name (an index ends in ".json").
  //   kNotFound         none of them is there, or a shard is not
  //   kInvalidArgument  what formats spec 1.4, 1.6 and 6.4 reject
  static absl::StatusOr<ShardedTensors> Open(const std::string& path);
  // Which file that is in a directory. kNotFound.
  static absl::StatusOr<std::string> FileIn(const std::string& directory);

  const std::string& path() const override { return path_; }
  // Of all tensors that the index maps, in order of names.
  const std::vector<std::string>& names() const override { return names_; }
  // Of all files; where two have the same key, that of the first shard.
  const std::map<std::string, std::string>& metadata() const override {
    return metadata_;
  }
  // What is odd, but no reason to refuse: tensors that the index does not map,
  // a total size that is not theirs.
  const std::vector<std::string>& warnings() const override {
    return warnings_;
  }

  // The tensor called `name`; if there is none, the one that the metadata give
  // as the same under another name (formats spec 1.3). kNotFound (ST14).
  absl::StatusOr<const TensorInfo*> Find(
      const std::string& name) const override;
  absl::Status Read(const std::string& name, char* destination,
                    uint64_t size) const override;

 private:
  explicit ShardedTensors(std::string path);

  absl::Status OpenFile(const std::string& file_path);
  absl::Status OpenIndex(const std::string& index_path);
  absl::Status OpenShards(const std::map<std::string, std::string>& weight_map,
                          const std::string& index_path);
  // Takes over what it says beside its tensors.
  void AddShard(std::unique_ptr<TensorSource> shard);
  // The name under which shard_of_ has the tensor, or null.
  const std::string* Resolve(const std::string& name) const;

  std::string path_;
  std::vector<std::unique_ptr<TensorSource>> shards_;
  std::map<std::string, size_t> shard_of_;  // index in shards_, by tensor
  std::vector<std::string> names_;
  std::map<std::string, std::string> metadata_;
  std::vector<std::string> warnings_;
};

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_SHARDED_TENSORS_H_
