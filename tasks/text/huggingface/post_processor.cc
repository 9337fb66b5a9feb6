#include "tasks/text/huggingface/post_processor.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"

namespace etc::huggingface {
namespace {

using nlohmann::json;

// A piece with its id: ["</s>", 2].
absl::Status ReadPiece(JsonObjectReader* reader, const char* field,
                       const Vocabulary& vocabulary, int32_t* id) {
  const json* pair = reader->Raw(field, /*required=*/true);
  ETC_RETURN_IF_ERROR(reader->status());
  if (!pair->is_array() || pair->size() != 2 || !(*pair)[0].is_string() ||
      !(*pair)[1].is_number_integer()) {
    return InvalidArgument(reader->Where(field),
                           " should be a piece and its id");
  }
  const auto piece = (*pair)[0].get<std::string>();
  const auto stated = (*pair)[1].get<int64_t>();
  if (vocabulary.Id(piece) != stated) {
    return InvalidArgument(reader->Where(field), " is ", QuotedName(piece),
                           " with id ", stated, ", but the vocabulary has ",
                           vocabulary.Id(piece));
  }
  *id = static_cast<int32_t>(stated);
  return absl::OkStatus();
}

// The id of a special token of a template: the first and only one of its ids.
absl::StatusOr<int32_t> IdOfSpecial(JsonObjectReader* reader,
                                    const std::string& name,
                                    const Vocabulary& vocabulary) {
  const json* specials = reader->Raw("special_tokens", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader->status());
  JsonObjectReader all(*specials, reader->Where("special_tokens"));
  const json* special = all.Raw(name, /*required=*/true);
  ETC_RETURN_IF_ERROR(all.status());
  JsonObjectReader one(*special, all.Where(name));
  std::vector<int64_t> ids;
  one.Required("ids", &ids);
  ETC_RETURN_IF_ERROR(one.status());
  if (ids.size() != 1 || !vocabulary.Has(ids[0])) {
    return InvalidArgument(one.Where("ids"),
                           " should be the id of a piece, but ",
                           ids.size() == 1 ? absl::StrCat(ids[0], " is none")
                                           : absl::StrCat("are ", ids.size()));
  }
  return static_cast<int32_t>(ids[0]);
}

// An element of a template: a special piece, or a text.
struct TemplatePart {
  int32_t id = -1;   // -1 for a text
  std::string text;  // "A" or "B"
};

absl::StatusOr<TemplatePart> ReadTemplatePart(JsonObjectReader* reader,
                                              const json& object,
                                              const std::string& where,
                                              const Vocabulary& vocabulary) {
  TemplatePart result;
  JsonObjectReader part(object, where);
  ETC_RETURN_IF_ERROR(part.status());
  const char* const kind = part.Has("Sequence") ? "Sequence" : "SpecialToken";
  const json* contents = part.Raw(kind, /*required=*/true);
  ETC_RETURN_IF_ERROR(part.status());
  JsonObjectReader token(*contents, part.Where(kind));
  std::string name;
  token.Required("id", &name);
  ETC_RETURN_IF_ERROR(token.status());
  if (part.Has("Sequence")) {
    result.text = std::move(name);
    return result;
  }
  ETC_ASSIGN_OR_RETURN(result.id, IdOfSpecial(reader, name, vocabulary));
  return result;
}

absl::StatusOr<std::vector<TemplatePart>> ReadTemplateParts(
    JsonObjectReader* reader, const char* field, const Vocabulary& vocabulary) {
  const json* list = reader->Raw(field, /*required=*/true);
  ETC_RETURN_IF_ERROR(reader->status());
  if (!list->is_array()) {
    return InvalidArgument(reader->Where(field), " should be a list, but is ",
                           list->type_name());
  }
  std::vector<TemplatePart> parts;
  for (size_t i = 0; i < list->size(); ++i) {
    ETC_ASSIGN_OR_RETURN(
        TemplatePart part,
        ReadTemplatePart(reader, (*list)[i],
                         absl::StrCat(reader->Where(field), "[", i, "]"),
                         vocabulary));
    parts.push_back(std::move(part));
  }
  return parts;
}

bool IsSpecial(const TemplatePart& part) { return part.id >= 0; }

bool HasSpecials(const std::vector<TemplatePart>& parts) {
  return std::any_of(parts.begin(), parts.end(), IsSpecial);
}

// Sets the pieces of `marks` around a text, if there are any.
absl::Status ReadSingleTemplate(JsonObjectReader* reader,
                                const Vocabulary& vocabulary,
                                TextMarkIds* marks) {
  ETC_ASSIGN_OR_RETURN(const std::vector<TemplatePart> parts,
                       ReadTemplateParts(reader, "single", vocabulary));
  if (!HasSpecials(parts) && parts.size() == 1 && parts[0].text == "A") {
    return absl::OkStatus();
  }
  if (parts.size() != 3 || !IsSpecial(parts[0]) || parts[1].text != "A" ||
      !IsSpecial(parts[2])) {
    return absl::UnimplementedError(absl::StrCat(
        reader->Where("single"),
        " should have one special piece before text A and one behind it, or "
        "none at all, but has not, which is not supported"));
  }
  marks->first = parts[0].id;
  marks->last = parts[2].id;
  return absl::OkStatus();
}

// Sets `between` to the special pieces behind text A and before text B; those
// around both should be those of `marks`.
absl::Status ReadPairTemplate(JsonObjectReader* reader,
                              const Vocabulary& vocabulary,
                              TextMarkIds* marks) {
  ETC_ASSIGN_OR_RETURN(const std::vector<TemplatePart> parts,
                       ReadTemplateParts(reader, "pair", vocabulary));
  if (!HasSpecials(parts)) {
    return absl::OkStatus();
  }
  const size_t size = parts.size();
  if (size < 4 || parts[1].text != "A" || parts[size - 2].text != "B" ||
      !std::all_of(parts.begin() + 2, parts.end() - 2, IsSpecial)) {
    return absl::UnimplementedError(absl::StrCat(
        reader->Where("pair"),
        " should have one special piece, text A, any special pieces, text B "
        "and one special piece, but has not, which is not supported"));
  }
  if (marks->first < 0 || parts.front().id != marks->first ||
      parts.back().id != marks->last) {
    return absl::UnimplementedError(absl::StrCat(
        reader->Where("pair"),
        " should begin and end with the special pieces of ",
        reader->Where("single"), ", but does not, which is not supported"));
  }
  marks->between.emplace();
  std::for_each(parts.begin() + 2, parts.end() - 2,
                [marks](const TemplatePart& part) {
                  marks->between->push_back(part.id);
                });
  return absl::OkStatus();
}

absl::Status ReadTemplate(JsonObjectReader* reader,
                          const Vocabulary& vocabulary, TextMarkIds* marks) {
  ETC_RETURN_IF_ERROR(ReadSingleTemplate(reader, vocabulary, marks));
  return reader->Has("pair") ? ReadPairTemplate(reader, vocabulary, marks)
                             : absl::OkStatus();
}

absl::Status ReadMarks(const json& object, const std::string& where,
                       const Vocabulary& vocabulary, TextMarkIds* marks) {
  JsonObjectReader reader(object, where);
  std::string type;
  reader.Required("type", &type);
  ETC_RETURN_IF_ERROR(reader.status());
  if (type == "ByteLevel") {
    return absl::OkStatus();
  }
  if (type != "Sequence" && marks->first >= 0) {
    return absl::UnimplementedError(absl::StrCat(
        where, " is ", QuotedName(type),
        ", but only one post-processor with special pieces is supported"));
  }
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    ETC_RETURN_IF_ERROR(ReadPiece(&reader, "cls", vocabulary, &marks->first));
    ETC_RETURN_IF_ERROR(ReadPiece(&reader, "sep", vocabulary, &marks->last));
    marks->between.emplace(type == "RobertaProcessing" ? 2 : 1, marks->last);
    return absl::OkStatus();
  }
  if (type == "TemplateProcessing") {
    return ReadTemplate(&reader, vocabulary, marks);
  }
  if (type != "Sequence") {
    return absl::UnimplementedError(
        absl::StrCat(reader.Where("type"), " is ", QuotedName(type),
                     ", a post-processor that is not supported"));
  }
  const json* list = reader.Raw("processors", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader.status());
  if (!list->is_array()) {
    return InvalidArgument(reader.Where("processors"), " should be a list");
  }
  for (size_t i = 0; i < list->size(); ++i) {
    ETC_RETURN_IF_ERROR(ReadMarks(
        (*list)[i], absl::StrCat(reader.Where("processors"), "[", i, "]"),
        vocabulary, marks));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TextMarkIds> ReadPostProcessor(const json& object,
                                              const std::string& where,
                                              const Vocabulary& vocabulary) {
  TextMarkIds marks;
  ETC_RETURN_IF_ERROR(ReadMarks(object, where, vocabulary, &marks));
  return marks;
}

}  // namespace etc::huggingface
