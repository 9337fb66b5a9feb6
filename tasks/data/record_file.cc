#include "tasks/data/record_file.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/data/id_places.h"
#include "tasks/data/text_file.h"

namespace etc {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kChunkBytes = uint64_t{1} << 20;

// Takes the contents and how much of the file has been read.
using Consumer = GzipFile::Consumer;

absl::Status ReadPlain(const RandomAccessFile& file, const Consumer& consume) {
  std::string chunk;
  for (uint64_t offset = 0; offset < file.size(); offset += chunk.size()) {
    chunk.resize(std::min(kChunkBytes, file.size() - offset));
    ETC_RETURN_IF_ERROR(file.Read(offset, chunk.size(), chunk.data()));
    ETC_RETURN_IF_ERROR(consume(chunk, offset + chunk.size()));
  }
  return absl::OkStatus();
}

}  // namespace

RecordFile::RecordFile(File file, std::vector<Extent> extents,
                       bool has_a_record_a_line)
    : file_(std::move(file)),
      extents_(std::move(extents)),
      has_a_record_a_line_(has_a_record_a_line) {}

absl::StatusOr<RecordFile> RecordFile::Open(const std::string& path,
                                            const BytesListener& listener,
                                            const RecordLimits& limits) {
  return NamingOutOfMemory(
      [&] { return absl::StrCat("looking for the records of ", path); },
      [&] { return OpenWithin(path, listener, limits); });
}

absl::StatusOr<RecordFile> RecordFile::OpenWithin(const std::string& path,
                                                  const BytesListener& listener,
                                                  RecordLimits limits) {
  RecordIndexBudget own = RecordIndexBudget::ShareOfProcess();
  limits.index = limits.index != nullptr ? limits.index : &own;
  ETC_ASSIGN_OR_RETURN(RandomAccessFile plain, RandomAccessFile::Open(path));
  ETC_ASSIGN_OR_RETURN(const bool is_gzip, GzipFile::IsGzip(plain));
  RecordScanner scanner(path, std::move(limits));
  uint64_t reported = 0;
  const auto consume = [&](absl::string_view contents, uint64_t file_bytes) {
    if (reported == 0) {
      ETC_RETURN_IF_ERROR(CheckTextStart(contents, path));
    }
    ETC_RETURN_IF_ERROR(scanner.Scan(contents));
    const uint64_t more = file_bytes - std::exchange(reported, file_bytes);
    return listener ? listener(more) : absl::OkStatus();
  };
  if (is_gzip) {
    ETC_ASSIGN_OR_RETURN(GzipFile file,
                         GzipFile::Open(std::move(plain), consume, {}));
    ETC_RETURN_IF_ERROR(scanner.Finish());
    return RecordFile(std::move(file), scanner.TakeExtents(),
                      scanner.has_a_record_a_line());
  }
  ETC_RETURN_IF_ERROR(ReadPlain(plain, consume));
  ETC_RETURN_IF_ERROR(scanner.Finish());
  return RecordFile(std::move(plain), scanner.TakeExtents(),
                    scanner.has_a_record_a_line());
}

// Serialised as CBOR: [bytes of the file, places of the records, is it gzip,
// bytes of its contents, points, has it a record a line].
std::string RecordFile::Index() const {
  std::vector<uint64_t> places;
  places.reserve(2 * extents_.size());
  for (const auto& [begin, length] : extents_) {
    places.push_back(begin);
    places.push_back(length);
  }
  const auto* const gzip = std::get_if<GzipFile>(&file_);
  Json points = Json::array();
  for (const GzipPoint& point :
       gzip == nullptr ? std::vector<GzipPoint>() : gzip->index().points) {
    points.push_back(
        {point.offset, point.file_offset, point.bits, point.window});
  }
  const uint64_t bytes = gzip == nullptr
                             ? std::get<RandomAccessFile>(file_).size()
                             : gzip->file_size();
  std::string index;
  Json::to_cbor({bytes, places, gzip != nullptr,
                 gzip == nullptr ? uint64_t{0} : gzip->size(), points,
                 has_a_record_a_line_},
                index);
  return index;
}

absl::StatusOr<RecordFile> RecordFile::OpenByIndex(const std::string& path,
                                                   const std::string& index,
                                                   const RecordLimits& limits) {
  ETC_ASSIGN_OR_RETURN(RandomAccessFile file, RandomAccessFile::Open(path));
  try {
    const Json json = Json::from_cbor(index);
    if (const auto bytes = json.at(0).get<uint64_t>(); file.size() != bytes) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": the file should be the same in all processes, ",
                       "but has ", file.size(), " bytes here and ", bytes,
                       " where its records were looked for"));
    }
    const auto places = json.at(1).get<std::vector<uint64_t>>();
    std::vector<Extent> extents(places.size() / 2);
    if (limits.index != nullptr && !limits.index->Take(static_cast<int64_t>(
                                       extents.size() * sizeof(Extent)))) {
      return absl::ResourceExhaustedError(absl::StrCat(
          path, ": there is no memory left for the places of its ",
          extents.size(), " records; name fewer or smaller files"));
    }
    for (size_t i = 0; i < extents.size(); ++i) {
      extents[i] = {places[2 * i], places[2 * i + 1]};
    }
    const bool has_a_record_a_line = json.at(5).get<bool>();
    if (!json.at(2).get<bool>()) {
      return RecordFile(std::move(file), std::move(extents),
                        has_a_record_a_line);
    }
    GzipIndex gzip = {.size = json.at(3).get<uint64_t>()};
    for (const Json& point : json.at(4)) {
      gzip.points.push_back({.offset = point.at(0).get<uint64_t>(),
                             .file_offset = point.at(1).get<uint64_t>(),
                             .bits = point.at(2).get<int>(),
                             .window = point.at(3).get<std::string>()});
    }
    return RecordFile(GzipFile(std::move(file), std::move(gzip)),
                      std::move(extents), has_a_record_a_line);
  } catch (const Json::exception& error) {
    return absl::InternalError(absl::StrCat(
        path,
        ": what another process says of it cannot be read: ", error.what()));
  }
}

const std::string& RecordFile::path() const {
  return std::visit(
      [](const auto& file) -> const std::string& { return file.path(); },
      file_);
}

absl::StatusOr<std::string> RecordFile::Read(int64_t index) const {
  if (index < 0 || index >= size()) {
    return absl::OutOfRangeError(absl::StrCat(path(), ": there is no record ",
                                              index, "; it has ", size()));
  }
  const auto& [begin, length] = extents_[static_cast<size_t>(index)];
  // Captured by name: clang 14 captures no structured binding otherwise.
  return std::visit([begin = begin, length = length](
                        const auto& file) { return file.Read(begin, length); },
                    file_);
}

std::string RecordFile::Where(int64_t index) const {
  return absl::StrCat(path(), ": record ", index);
}

absl::Status WithPlaceInFile(const absl::Status& status,
                             const std::string& where, int64_t line) {
  absl::string_view message = status.message();
  return line > 0 && absl::ConsumePrefix(&message, where + ":1:")
             ? absl::Status(status.code(), absl::StrCat(FileOfPlace(where), ":",
                                                        line, ":", message))
             : status;
}

}  // namespace etc
