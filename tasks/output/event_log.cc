#include "tasks/output/event_log.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
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
// In the first event of a file: who wrote it.
constexpr char kWriter[] = "realetc";
constexpr char kEvaluationGroup[] = "evaluation/";
constexpr char kEvaluatedGroup[] = "evaluated/";
constexpr char kTrainGroup[] = "train/";

// Bytes before and behind the payload of a record.
constexpr size_t kHeaderBytes = 12;
constexpr size_t kFooterBytes = 4;

// Numbers of fields, as in TensorFlow's event.proto, summary.proto and
// tensor.proto.
enum EventField : uint32_t {
  kEventWallTime = 1,
  kEventStep = 2,
  kEventFileVersion = 3,
  kEventSummary = 5,
  kEventSessionLog = 7,
  kEventSourceMetadata = 10,
};
enum ValueField : uint32_t {
  kValueTag = 1,
  kValueSimple = 2,
  kValueHistogram = 5,
  kValueTensor = 8,
  kValueMetadata = 9,
};
constexpr uint32_t kOnlyField = 1;  // of Summary, SourceMetadata, SessionLog

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
  std::string source;
  AppendBytesField(kOnlyField, kWriter, &source);
  AppendBytesField(kEventSourceMetadata, source, &event);
  return event;
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

// --- Files of earlier processes ----------------------------------------------

// The part of an event that decides if a resumed run keeps it.
struct EventOutline {
  int64_t step = 0;
  bool is_ours = false;  // has this class's name
  bool has_metrics = false;
  bool is_evaluation = false;
};

absl::StatusOr<EventOutline> OutlineOf(absl::string_view payload) {
  EventOutline outline;
  const auto in_value = [&](const ProtoField& field) {
    if (field.number == kValueTag) {
      const std::string tag(field.bytes);
      outline.is_evaluation |=
          tag.starts_with(kEvaluationGroup) || tag.starts_with(kEvaluatedGroup);
    }
    outline.has_metrics |=
        field.number == kValueSimple || field.number == kValueHistogram;
    return absl::OkStatus();
  };
  const absl::Status read =
      VisitProtoFields(payload, [&](const ProtoField& field) -> absl::Status {
        if (field.number == kEventStep) {
          outline.step = static_cast<int64_t>(field.value);
        } else if (field.number == kEventSourceMetadata) {
          return VisitProtoFields(field.bytes, [&](const ProtoField& writer) {
            outline.is_ours |=
                writer.number == kOnlyField && writer.bytes == kWriter;
            return absl::OkStatus();
          });
        } else if (field.number == kEventSummary) {
          return VisitProtoFields(field.bytes, [&](const ProtoField& value) {
            return VisitProtoFields(value.bytes, in_value);
          });
        }
        return absl::OkStatus();
      });
  ETC_RETURN_IF_ERROR(read);
  return outline;
}

