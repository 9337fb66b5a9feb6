#include "tasks/output/event_log.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/crc32c.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/file_operations.h"
#include "base/status_macros.h"
#include "etc/weights/formats/tensorflow/protobuf_wire.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

namespace fs = std::filesystem;

constexpr char kNamePrefix[] = "events.out.tfevents.";
// Tells the files of this class from those of other programs.
constexpr char kNameEnd[] = ".realetc";

// Numbers of fields, as in TensorFlow's event.proto, summary.proto and
// tensor.proto.
enum EventField : uint32_t {
  kEventWallTime = 1,
  kEventStep = 2,
  kEventFileVersion = 3,
  kEventSummary = 5,
  kEventSessionLog = 7,
};
enum ValueField : uint32_t {
  kValueTag = 1,
  kValueSimple = 2,
  kValueHistogram = 5,
  kValueTensor = 8,
  kValueMetadata = 9,
};
constexpr uint32_t kOnlyField = 1;  // of Summary

void AppendDouble(uint32_t number, double value, std::string* message) {
  AppendVarint(number << 3 | static_cast<uint32_t>(WireType::kFixed64),
               message);
  AppendFixed(value, message);
}

void AppendDoubles(uint32_t number, const std::vector<double>& values,
                   std::string* message) {
  std::string packed;
  for (const double value : values) {
    AppendFixed(value, &packed);
  }
  AppendBytesField(number, packed, message);
}

double SecondsNow() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string Event(int64_t step, uint32_t field, absl::string_view content) {
  std::string event;
  AppendDouble(kEventWallTime, SecondsNow(), &event);
  AppendVarintField(kEventStep, static_cast<uint64_t>(step), &event);
  AppendBytesField(field, content, &event);
  return event;
}

// Letters, digits and "-_./" as they are, others as "_".
std::string CleanTag(absl::string_view tag) {
  constexpr absl::string_view kOthers = "-_./";
  std::string clean(tag);
  for (char& letter : clean) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(letter)) &&
        kOthers.find(letter) == absl::string_view::npos) {
      letter = '_';
    }
  }
  return clean;
}

void AppendScalar(absl::string_view tag, double number, std::string* summary) {
  std::string value;
  AppendBytesField(kValueTag, CleanTag(tag), &value);
  // Also where it is 0, which AppendFixed32Field omits: the field says that the
  // value is a scalar.
  AppendVarint(kValueSimple << 3 | static_cast<uint32_t>(WireType::kFixed32),
               &value);
  AppendFixed(static_cast<float>(number), &value);
  AppendBytesField(kOnlyField, value, summary);
}

// Each number in `json`, by its path.
void AppendScalars(const std::string& tag, const nlohmann::ordered_json& json,
                   std::string* summary) {
  if (json.is_number()) {
    AppendScalar(tag, json.get<double>(), summary);
  } else if (json.is_object()) {
    for (const auto& [field, value] : json.items()) {
      AppendScalars(absl::StrCat(tag, "/", field), value, summary);
    }
  } else if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i) {
      AppendScalars(absl::StrCat(tag, "/", i), json[i], summary);
    }
  }
}

// The summary of a text, as TensorBoard's plugin of that name takes it.
std::string TextSummary(absl::string_view tag, absl::string_view text) {
  constexpr uint64_t kString = 7;  // DT_STRING
  std::string dimension;
  AppendVarintField(/*size*/ 1, 1, &dimension);
  std::string shape;
  AppendBytesField(/*dim*/ 2, dimension, &shape);
  std::string tensor;
  AppendVarintField(/*dtype*/ 1, kString, &tensor);
  AppendBytesField(/*tensor_shape*/ 2, shape, &tensor);
  AppendBytesField(/*string_val*/ 8, text, &tensor);
  std::string plugin;
  AppendBytesField(/*plugin_name*/ 1, "text", &plugin);
  std::string metadata;
  AppendBytesField(/*plugin_data*/ 1, plugin, &metadata);
  std::string value;
  AppendBytesField(kValueTag, tag, &value);
  AppendBytesField(kValueTensor, tensor, &value);
  AppendBytesField(kValueMetadata, metadata, &value);
  std::string summary;
  AppendBytesField(kOnlyField, value, &summary);
  return summary;
}

std::string FirstEvent() {
  std::string event;
  AppendDouble(kEventWallTime, SecondsNow(), &event);
  AppendBytesField(kEventFileVersion, "brain.Event:2", &event);
  return event;
}

// Makes TensorBoard forget the events of earlier files from `step` on. Its
// server ignores the first START of a directory, so the first file has one too.
std::string StartEvent(int64_t step) {
  std::string session;
  AppendVarintField(/*status*/ 1, /*START*/ 1, &session);
  return Event(step, kEventSessionLog, session);
}

