#ifndef ETC_ETC_WEIGHTS_FORMATS_PYTORCH_PYTORCH_FILE_H_
#define ETC_ETC_WEIGHTS_FORMATS_PYTORCH_PYTORCH_FILE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "etc/weights/formats/pytorch/pickle.h"
#include "etc/weights/formats/pytorch/pytorch_state.h"
#include "etc/weights/formats/pytorch/zip_archive.h"
#include "etc/weights/formats/tensor_source.h"

namespace etc {

// The tensors of a state dict in a file that Python's torch.save wrote, such as
// `pytorch_model.bin`: the zip archive of PyTorch 1.6 and later, or the
// sequence of pickles of earlier versions (doc/formats.md 6.1, B and C).
// Nothing in it is executed (ReadPickle). Movable.
class PytorchFile final : public TensorSource {
 public:
  // kInvalidArgument for everything that doc/formats.md 6.4 does not allow.
  // Values of the state dict that are no tensors are warnings, as is an archive
  // without checksums.
  static absl::StatusOr<PytorchFile> Open(const std::string& path);
  // The magic of each format: that of a zip archive, or a pickle of a number,
  // of any protocol from 2 to 5 and at most kLongestMagic bytes.
  static constexpr absl::string_view kArchiveMagic{"PK\3\4"};
  static constexpr uint64_t kLongestMagic = 24;
  // Returns the length of that pickle at the beginning of a file, if it has it;
  // 0 if it is another file. At least kLongestMagic bytes are given.
  static uint64_t StreamMagicBytes(absl::string_view beginning);

  // Points to a PytorchTensor.
  absl::StatusOr<const TensorInfo*> Find(
      const std::string& name) const override;
  // kDataLoss if the storage has another checksum, which only archives store.
  absl::Status Read(const std::string& name, char* destination,
                    uint64_t size) const override;

 private:
  // Position of the bytes of a storage.
  struct Place {
    uint64_t offset = 0;
    std::optional<uint32_t> crc32;
  };

  explicit PytorchFile(RandomAccessFile file);

  template <typename... Parts>
  absl::Status Error(const Parts&... parts) const;
  absl::Status OpenArchive();
  absl::Status OpenStream();
  // The pickle at byte `*offset`, which becomes that of its end.
  absl::StatusOr<Pickle> TakePickle(uint64_t* offset) const;
  // `folder`: the prefix of their keys in the names of the entries.
  absl::Status PlaceArchiveStorages(
      const std::map<std::string, ZipEntry>& entries,
      const std::string& folder);
  absl::Status PlaceStreamStorages(const Pickle& keys, uint64_t offset);
  absl::Status TakeState(const Pickle& pickle);
  absl::Status CheckCrc32(const std::string& name,
                          std::optional<uint32_t> expected,
                          absl::string_view data) const;

  RandomAccessFile file_;
  PytorchState state_;
  std::map<std::string, Place> places_;  // by key of the storage
};

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_PYTORCH_PYTORCH_FILE_H_