template <typename T>
T FixedAt(absl::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

bool HasCrc(absl::string_view bytes, uint32_t masked) {
  return MaskCrc32c(ExtendCrc32c(0, bytes)) == masked;
}

// The payload of the record at `*at`, which then is behind it; nothing: the
// record is incomplete.
absl::StatusOr<std::optional<absl::string_view>> TakeRecord(
    const std::string& path, absl::string_view file, size_t* at) {
  const absl::string_view rest = file.substr(*at);
  const auto damaged = [&](const char* part) {
    return absl::DataLossError(absl::StrCat(
        path, ": the ", part, " of the record at byte ", *at,
        " is not as it was written: move the file away, and the run goes on"));
  };
  if (rest.size() < kHeaderBytes) {
    return std::nullopt;
  }
  if (!HasCrc(rest.substr(0, 8), FixedAt<uint32_t>(rest, 8))) {
    return damaged("length");
  }
  const auto length = FixedAt<uint64_t>(rest, 0);
  if (rest.size() - kHeaderBytes < kFooterBytes ||
      length > rest.size() - kHeaderBytes - kFooterBytes) {
    return std::nullopt;
  }
  const absl::string_view payload = rest.substr(kHeaderBytes, length);
  if (!HasCrc(payload, FixedAt<uint32_t>(rest, kHeaderBytes + length))) {
    return damaged("payload");
  }
  *at += kHeaderBytes + length + kFooterBytes;
  return payload;
}

// The beginning of a file that is not later than a start.
struct KeptPart {
  bool is_ours = false;
  bool has_metrics = false;
  size_t bytes = 0;
};

absl::StatusOr<KeptPart> FindKeptPart(const std::string& path,
                                      absl::string_view file,
                                      const EventLog::Start& start) {
  KeptPart kept;
  size_t at = 0;
  while (true) {
    const absl::StatusOr<std::optional<absl::string_view>> payload =
        TakeRecord(path, file, &at);
    // A file whose first record is not whole is not known to be ours.
    if (!payload.ok() && !kept.is_ours) {
      return kept;
    }
    ETC_RETURN_IF_ERROR(payload.status());
    if (!payload->has_value()) {
      return kept;
    }
    const absl::StatusOr<EventOutline> event = OutlineOf(**payload);
    kept.is_ours |= event.ok() && event->is_ours;
    if (!kept.is_ours) {
      return kept;
    }
    if (!event.ok()) {
      return absl::DataLossError(
          absl::StrCat(path, ": ", event.status().message()));
    }
    const bool is_made_again = event->is_evaluation && !start.is_evaluated &&
                               event->step == start.step;
    if (event->has_metrics && (event->step > start.step || is_made_again)) {
      return kept;
    }
    kept.has_metrics |= event->has_metrics;
    kept.bytes = at;
  }
}

// The second that a file's name says; 0: it is no such name.
int64_t SecondOf(absl::string_view name) {
  int64_t second = 0;
  return absl::ConsumePrefix(&name, kNamePrefix) &&
                 absl::SimpleAtoi(name.substr(0, name.find('.')), &second)
             ? second
             : 0;
}

// The files of the directory by their names, which sort by time; none if it is
// missing.
absl::StatusOr<std::map<std::string, std::string>> EventFiles(
    const std::string& directory) {
  std::map<std::string, std::string> paths;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (SecondOf(name) > 0 && entry->is_regular_file(ignored)) {
      paths[name] = entry->path().string();
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return ErrnoStatus(error.value(), "list", directory);
  }
  return paths;
}

// A step before that of all metrics.
constexpr int64_t kBeforeAll = -1;

// Cuts the file at `path`, or removes it. Returns true if metrics are left.
absl::StatusOr<bool> CutFile(const std::string& path,
                             const EventLog::Start& start) {
  ETC_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  ETC_ASSIGN_OR_RETURN(const KeptPart kept,
                       FindKeptPart(path, contents, start));
  if (!kept.is_ours) {
    return false;
  }
  if (!kept.has_metrics) {
    return FileOperations::Current().Unlink(path) == 0
               ? absl::StatusOr<bool>(false)
               : ErrnoStatus(errno, "remove", path);
  }
  if (kept.bytes < contents.size()) {
    ETC_ASSIGN_OR_RETURN(
        AppendedFile file,
        AppendedFile::Open(path, static_cast<int64_t>(kept.bytes)));
    ETC_RETURN_IF_ERROR(file.Sync());
  }
  return true;
}

std::string CleanHostName() {
  std::string name = CleanTag(HostName());
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
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
  ETC_ASSIGN_OR_RETURN(const auto paths, EventFiles(directory));
  bool goes_on = false;
  auto second = static_cast<int64_t>(SecondsNow());
  for (const auto& [name, path] : paths) {
    // Behind all others, also where the clock went back.
    second = std::max(second, SecondOf(name) + 1);
    ETC_ASSIGN_OR_RETURN(const bool has_metrics, CutFile(path, start));
    goes_on |= has_metrics;
  }
  ETC_ASSIGN_OR_RETURN(
      AppendedFile file,
      AppendedFile::Open(absl::StrCat(directory, "/", kNamePrefix,
                                      absl::StrFormat("%010d", second), ".",
                                      CleanHostName(), ".", getpid(), ".0"),
                         /*bytes=*/0));
  ETC_RETURN_IF_ERROR(file.Append(EventRecord(FirstEvent())));
  if (goes_on) {
    // Makes a TensorBoard that has read the events that were cut forget them.
    std::string session;
    AppendVarintField(/*status*/ 1, /*START*/ 1, &session);
    ETC_RETURN_IF_ERROR(file.Append(
        EventRecord(Event(start.step + 1, kEventSessionLog, session))));
  } else {
    ETC_RETURN_IF_ERROR(file.Append(
        EventRecord(Event(start.step, kEventSummary,
                          TextSummary("configuration", start.configuration)))));
  }
  return EventLog(std::move(file));
}

absl::Status EventLog::Remove(const std::string& directory) {
  ETC_ASSIGN_OR_RETURN(const auto paths, EventFiles(directory));
  for (const auto& [name, path] : paths) {
    ETC_RETURN_IF_ERROR(CutFile(path, {.step = kBeforeAll}).status());
  }
  return absl::OkStatus();
}

absl::Status EventLog::CheckRemovable(const std::string& directory) {
  ETC_ASSIGN_OR_RETURN(const auto paths, EventFiles(directory));
  for (const auto& [name, path] : paths) {
    ETC_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
    ETC_RETURN_IF_ERROR(
        FindKeptPart(path, contents, {.step = kBeforeAll}).status());
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
      AppendScalars(std::string(absl::StripSuffix(kEvaluationGroup, "/")),
                    value, &summary);
    } else {
      AppendScalars(
          absl::StrCat(is_evaluation ? kEvaluatedGroup : kTrainGroup, field),
          value, &summary);
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
