#include "tasks/data/example_outline.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/data/record_gate.h"

namespace etc {
namespace {

using Json = nlohmann::json;

Json OutlineToJson(const ExampleOutline& outline) {
  return {
      outline.request.record, outline.request.key,     outline.number,
      outline.long_length,    outline.global_length,   outline.bytes,
      outline.left_out,       outline.is_truncated,    outline.lost_answer,
      outline.record_id,      outline.lost_text.count, outline.lost_text.unit};
}

ExampleOutline OutlineFromJson(const Json& json) {
  return {.request = {.record = json.at(0).get<int64_t>(),
                      .key = json.at(1).get<uint64_t>()},
          .number = json.at(2).get<int64_t>(),
          .long_length = json.at(3).get<int64_t>(),
          .global_length = json.at(4).get<int64_t>(),
          .bytes = json.at(5).get<int64_t>(),
          .left_out = json.at(6).get<std::string>(),
          .is_truncated = json.at(7).get<bool>(),
          .lost_answer = json.at(8).get<std::string>(),
          .record_id = json.at(9).get<std::string>(),
          .lost_text = {.count = json.at(10).get<int64_t>(),
                        .unit = json.at(11).get<std::string>()},
          .example = nullptr};
}

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
         .left_out = example->left_out,
         .is_truncated = example->is_truncated,
         .lost_answer = example->lost_answer,
         .record_id = example->is_truncated ? example->record_id : "",
         .lost_text = example->lost_text,
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
    if (!some.ok()) {
      all.push_back(StatusToJson(some.status()));
      continue;
    }
    Json list = Json::array();
    for (const ExampleOutline& outline : *some) {
      list.push_back(OutlineToJson(outline));
    }
    all.push_back(std::move(list));
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
        continue;
      }
      ExampleOutlines list;
      for (const Json& outline : some) {
        list.push_back(OutlineFromJson(outline));
      }
      outlines.emplace_back(std::move(list));
    }
    return outlines;
  } catch (const Json::exception& error) {
    return absl::InternalError(absl::StrCat(
        "what another process says of its examples cannot be read: ",
        error.what()));
  }
}

}  // namespace etc
