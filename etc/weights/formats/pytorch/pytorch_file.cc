#include "etc/weights/formats/pytorch/pytorch_file.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace etc {
namespace {

using Kind = PickleValue::Kind;

constexpr uint64_t kMostPickleBytes = uint64_t{256} << 20;
constexpr uint64_t kFirstPieceBytes = 1 << 16;
constexpr int64_t kStreamProtocol = 1001;

uint32_t Crc32(absl::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// The value of a string key, or null.
const PickleValue* Field(const PickleValue& dict, absl::string_view key) {
  for (size_t i = 0; dict.IsDict() && i < dict.items.size(); i += 2) {
    if (dict.items[i]->Is(Kind::kString) && dict.items[i]->text == key) {
      return dict.items[i + 1];
    }
  }
  return nullptr;
}

// Copies the elements of a view in row-major order to `destination`. They lie
// within the storage, but the stride of a dimension of size 1 may be any
// number: adding it, even temporarily, could overflow.
void CopyView(absl::string_view storage, const PytorchTensor& tensor,
              uint64_t element_bytes, char* destination) {
  const size_t rank = tensor.shape.size();
  std::vector<int64_t> index(rank, 0);
  auto element = static_cast<int64_t>(tensor.offset);
  while (true) {
    std::copy_n(storage.data() + static_cast<uint64_t>(element) * element_bytes,
                element_bytes, destination);
    destination += element_bytes;
    size_t d = rank;
    while (d-- > 0) {
      if (++index[d] < tensor.shape[d]) {
        element += tensor.strides[d];
        break;
      }
      element -= tensor.strides[d] * (tensor.shape[d] - 1);
      index[d] = 0;
    }
    if (d == static_cast<size_t>(-1)) {
      return;
    }
  }
}

}  // namespace

uint64_t PytorchFile::StreamMagicBytes(absl::string_view beginning) {
  constexpr absl::string_view kMagic("\x8a\x0al\xfc\x9c\x46\xf9\x20j\xa8P\x19.",
                                     13);
  constexpr size_t kFrame = 1 + sizeof(uint64_t);
  absl::string_view rest = beginning;
  if (!absl::ConsumePrefix(&rest, "\x80") || rest.empty() || rest[0] < 2 ||
      rest[0] > 5) {
    return 0;
  }
  rest.remove_prefix(1);
  if (absl::StartsWith(rest, "\x95") && rest.size() > kFrame) {
    rest.remove_prefix(kFrame);
  }
  return absl::ConsumePrefix(&rest, kMagic) ? beginning.size() - rest.size()
                                            : 0;
}

PytorchFile::PytorchFile(RandomAccessFile file)
    : TensorSource(file.path()), file_(std::move(file)) {}

template <typename... Parts>
absl::Status PytorchFile::Error(const Parts&... parts) const {
  return absl::InvalidArgumentError(absl::StrCat(path(), ": ", parts...));
}

absl::StatusOr<PytorchFile> PytorchFile::Open(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(RandomAccessFile opened, RandomAccessFile::Open(path));
  PytorchFile file(std::move(opened));
  constexpr uint64_t kLongestBeginning = 64;
  std::string beginning(std::min(file.file_.size(), kLongestBeginning), '\0');
  ETC_RETURN_IF_ERROR(file.file_.Read(0, beginning.size(), beginning.data()));
  if (absl::StartsWith(beginning, kArchiveMagic)) {
    ETC_RETURN_IF_ERROR(file.OpenArchive());
  } else if (StreamMagicBytes(beginning) > 0) {
    ETC_RETURN_IF_ERROR(file.OpenStream());
  } else {
    return file.Error(
        "should begin like a file of torch.save, but begins with ",
        QuotedName(absl::string_view(beginning).substr(0, 8)),
        DownloadHint(beginning));
  }
  return file;
}

absl::Status PytorchFile::TakeState(const Pickle& pickle) {
  auto state = ReadPytorchState(pickle);
  if (!state.ok()) {
    return Error(state.status().message());
  }
  state_ = *std::move(state);
  AddMetadata(state_.options);
  for (const auto& [name, tensor] : state_.tensors) {
    AddName(name);
  }
  constexpr size_t kMostShown = 20;
  const size_t skipped = state_.skipped.size();
  for (size_t i = 0; i < std::min(skipped, kMostShown); ++i) {
    AddWarning(absl::StrCat(path(), ": ", state_.skipped[i]));
  }
  if (skipped > kMostShown) {
    AddWarning(absl::StrCat(path(), ": ", skipped - kMostShown,
                            " more entries are no tensors or skipped"));
  }
  return absl::OkStatus();
}

absl::Status PytorchFile::OpenArchive() {
  using Entries = std::map<std::string, ZipEntry>;
  ETC_ASSIGN_OR_RETURN(const Entries entries, ReadZipDirectory(file_));
  constexpr absl::string_view kPickle = "/data.pkl";
  std::vector<std::string> pickles;
  for (const auto& [name, entry] : entries) {
    if (absl::EndsWith(name, kPickle)) {
      pickles.push_back(name);
    }
  }
  if (pickles.size() != 1) {
    return Error("should have one entry .../data.pkl, but has ",
                 pickles.size());
  }
  const std::string top(absl::StripSuffix(pickles[0], kPickle));
  if (entries.contains(absl::StrCat(top, "/constants.pkl"))) {
    return Error(
        "is a TorchScript archive, of C++ torch::save or of torch.jit.save; "
        "please load it as it was saved, in C++ with torch::load, and write "
        "its tensors with etc::WriteTensors or, in Python, as a state_dict "
        "with torch.save");
  }
  for (const auto& [name, entry] : entries) {
    if (!entry.coding.empty()) {
      return Error("zip archive: ", QuotedName(name),
                   " should be stored as it is, but is ", entry.coding);
    }
  }
  if (const auto order = entries.find(absl::StrCat(top, "/byteorder"));
      order != entries.end()) {
    ETC_ASSIGN_OR_RETURN(
        const std::string bytes,
        file_.Read(order->second.offset,
                   std::min<uint64_t>(order->second.size, 64)));
    if (bytes != "little") {
      return Error("byteorder should be little, but is ", QuotedName(bytes));
    }
  }
  const ZipEntry& entry = entries.find(pickles[0])->second;
  if (entry.size > kMostPickleBytes) {
    return Error("data.pkl should have at most ", kMostPickleBytes,
                 " bytes, but has ", entry.size);
  }
  ETC_ASSIGN_OR_RETURN(const std::string bytes,
                       file_.Read(entry.offset, entry.size));
  ETC_RETURN_IF_ERROR(CheckCrc32("data.pkl", entry.crc32, bytes));
  if (!entry.crc32.has_value()) {
    AddWarning(absl::StrCat(
        path(), ": has no checksums: damage to it would not be noticed"));
  }
  const auto pickle = ReadPytorchPickle(bytes);
  if (!pickle.ok() || pickle->bytes != bytes.size()) {
    return Error("data.pkl: ", pickle.ok() ? "goes on behind its end"
                                           : pickle.status().message());
  }
  ETC_RETURN_IF_ERROR(TakeState(*pickle));
  return PlaceArchiveStorages(entries, absl::StrCat(top, "/data/"));
}

absl::Status PytorchFile::PlaceArchiveStorages(
    const std::map<std::string, ZipEntry>& entries, const std::string& folder) {
  for (const auto& [key, storage] : state_.storages) {
    const auto record = entries.find(folder + key);
    if (!storage.is_known() ||
        (record == entries.end() && storage.count == 0)) {
      continue;
    }
    if (record == entries.end() || record->second.size != storage.Bytes()) {
      return Error(
          "storage ", key, " should have ", storage.Bytes(), " bytes, but ",
          record == entries.end() ? "is absent"
                                  : absl::StrCat("has ", record->second.size));
    }
    places_[key] = {.offset = record->second.offset,
                    .crc32 = record->second.crc32};
  }
  return absl::OkStatus();
}

absl::StatusOr<Pickle> PytorchFile::TakePickle(uint64_t* offset) const {
  const uint64_t left = std::min(file_.size() - *offset, kMostPickleBytes);
  // Its length is known only after it was read.
  for (uint64_t bytes = std::min(left, kFirstPieceBytes);;
       bytes = std::min(left, 4 * bytes)) {
    ETC_ASSIGN_OR_RETURN(const std::string piece, file_.Read(*offset, bytes));
    auto pickle = ReadPytorchPickle(piece);
    if (pickle.ok()) {
      *offset += pickle->bytes;
      return pickle;
    }
    if (!absl::IsOutOfRange(pickle.status()) || bytes == left) {
      return Error("the pickle at byte ", *offset, ": ",
                   pickle.status().message());
    }
  }
}

absl::Status PytorchFile::OpenStream() {
  std::string beginning(std::min(file_.size(), kLongestMagic), '\0');
  ETC_RETURN_IF_ERROR(file_.Read(0, beginning.size(), beginning.data()));
  uint64_t offset = StreamMagicBytes(beginning);
  ETC_ASSIGN_OR_RETURN(const Pickle protocol, TakePickle(&offset));
  ETC_ASSIGN_OR_RETURN(const Pickle system, TakePickle(&offset));
  const PickleValue* is_little = Field(*system.root, "little_endian");
  if (!protocol.root->Is(Kind::kInteger) ||
      protocol.root->integer != kStreamProtocol || is_little == nullptr ||
      !is_little->Is(Kind::kBool) || is_little->integer != 1) {
    return Error("should be of protocol ", kStreamProtocol,
                 " and little-endian");
  }
  ETC_ASSIGN_OR_RETURN(const Pickle object, TakePickle(&offset));
  ETC_RETURN_IF_ERROR(TakeState(object));
  ETC_ASSIGN_OR_RETURN(const Pickle keys, TakePickle(&offset));
  return PlaceStreamStorages(keys, offset);
}

absl::Status PytorchFile::PlaceStreamStorages(const Pickle& keys,
                                              uint64_t offset) {
  if (!keys.root->Is(Kind::kList)) {
    return Error("should have a list of the keys of all storages");
  }
  for (const PickleValue* key : keys.root->items) {
    const auto storage = key->Is(Kind::kString)
                             ? state_.storages.find(key->text)
                             : state_.storages.end();
    if (storage == state_.storages.end() || places_.contains(key->text)) {
      return Error("the list of storages should have each key of the pickle ",
                   "once, but also has ", QuotedName(key->text));
    }
    if (!storage->second.is_known()) {
      return Error("storage ", key->text,
                   " is of a type whose size is not known, so that what is "
                   "behind it cannot be found");
    }
    int64_t count = 0;
    ETC_RETURN_IF_ERROR(
        file_.Read(offset, sizeof(count), reinterpret_cast<char*>(&count)));
    offset += sizeof(count);
    if (count != static_cast<int64_t>(storage->second.count) ||
        storage->second.Bytes() > file_.size() - offset) {
      return Error("storage ", key->text, " should have ",
                   storage->second.count, " elements, but has ", count,
                   ", with ", file_.size() - offset, " bytes left");
    }
    places_[key->text] = {.offset = offset};
    offset += storage->second.Bytes();
  }
  if (places_.size() != state_.storages.size() || offset != file_.size()) {
    return Error("should have the data of ", state_.storages.size(),
                 " storages and end at byte ", offset, ", but has those of ",
                 places_.size(), " and ends at byte ", file_.size());
  }
  return absl::OkStatus();
}

absl::StatusOr<const TensorInfo*> PytorchFile::Find(
    const std::string& name) const {
  const auto found = state_.tensors.find(name);
  if (found == state_.tensors.end()) {
    return absl::NotFoundError(
        absl::StrCat(path(), " has no tensor ", QuotedName(name)));
  }
  return &found->second;
}

absl::Status PytorchFile::CheckCrc32(const std::string& name,
                                     std::optional<uint32_t> expected,
                                     absl::string_view data) const {
  if (!expected.has_value()) {
    return absl::OkStatus();
  }
  const uint32_t found = Crc32(data);
  if (found != *expected) {
    return absl::DataLossError(
        absl::StrCat(path(), ": ", name, " should have checksum 0x",
                     absl::Hex(*expected), ", but has 0x", absl::Hex(found)));
  }
  return absl::OkStatus();
}

absl::Status PytorchFile::Read(const std::string& name, char* destination,
                               uint64_t size) const {
  ETC_RETURN_IF_ERROR(Find(name).status());
  const PytorchTensor& tensor = state_.tensors.find(name)->second;
  const PytorchStorage& storage = state_.storages.find(tensor.storage)->second;
  uint64_t bytes = storage.ElementBytes();
  for (const int64_t dimension : tensor.shape) {
    bytes *= static_cast<uint64_t>(dimension);
  }
  if (size != bytes) {
    return Error("tensor ", QuotedName(name), " (", Describe(tensor), ") has ",
                 bytes, " bytes, but ", size, " were asked for");
  }
  if (size == 0) {
    return absl::OkStatus();
  }
  const Place& place = places_.find(tensor.storage)->second;
  const std::string storage_name = absl::StrCat("storage ", tensor.storage);
  if (tensor.IsDense() &&
      (!place.crc32.has_value() || size == storage.Bytes())) {
    ETC_RETURN_IF_ERROR(
        file_.Read(place.offset + tensor.offset * storage.ElementBytes(), size,
                   destination));
    return CheckCrc32(storage_name, place.crc32, {destination, size});
  }
  ETC_ASSIGN_OR_RETURN(const std::string data,
                       file_.Read(place.offset, storage.Bytes()));
  ETC_RETURN_IF_ERROR(CheckCrc32(storage_name, place.crc32, data));
  CopyView(data, tensor, storage.ElementBytes(), destination);
  return absl::OkStatus();
}

}  // namespace etc
