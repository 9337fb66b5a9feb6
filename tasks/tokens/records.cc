// Files and JSON to records.

#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/counted.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "tasks/data/id_places.h"
#include "tasks/task/official_json.h"
#include "tasks/text/unicode.h"
#include "tasks/tokens/conll.h"
#include "tasks/tokens/task.h"
#include "tasks/tokens/words.h"

namespace etc {
namespace {

using nlohmann::json;

// Number of a document in a CoNLL file. No file has such a field.
constexpr char kDocumentField[] = "\ndocument";

absl::StatusOr<std::vector<FileRecord>> RecordsOfConll(
    const std::string& path, const TokensOptions& options,
    const RecordLimits& limits) {
  ETC_ASSIGN_OR_RETURN(std::vector<ConllDocument> documents,
                       ReadConllFile(path, options, limits));
  std::vector<FileRecord> records;
  records.reserve(documents.size());
  for (ConllDocument& document : documents) {
    json record = {{kConllLinesField, document.lines},
                   {"sentences", std::move(document.sentences)}};
    if (!document.tags.empty()) {
      record["tags"] = std::move(document.tags);
    }
    if (options.document_column != 0) {
      record["id"] = document.id;
    } else {
      record[kDocumentField] = absl::StrCat(records.size());
    }
    records.push_back(
        {.json = JsonText(record),
         .where = absl::StrCat(path, ":", document.lines.front())});
  }
  return records;
}

// A list of sentences, each a list of strings; `what` is what those are called.
void ReadSentences(JsonObjectReader& reader, const std::string& field,
                   const char* what,
                   std::vector<std::vector<std::string>>* sentences) {
  const json* value = reader.Raw(field, /*required=*/true);
  const auto fail = [&] {
    reader.Fail(field, absl::StrCat("should be a list of sentences, each a "
                                    "list of ",
                                    what));
  };
  if (value == nullptr) {
    return;
  }
  if (!value->is_array()) {
    return fail();
  }
  for (const json& sentence : *value) {
    if (!sentence.is_array()) {
      return fail();
    }
    std::vector<std::string>& words = sentences->emplace_back();
    for (const json& word : sentence) {
      if (!word.is_string()) {
        return fail();
      }
      words.push_back(word.get<std::string>());
    }
  }
}

// The name of word `word` of sentence `sentence`, whose first one is word
// `first` of the document, in messages: its line, or its place in the field
// "tags".
std::string NameOfTag(const JsonObjectReader& reader,
                      absl::Span<const int64_t> lines, size_t first,
                      size_t sentence, size_t word) {
  if (first + word >= lines.size()) {
    return absl::StrCat(reader.Where("tags"), "[", sentence, "][", word, "]");
  }
  return absl::StrCat(FileOfPlace(reader.where()), ":", lines[first + word],
                      ": the label");
}

// Checks the tags of one sentence; `name` gives the name of each.
template <typename Name>
absl::Status CheckTags(const std::vector<std::string>& tags, TagReading reading,
                       Name name) {
  std::string previous = "O";
  for (size_t i = 0; i < tags.size(); ++i) {
    const std::string mistake = TagMistake(previous, tags[i], reading);
    if (!mistake.empty()) {
      return InvalidArgument(name(i), mistake);
    }
    previous = tags[i];
  }
  return absl::OkStatus();
}

// The spans of the tags in the text of the words.
absl::StatusOr<std::vector<TokensSpan>> SpansOfSentences(
    const JsonObjectReader& reader, const TokensOptions& options,
    absl::Span<const int64_t> lines,
    const std::vector<std::vector<std::string>>& sentences,
    const std::vector<std::vector<std::string>>& tags) {
  if (sentences.size() != tags.size()) {
    return InvalidArgument(reader.Where("tags"), " should have ",
                           sentences.size(),
                           " lists, one for each sentence, "
                           "but has ",
                           tags.size());
  }
  const TokensLayout layout = LayOutWords(sentences);
  const std::vector<int64_t> bytes = BytesOfCodePoints(layout.text);
  std::vector<TokensSpan> spans;
  size_t first = 0;
  for (size_t s = 0; s < sentences.size(); ++s) {
    if (sentences[s].size() != tags[s].size()) {
      return InvalidArgument(
          reader.Where("tags"), "[", s, "] should have ",
          Counted(static_cast<int64_t>(sentences[s].size()), "label"),
          ", one for each word, but has ", tags[s].size());
    }
    const auto name = [&](size_t i) {
      return NameOfTag(reader, lines, first, s, i);
    };
    ETC_RETURN_IF_ERROR(CheckTags(tags[s], options.tags, name));
    for (const TagSpan& span : SpansOfTags(tags[s], options.tags)) {
      // The label of a tag outside of spans is none, whatever it is.
      ETC_RETURN_IF_ERROR(CheckTokensLabel(
          span.label, options.labels, name(static_cast<size_t>(span.first))));
      const auto word = [&](int64_t i) {
        return layout.words[first + static_cast<size_t>(i)];
      };
      spans.push_back({.label = span.label,
                       .start = CodePointAt(word(span.first).begin, bytes),
                       .end = CodePointAt(word(span.last).end, bytes)});
    }
    first += sentences[s].size();
  }
  return spans;
}

// Checks words before offsets are made of them.
void CheckWords(JsonObjectReader& reader,
                const std::vector<std::vector<std::string>>& sentences) {
  if (absl::c_all_of(sentences,
                     [](const auto& words) { return words.empty(); })) {
    reader.Fail("sentences", "should have a word, but has none");
  }
  for (size_t s = 0; s < sentences.size(); ++s) {
    for (size_t i = 0; i < sentences[s].size(); ++i) {
      if (absl::StripAsciiWhitespace(sentences[s][i]).empty()) {
        reader.Fail(absl::StrCat("sentences[", s, "][", i, "]"),
                    "should be a word, but is empty");
      }
    }
  }
}

void ReadSplitText(JsonObjectReader& reader, const TokensOptions& options,
                   TokensRecord* record) {
  if (reader.Given("text") != nullptr) {
    reader.Fail("text",
                "should not stand beside sentences, whose words are the text");
  }
  ReadSentences(reader, "sentences", "words", &record->sentences);
  CheckWords(reader, record->sentences);
  std::vector<int64_t> lines;
  reader.Optional(kConllLinesField, &lines);
  if (reader.Given("tags") == nullptr) {
    return;
  }
  std::vector<std::vector<std::string>> of_words;
  ReadSentences(reader, "tags", "labels", &of_words);
  if (!reader.ok()) {
    return;
  }
  std::vector<TokensSpan> spans;
  reader.Assign(
      SpansOfSentences(reader, options, lines, record->sentences, of_words),
      &spans);
  record->spans = std::move(spans);
}

// The byte of each UTF-16 unit of a text, and behind the last one its size.
std::vector<int64_t> BytesOfUtf16Units(absl::string_view text) {
  std::vector<int64_t> bytes;
  const auto size = static_cast<int64_t>(text.size());
  for (int64_t at = 0; at < size;) {
    const int64_t begin = at;
    const bool has_two = NextCodePoint(text, &at) > 0xFFFF;
    bytes.insert(bytes.end(), size_t{has_two ? 2U : 1U}, begin);
  }
  bytes.push_back(size);
  return bytes;
}

// The part of a text from unit `span.start` to `span.end`, given the byte of
// each unit; nothing where there is none.
std::optional<absl::string_view> PartOfText(absl::string_view text,
                                            const TokensSpan& span,
                                            absl::Span<const int64_t> bytes) {
  if (span.start < 0 || span.end < span.start ||
      span.end >= static_cast<int64_t>(bytes.size())) {
    return std::nullopt;
  }
  const int64_t begin = bytes[static_cast<size_t>(span.start)];
  const int64_t end = bytes[static_cast<size_t>(span.end)];
  return text.substr(static_cast<size_t>(begin),
                     static_cast<size_t>(end - begin));
}

// The end of a message about a span that `part` is not at.
std::string HintOfUnits(absl::string_view text, const TokensSpan& span,
                        absl::string_view part) {
  std::vector<int64_t> bytes(text.size() + 1);
  absl::c_iota(bytes, int64_t{0});
  constexpr char kHint[] = "; start and end should count code points";
  return absl::StrCat(
      kHint, PartOfText(text, span, bytes) == part ? ", but count bytes"
             : PartOfText(text, span, BytesOfUtf16Units(text)) == part
                 ? ", but count UTF-16 units"
                 : "");
}

// The field "text" of a span; null where it has none.
const std::string* TextOfSpan(const json& span) {
  const auto found = span.find("text");
  return found == span.end() ? nullptr : found->get_ptr<const std::string*>();
}

// Compares the field "text" of spans, where they have it, with their parts of
// the record's text. Spans outside of it are CheckRecord's.
void CompareSpanTexts(JsonObjectReader& reader, const TokensRecord& record,
                      const std::vector<TokensSpan>& spans) {
  const json& given = *reader.Given("spans");
  if (absl::c_none_of(given, TextOfSpan)) {
    return;  // most data have none: nothing to lay out
  }
  const std::string text = record.sentences.empty()
                               ? record.text
                               : LayOutWords(record.sentences).text;
  const std::vector<int64_t> bytes = BytesOfCodePoints(text);
  for (size_t i = 0; i < spans.size(); ++i) {
    const TokensSpan& span = spans[i];
    const std::string* const expected = TextOfSpan(given[i]);
    const auto part = PartOfText(text, span, bytes);
    if (expected != nullptr && part.has_value() && *part != *expected) {
      reader.Fail(
          absl::StrCat("spans[", i, "].text"),
          absl::StrCat("is ", QuotedName(*expected), ", but characters ",
                       span.start, " to ", span.end, " are ", QuotedName(*part),
                       HintOfUnits(text, span, *expected)));
      return;  // the reader keeps the first mistake
    }
  }
}

// Reads the spans, which may stand beside tags if they are the same: lines of
// predictions have both.
void ReadSpansOrCompare(JsonObjectReader& reader, TokensRecord* record) {
  std::optional<std::vector<TokensSpan>> spans;
  ReadTokensSpans(reader, &spans);
  if (reader.ok() && spans.has_value()) {
    CompareSpanTexts(reader, *record, *spans);
  }
  if (!record->spans.has_value()) {
    record->spans = std::move(spans);
    return;
  }
  if (spans.has_value()) {
    absl::c_stable_sort(*spans, [](const TokensSpan& a, const TokensSpan& b) {
      return a.start < b.start;
    });
    if (spans != record->spans) {
      reader.Fail("spans", "should be those of tags, or not stand beside them");
    }
  }
}

void ReadIdOfTokens(JsonObjectReader& reader, TokensRecord* record) {
  record->id = NumberOfPlace(reader.where());
  reader.Optional(kDocumentField, &record->id);
  record->has_id = reader.Has("id");
  reader.NameOrNumber("id", &record->id);
}

}  // namespace

void ReadTokensSpans(JsonObjectReader& reader,
                     std::optional<std::vector<TokensSpan>>* spans) {
  const json* value = reader.Raw("spans", /*required=*/false);
  if (value == nullptr || value->is_null()) {
    return;
  }
  std::vector<TokensSpan> read;
  reader.Assign(ReadList<TokensSpan>(
                    *value, reader.Where("spans"), "objects",
                    [](const json& element, const std::string& where) {
                      return ReadObject<TokensSpan>(
                          element, where,
                          [](JsonObjectReader& fields, TokensSpan* span) {
                            fields.Required("start", &span->start);
                            fields.Required("end", &span->end);
                            fields.Required("label", &span->label);
                          });
                    }),
                &read);
  *spans = std::move(read);
}

absl::Status CheckTokensLabel(absl::string_view label,
                              const std::vector<std::string>& labels,
                              const std::string& where) {
  if (labels.empty() || absl::c_linear_search(labels, label)) {
    return absl::OkStatus();
  }
  return InvalidArgument(where, " should be one of ", JoinedNames(labels),
                         ", but is ", QuotedName(label));
}

absl::StatusOr<std::vector<FileRecord>> Tokens::ReadFile(
    const std::string& path, const RecordLimits& limits) const {
  absl::string_view name = path;
  absl::ConsumeSuffix(&name, ".gz");
  TokensFormat format = options().format;
  if (format == TokensFormat::kByName) {
    if (IsConllName(path)) {
      format = TokensFormat::kConll;
    } else if (absl::EndsWithIgnoreCase(name, ".json") ||
               absl::EndsWithIgnoreCase(name, ".jsonl")) {
      format = TokensFormat::kJson;
    } else {
      return InvalidArgument(
          path, " should end in ", absl::StrJoin(kConllEndings, ", "),
          ", .jsonl or .json, or in one of them and .gz; or tokens.format "
          "should say what it is");
    }
  }
  return format == TokensFormat::kJson
             ? ReadJsonRecords(path, limits)
             : RecordsOfConll(path, options(), limits);
}

void Tokens::ReadRecord(JsonObjectReader& reader, Record* record) const {
  ReadIdOfTokens(reader, record);
  if (reader.Given("sentences") != nullptr) {
    ReadSplitText(reader, options(), record);
  } else {
    reader.Required("text", &record->text);
    if (reader.Given("tags") != nullptr) {
      reader.Fail("tags",
                  "should stand beside sentences, whose words have tags, but "
                  "stands beside text");
    }
  }
  ReadSpansOrCompare(reader, record);
}

}  // namespace etc
