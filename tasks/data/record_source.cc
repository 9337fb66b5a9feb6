#include "tasks/data/record_source.h"

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/data/data_files.h"
#include "tasks/data/record_gate.h"

namespace etc {
namespace {

using Json = nlohmann::json;

// Opens many files, several at once; with several ranks, scans this rank's
// shard of them and all-gathers the indices.
class FileOpener {
 public:
  // The files of `request` have these paths.
  FileOpener(const std::vector<std::string>& paths, const DataRequest& request)
      : paths_(paths),
        listener_(request.listener),
        limits_(request.limits),
        group_(request.group),
        index_(RecordIndexBudget::ShareOfProcess()),
        files_(paths.size()) {
    limits_.index = &index_;
    for (size_t i = 0; i < paths.size(); ++i) {
      // A file without a size cannot be opened either: Open() returns why.
      std::error_code error;
      const uint64_t bytes = std::filesystem::file_size(paths[i], error);
      if (static_cast<int64_t>(i) % group_.size == group_.rank) {
        own_.push_back(i);
        num_bytes_ += error ? 0 : bytes;
      }
    }
  }

  absl::StatusOr<std::vector<RecordFile>> OpenAll() {
    const absl::Status scanned = ReadInParallel(
        own_.size(), num_bytes_, listener_,
        [this](size_t i, const BytesListener& report) {
          std::optional<absl::StatusOr<RecordFile>>& file = files_[own_[i]];
          file = RecordFile::Open(paths_[own_[i]], report, limits_);
          return file->status();
        });
    if (group_.size == 1) {
      ETC_RETURN_IF_ERROR(scanned);
    } else {
      ETC_RETURN_IF_ERROR(AllGatherIndices());
    }
    std::vector<RecordFile> files;
    for (std::optional<absl::StatusOr<RecordFile>>& file : files_) {
      // Every file that was not opened comes after one that failed.
      ETC_RETURN_IF_ERROR(file->status());
      files.push_back(**std::move(file));
    }
    return files;
  }

 private:
  // All-gathers for each file of each rank its index, or a message and its
  // code; null for files that a rank did not open.
  absl::Status AllGatherIndices() {
    Json own = Json::array();
    for (const std::optional<absl::StatusOr<RecordFile>>& file : files_) {
      if (!file.has_value()) {
        own.push_back(nullptr);
      } else if (file->ok()) {
        own.push_back((*file)->Index());
      } else {
        own.push_back({static_cast<int>(file->status().code()),
                       std::string(file->status().message())});
      }
    }
    std::string bytes;
    Json::to_cbor(own, bytes);
    ETC_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                         group_.gather(bytes));
    try {
      for (size_t rank = 0; rank < all.size(); ++rank) {
        ETC_RETURN_IF_ERROR(TakeIndices(Json::from_cbor(all[rank]), rank));
      }
    } catch (const Json::exception& error) {
      return absl::InternalError(
          absl::StrCat("what another process says of the data cannot be read: ",
                       error.what()));
    }
    return absl::OkStatus();
  }

  absl::Status TakeIndices(const Json& told, size_t rank) {
    if (told.size() != paths_.size()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the processes should have the same data, but process ", rank,
          " finds ", told.size(), " files and this one ", paths_.size()));
    }
    for (size_t i = 0; i < paths_.size(); ++i) {
      if (told[i].is_null() || static_cast<int64_t>(rank) == group_.rank) {
        continue;
      }
      if (told[i].is_array()) {
        files_[i] = absl::Status(
            static_cast<absl::StatusCode>(told[i].at(0).get<int>()),
            told[i].at(1).get<std::string>());
      } else {
        files_[i] = RecordFile::OpenByIndex(
            paths_[i], told[i].get_ref<const std::string&>(), limits_);
      }
    }
    return absl::OkStatus();
  }

  const std::vector<std::string>& paths_;
  const FilesListener& listener_;
  RecordLimits limits_;
  const DataGroup& group_;
  RecordIndexBudget index_;
  std::vector<size_t> own_;  // this rank's shard
  uint64_t num_bytes_ = 0;   // of the shard
  // Each written by one thread.
  std::vector<std::optional<absl::StatusOr<RecordFile>>> files_;
};

}  // namespace

absl::StatusOr<Examples> OfficialRecords::Make(RecordRequest request) const {
  const std::string where = Where(request.record);
  return NamingOutOfMemory(
      [&] { return absl::StrCat("making examples of ", where); },
      [&]() -> absl::StatusOr<Examples> {
        ETC_ASSIGN_OR_RETURN(const std::string text, Text(request.record));
        absl::StatusOr<Examples> examples = maker_(text, where);
        ETC_RETURN_IF_ERROR(
            WithPlaceInFile(examples.status(), where, LineOf(request.record)));
        return examples;
      });
}

absl::StatusOr<CheckedRecord> OfficialRecords::Check(int64_t record) const {
  const std::string where = Where(record);
  return NamingOutOfMemory(
      [&] { return absl::StrCat("checking ", where); },
      [&]() -> absl::StatusOr<CheckedRecord> {
        ETC_ASSIGN_OR_RETURN(const std::string text, Text(record));
        absl::StatusOr<CheckedRecord> checked = checker_(text, where);
        ETC_RETURN_IF_ERROR(
            WithPlaceInFile(checked.status(), where, LineOf(record)));
        return checked;
      });
}

