#include "tasks/data/example_outline.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/data/record_gate.h"

namespace etc {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RecordRequest, record, key)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LostText, count, unit)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ExampleNotes, left_out, is_truncated,
                                   lost_text, lost_answer)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ExampleOutline, request, number, long_length,
                                   global_length, bytes, notes, record_id)

namespace {

using Json = nlohmann::json;

Json StatusToJson(const absl::Status& status) {
  return {{"code", static_cast<int>(status.code())},
          {"message", std::string(status.message())},
          {"known", IsKnownDefect(status)}};
}

absl::Status StatusFromJson(const Json& json) {
  const auto message = json.at("message").get<std::string>();
  return json.at("known").get<bool>()
             ? KnownDefect(message)
             : absl::Status(
                   static_cast<absl::StatusCode>(json.at("code").get<int>()),
                   message);
}

}  // namespace

absl::StatusOr<ExampleOutlines> OutlinesOf(
    RecordRequest request, const absl::StatusOr<Examples>& examples) {
  ETC_RETURN_IF_ERROR(examples.status());
  ExampleOutlines outlines;
  outlines.reserve(examples->size());
  for (const auto& example : *examples) {
    outlines.push_back(
        {.request = request,
         .number = static_cast<int64_t>(outlines.size()),
         .long_length = example->long_length(),
         .global_length = example->global_length(),
         .bytes = ExampleBytes(*example),
         .notes = static_cast<const ExampleNotes&>(*example),
         .record_id = example->is_truncated ? example->record_id : "",
         .example = example});
  }
  return outlines;
}

absl::Status SetExample(const Examples& made, ExampleOutline* outline) {
  const auto number = static_cast<size_t>(outline->number);
  if (number >= made.size() ||
      made[number]->long_length() != outline->long_length ||
      made[number]->global_length() != outline->global_length) {
    return absl::FailedPreconditionError(absl::StrCat(
        "example ", outline->number, " of record ", outline->request.record,
        " should have ", outline->long_length, " long and ",
        outline->global_length,
        " global tokens, as in the process that made it first, but has not "
        "here: do all processes read the same data?"));
  }
  outline->example = made[number];
  return absl::OkStatus();
}

Examples ExamplesOf(const ExampleOutlines& outlines) {
  Examples examples;
  examples.reserve(outlines.size());
  for (const ExampleOutline& outline : outlines) {
    examples.push_back(outline.example);
  }
  return examples;
}

// Serialises as CBOR, in which messages may hold any bytes.
std::string OutlinesToBytes(
    const std::vector<absl::StatusOr<ExampleOutlines>>& outlines) {
  Json all = Json::array();
  for (const absl::StatusOr<ExampleOutlines>& some : outlines) {
    all.push_back(some.ok() ? Json(*some) : StatusToJson(some.status()));
  }
  std::string bytes;
  Json::to_cbor(all, bytes);
  return bytes;
}

absl::StatusOr<std::vector<absl::StatusOr<ExampleOutlines>>> OutlinesFromBytes(
    const std::string& bytes) {
  try {
    std::vector<absl::StatusOr<ExampleOutlines>> outlines;
    for (const Json& some : Json::from_cbor(bytes)) {
      if (some.is_object()) {
        outlines.emplace_back(StatusFromJson(some));
      } else {
        outlines.emplace_back(some.get<ExampleOutlines>());
      }
    }
    return outlines;
  } catch (const Json::exception& error) {
    return absl::InternalError(absl::StrCat(
        "what another process says of its examples cannot be read: ",
        error.what()));
  }
}

}  // namespace etc
