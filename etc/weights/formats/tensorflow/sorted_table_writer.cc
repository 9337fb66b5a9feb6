#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/byte_reader.h"
#include "etc/weights/formats/tensorflow/crc32c.h"
#include "etc/weights/formats/tensorflow/sorted_table.h"
#include "etc/weights/formats/tensorflow/sorted_table_layout.h"

namespace etc {
namespace {

constexpr size_t kBlockBytes = 262'144;
constexpr int kDataRestartInterval = 16;
constexpr int kIndexRestartInterval = 1;

// The contents of one block.
class BlockBuilder {
 public:
  explicit BlockBuilder(int restart_interval)
      : restart_interval_(restart_interval) {}

  void Add(const std::string& key, absl::string_view value) {
    size_t shared = 0;
    if (since_restart_ == restart_interval_) {
      restarts_.push_back(static_cast<uint32_t>(bytes_.size()));
      since_restart_ = 0;
    } else {
      const auto [in_key, in_last] = std::mismatch(
          key.begin(), key.end(), last_key_.begin(), last_key_.end());
      shared = static_cast<size_t>(in_key - key.begin());
    }
    AppendVarint(shared, &bytes_);
    AppendVarint(key.size() - shared, &bytes_);
    AppendVarint(value.size(), &bytes_);
    absl::StrAppend(&bytes_, absl::string_view(key).substr(shared), value);
    last_key_ = key;
    ++since_restart_;
  }

  size_t size() const {
    return bytes_.size() + kTableRestartBytes * (restarts_.size() + 1);
  }

  // Appends the block with its trailer to `file`, and its handle to the result.
  std::string Finish(std::string* file) {
    for (const uint32_t restart : restarts_) {
      AppendFixed(restart, &bytes_);
    }
    AppendFixed(static_cast<uint32_t>(restarts_.size()), &bytes_);
    std::string handle;
    AppendVarint(file->size(), &handle);
    AppendVarint(bytes_.size(), &handle);
    AppendFixed(kTableRawBlock, &bytes_);
    absl::StrAppend(file, bytes_);
    AppendFixed(MaskCrc32c(ExtendCrc32c(0, bytes_)), file);
    *this = BlockBuilder(restart_interval_);
    return handle;
  }

 private:
  int restart_interval_;
  std::string bytes_;
  std::vector<uint32_t> restarts_ = {0};
  int since_restart_ = 0;
  std::string last_key_;
};

// A short string from `key`, below `limit`, on; `key` itself if LevelDB finds
// none.
std::string Separator(const std::string& key, const std::string& limit) {
  const auto [at, at_limit] =
      std::mismatch(key.begin(), key.end(), limit.begin(), limit.end());
  if (at == key.end() || at_limit == limit.end()) {
    return key;
  }
  const auto next = static_cast<uint8_t>(static_cast<uint8_t>(*at) + 1);
  if (next == 0 || next >= static_cast<uint8_t>(*at_limit)) {
    return key;
  }
  return std::string(key.begin(), at) + static_cast<char>(next);
}

// The shortest string from `key` on.
std::string Successor(const std::string& key) {
  const size_t at = key.find_first_not_of('\xff');
  if (at == std::string::npos) {
    return key;
  }
  return key.substr(0, at) + static_cast<char>(key[at] + 1);
}

}  // namespace

std::string BuildSortedTable(
    const std::map<std::string, std::string>& entries) {
  std::string file;
  BlockBuilder data(kDataRestartInterval);
  BlockBuilder index(kIndexRestartInterval);
  for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
    data.Add(entry->first, entry->second);
    const auto next = std::next(entry);
    if (next == entries.end()) {
      index.Add(Successor(entry->first), data.Finish(&file));
    } else if (data.size() >= kBlockBytes) {
      index.Add(Separator(entry->first, next->first), data.Finish(&file));
    }
  }
  std::string footer = BlockBuilder(kDataRestartInterval).Finish(&file);
  absl::StrAppend(&footer, index.Finish(&file));
  footer.resize(kTableHandlesBytes, '\0');
  AppendFixed(kTableMagic, &footer);
  return file + footer;
}

}  // namespace etc
