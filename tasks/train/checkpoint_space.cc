#include "tasks/train/checkpoint_space.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "base/directory.h"
#include "tasks/output/results.h"

namespace etc {
namespace {

namespace fs = std::filesystem;

// Bytes of the files in a directory and below; 0 if there is none.
double BytesIn(const std::string& directory) {
  double bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(directory, error), end;
       !error && entry != end; entry.increment(error)) {
    std::error_code unknown;
    const uintmax_t size = entry->file_size(unknown);
    bytes += unknown ? 0 : static_cast<double>(size);
  }
  return bytes;
}

}  // namespace

CheckpointSpace EstimateCheckpoints(const RunConfig& config,
                                    const TrainedCounts& parameters,
                                    std::optional<int64_t> made) {
  const double one = parameters.checkpoint_bytes();
  const int64_t wanted = config.train.keep_last + config.train.keep_best;
  const double kept =
      one * static_cast<double>(std::min(wanted, made.value_or(wanted)));
  return {.one = one,
          .seed = kept + one,
          .all = kept * static_cast<double>(config.train.seeds.size()) + one};
}

std::string DiskWarning(const RunConfig& config, double bytes) {
  const std::optional<uint64_t> free = FreeBytes(config.output);
  if (!free.has_value()) {
    return "";
  }
  double room = static_cast<double>(*free);
  for (const int64_t seed : config.train.seeds) {
    room += BytesIn(SeedDirectory(config.output, seed) + "/checkpoints");
  }
  return bytes <= room
             ? ""
             : absl::StrFormat(
                   "checkpoints of %s take up to %.1f GB on disk "
                   "(train.keep_last, train.keep_best and the one being "
                   "written), but there are %.1f GB for them at %s",
                   Counted(std::ssize(config.train.seeds), "seed"),
                   1e-9 * bytes, 1e-9 * room, config.output);
}

}  // namespace etc