std::string HistogramOf(absl::Span<const double> values) {
  constexpr size_t kBuckets = 30;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double low = *least;
  const double high = *most;
  double sum = 0;
  double squares = 0;
  const size_t buckets = low < high ? kBuckets : 1;
  std::vector<double> limits(buckets, high);
  std::vector<double> counts(buckets, 0);
  const double width = (high - low) / static_cast<double>(buckets);
  for (size_t i = 0; i + 1 < buckets; ++i) {
    limits[i] = low + width * static_cast<double>(i + 1);
  }
  for (const double value : values) {
    sum += value;
    squares += value * value;
    const auto place = std::lower_bound(limits.begin(), limits.end(), value);
    counts[std::min<size_t>(static_cast<size_t>(place - limits.begin()),
                            buckets - 1)] += 1;
  }
  std::string histogram;
  AppendDouble(/*min*/ 1, low, &histogram);
  AppendDouble(/*max*/ 2, high, &histogram);
  AppendDouble(/*num*/ 3, static_cast<double>(values.size()), &histogram);
  AppendDouble(/*sum*/ 4, sum, &histogram);
  AppendDouble(/*sum_squares*/ 5, squares, &histogram);
  AppendDoubles(/*bucket_limit*/ 6, limits, &histogram);
  AppendDoubles(/*bucket*/ 7, counts, &histogram);
  return histogram;
}

// The second that a file's name says; 0: it is no such name.
int64_t SecondOf(absl::string_view name) {
  int64_t second = 0;
  return absl::ConsumePrefix(&name, kNamePrefix) &&
                 absl::SimpleAtoi(name.substr(0, name.find('.')), &second)
             ? second
             : 0;
}

// The names of the event files in the directory; none if it is missing.
absl::StatusOr<std::vector<std::string>> EventFiles(
    const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (SecondOf(name) > 0 && entry->is_regular_file(ignored)) {
      names.push_back(name);
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return ErrnoStatus(error.value(), "list", directory);
  }
  return names;
}

}  // namespace

std::string EventRecord(absl::string_view payload) {
  std::string record;
  AppendFixed(static_cast<uint64_t>(payload.size()), &record);
  AppendFixed(MaskCrc32c(ExtendCrc32c(0, record)), &record);
  absl::StrAppend(&record, payload);
  AppendFixed(MaskCrc32c(ExtendCrc32c(0, payload)), &record);
  return record;
}

absl::StatusOr<EventLog> EventLog::Open(const std::string& directory,
                                        const Start& start) {
  ETC_RETURN_IF_ERROR(CreateDirectories(directory));
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                       EventFiles(directory));
  bool is_first = true;
  auto second = static_cast<int64_t>(SecondsNow());
  for (const std::string& name : names) {
    // Behind all others, also where the clock went back.
    second = std::max(second, SecondOf(name) + 1);
    is_first = is_first && !absl::EndsWith(name, kNameEnd);
  }
  ETC_ASSIGN_OR_RETURN(
      AppendedFile file,
      AppendedFile::Open(absl::StrCat(directory, "/", kNamePrefix,
                                      absl::StrFormat("%010d", second), ".",
                                      HostName(), ".", getpid(), kNameEnd),
                         /*bytes=*/0));
  ETC_RETURN_IF_ERROR(file.Append(EventRecord(FirstEvent())));
  ETC_RETURN_IF_ERROR(file.Append(EventRecord(StartEvent(start.step + 1))));
  if (is_first) {
    ETC_RETURN_IF_ERROR(file.Append(
        EventRecord(Event(start.step, kEventSummary,
                          TextSummary("configuration", start.configuration)))));
  }
  return EventLog(std::move(file));
}

absl::Status EventLog::Remove(const std::string& directory) {
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                       EventFiles(directory));
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(directory, "/", name);
    if (absl::EndsWith(name, kNameEnd) &&
        FileOperations::Current().Unlink(path) != 0) {
      return ErrnoStatus(errno, "remove", path);
    }
  }
  return absl::OkStatus();
}

absl::Status EventLog::Write(const nlohmann::ordered_json& line) {
  const bool is_evaluation = line.contains("evaluation");
  int64_t step = 0;
  std::string summary;
  for (const auto& [field, value] : line.items()) {
    if (field == "step") {
      step = value.get<int64_t>();
    } else if (field == "evaluation") {
      AppendScalars(field, value, &summary);
    } else {
      AppendScalars(
          absl::StrCat(is_evaluation ? "evaluated/" : "train/", field), value,
          &summary);
    }
  }
  return file_.Append(EventRecord(Event(step, kEventSummary, summary)));
}

absl::Status EventLog::WriteHistogram(int64_t step, absl::string_view tag,
                                      absl::Span<const double> values) {
  std::string value;
  AppendBytesField(kValueTag, CleanTag(tag), &value);
  AppendBytesField(kValueHistogram, HistogramOf(values), &value);
  std::string summary;
  AppendBytesField(kOnlyField, value, &summary);
  return file_.Append(EventRecord(Event(step, kEventSummary, summary)));
}

}  // namespace etc