RecordSource::RecordSource(std::vector<RecordFile> files, ExampleMaker maker,
                           RecordChecker checker)
    : OfficialRecords(std::move(maker), std::move(checker)),
      files_(std::move(files)) {
  for (const RecordFile& file : files_) {
    size_ += file.size();
  }
}

absl::StatusOr<std::unique_ptr<RecordSource>> RecordSource::Open(
    const DataRequest& request, ExampleMaker maker, RecordChecker checker) {
  const absl::StatusOr<std::vector<std::string>> paths =
      FindDataFiles(request.patterns);
  // The others would wait for a rank that finds none.
  ETC_RETURN_IF_ERROR(request.group.Agree(paths.status()));
  ETC_ASSIGN_OR_RETURN(std::vector<RecordFile> files,
                       FileOpener(*paths, request).OpenAll());
  // The constructor is private: make_unique cannot see it.
  return std::unique_ptr<RecordSource>(
      new RecordSource(std::move(files), std::move(maker), std::move(checker)));
}

RecordSource::Place RecordSource::PlaceOf(int64_t record) const {
  size_t file = 0;
  while (record >= files_[file].size()) {
    record -= files_[file].size();
    ++file;
  }
  return {.file = files_[file], .record = record};
}

std::string RecordSource::Where(int64_t record) const {
  const Place place = PlaceOf(record);
  return place.file.Where(place.record);
}

int64_t RecordSource::LineOf(int64_t record) const {
  const Place place = PlaceOf(record);
  return place.file.LineOf(place.record);
}

absl::StatusOr<std::string> RecordSource::Text(int64_t record) const {
  const Place place = PlaceOf(record);
  return place.file.Read(place.record);
}

std::string FileRecord::Text() const {
  if (shared == nullptr) {
    return json;
  }
  const absl::string_view own = absl::string_view(json).substr(1);
  return absl::StrCat("{", *shared, own == "}" ? "" : ",", own);
}

namespace {

absl::Status CheckLengths(const std::vector<FileRecord>& records,
                          const RecordLimits& limits) {
  for (const FileRecord& record : records) {
    const size_t bytes = record.json.size() +
                         (record.shared == nullptr ? 0 : record.shared->size());
    if (bytes > limits.max_record_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat(record.where, ": a record should have at most ",
                       limits.max_record_bytes, " bytes",
                       limits.max_record_field.empty()
                           ? ""
                           : absl::StrCat(" (", limits.max_record_field, ")"),
                       ", but this one has ", bytes));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ForEachRecord(
    const std::string& pattern,
    const std::function<absl::Status(const std::string& text,
                                     const std::string& where)>& read,
    const RecordLimits& limits) {
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                       FindDataFiles({pattern}));
  for (const std::string& path : paths) {
    ETC_ASSIGN_OR_RETURN(const RecordFile file,
                         RecordFile::Open(path, nullptr, limits));
    for (int64_t i = 0; i < file.size(); ++i) {
      ETC_ASSIGN_OR_RETURN(const std::string text, file.Read(i));
      const std::string where = file.Where(i);
      ETC_RETURN_IF_ERROR(
          WithPlaceInFile(read(text, where), where, file.LineOf(i)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<FileRecord>> ReadJsonRecords(
    const std::string& path, const RecordLimits& limits) {
  ETC_ASSIGN_OR_RETURN(const RecordFile file,
                       RecordFile::Open(path, /*listener=*/nullptr, limits));
  std::vector<FileRecord> records;
  records.reserve(static_cast<size_t>(file.size()));
  for (int64_t i = 0; i < file.size(); ++i) {
    ETC_ASSIGN_OR_RETURN(std::string text, file.Read(i));
    records.push_back({.json = std::move(text),
                       .where = file.Where(i),
                       .line = file.LineOf(i)});
  }
  return records;
}

absl::StatusOr<std::vector<FileRecord>> ReadAllFiles(
    const std::vector<std::string>& patterns, const FileReader& read,
    const FilesListener& listener, const RecordLimits& limits) {
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                       FindDataFiles(patterns));
  std::vector<uint64_t> sizes;
  uint64_t num_bytes = 0;
  for (const std::string& path : paths) {
    // Opening the file reports the error.
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(path, error);
    sizes.push_back(error ? 0 : size);
    num_bytes += sizes.back();
  }
  std::vector<FileRecord> records;
  uint64_t bytes = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    ETC_ASSIGN_OR_RETURN(
        std::vector<FileRecord> of_file,
        NamingOutOfMemory(
            [&] { return absl::StrCat("reading the records of ", paths[i]); },
            [&] { return read(paths[i], limits); }));
    ETC_RETURN_IF_ERROR(CheckLengths(of_file, limits));
    records.insert(records.end(), std::make_move_iterator(of_file.begin()),
                   std::make_move_iterator(of_file.end()));
    bytes += sizes[i];
    if (listener) {
      ETC_RETURN_IF_ERROR(listener(bytes, num_bytes));
    }
  }
  return records;
}

absl::StatusOr<std::string> FileRecordSource::Text(int64_t record) const {
  const FileRecord& found = records_[static_cast<size_t>(record)];
  if (!found.broken.empty()) {
    return KnownDefect(found.broken);
  }
  return found.Text();
}

}  // namespace etc
