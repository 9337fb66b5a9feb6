#include "tasks/pretrain/corpus/batch_tokenizer.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"
#include "tasks/pretrain/corpus/text_hash.h"
#include "tasks/text/text_folding.h"
#include "tasks/text/unicode.h"

namespace etc {
namespace {

constexpr CodePoint kReplacement = 0xFFFD;

// The paragraphs of `text`, which blank lines separate.
std::vector<absl::string_view> Paragraphs(absl::string_view text) {
  std::vector<absl::string_view> paragraphs;
  size_t begin = 0;
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t line_end = std::min(text.find('\n', at), text.size());
    const bool is_blank = IsBlank(text.substr(at, line_end - at));
    if (is_blank && end > begin) {
      paragraphs.push_back(text.substr(begin, end - begin));
    }
    at = std::min(line_end + 1, text.size());
    begin = is_blank ? at : begin;
    end = is_blank ? at : line_end;
  }
  if (end > begin) {
    paragraphs.push_back(text.substr(begin, end - begin));
  }
  return paragraphs;
}

constexpr size_t kEscape = 6;  // bytes of "\u00e9"

// The code unit of the escape in four hexadecimal digits at the beginning of
// `json`; 0: there is none.
uint32_t EscapedUnit(absl::string_view json) {
  uint32_t unit = 0;
  return json.size() >= kEscape && absl::StartsWith(json, "\\u") &&
                 absl::SimpleHexAtoi(json.substr(2, kEscape - 2), &unit)
             ? unit
             : 0;
}

// `json` with \uFFFD in place of each escape of a surrogate that is no half of
// a pair, and the number of these. Python's json.dumps writes such escapes of
// text that was cut within a character.
ReplacedText ReplaceLoneSurrogates(absl::string_view json) {
  ReplacedText result;
  while (!json.empty()) {
    const size_t plain = std::min(json.find('\\'), json.size());
    absl::StrAppend(&result.text, json.substr(0, plain));
    json.remove_prefix(plain);
    const uint32_t unit = EscapedUnit(json);
    const uint32_t next = unit == 0 ? 0 : EscapedUnit(json.substr(kEscape));
    const bool is_surrogate = unit >= 0xD800 && unit <= 0xDFFF;
    const bool is_pair =
        is_surrogate && unit <= 0xDBFF && next >= 0xDC00 && next <= 0xDFFF;
    const size_t size = is_pair ? 2 * kEscape : unit != 0 ? kEscape : 2;
    const bool is_lone = is_surrogate && !is_pair;
    absl::StrAppend(&result.text, is_lone ? "\\uFFFD" : json.substr(0, size));
    result.replaced += static_cast<int64_t>(is_lone);
    json.remove_prefix(std::min(size, json.size()));
  }
  return result;
}

// The text of `record`, or nullptr.
const std::string* TextField(const nlohmann::json& record,
                             const std::string& field) {
  const auto found = record.is_object() ? record.find(field) : record.end();
  return found != record.end() ? found->get_ptr<const std::string*>() : nullptr;
}

absl::Status NoText(const nlohmann::json& record, const std::string& field,
                    const std::string& where) {
  std::string found = absl::StrCat("is ", record.type_name());
  if (record.is_object() && record.contains(field)) {
    found = absl::StrCat("it is ", record[field].type_name());
  } else if (record.is_object()) {
    constexpr size_t kMostNames = 10;
    std::vector<std::string> names;
    for (const auto& entry : record.items()) {
      if (names.size() < kMostNames) {
        names.push_back(QuotedName(entry.key()));
      }
    }
    found = absl::StrCat("its fields are: ", absl::StrJoin(names, ", "));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": the line should be a JSON object with a string ",
                   "in the field ", QuotedName(field), ", but ", found));
}

// `text` with a blank in place of each run of white space that has a line end:
// words are wrapped there, and byte-level vocabularies would have a piece for
// it.
std::string JoinLines(absl::string_view text) {
  constexpr absl::string_view kSpace = " \t\n\r\v\f";
  constexpr absl::string_view kLineEnds = "\n\r";
  std::string joined;
  while (!text.empty()) {
    const size_t word = std::min(text.find_first_of(kSpace), text.size());
    absl::StrAppend(&joined, text.substr(0, word));
    text.remove_prefix(word);
    const absl::string_view run =
        text.substr(0, std::min(text.find_first_not_of(kSpace), text.size()));
    absl::StrAppend(
        &joined,
        run.find_first_of(kLineEnds) == absl::string_view::npos ? run : " ");
    text.remove_prefix(run.size());
  }
  return joined;
}

// The number of lines in front of that of the first ill-formed sequence.
int64_t LinesBeforeIllFormed(absl::string_view text) {
  int64_t lines = 0;
  for (int64_t at = 0; at < static_cast<int64_t>(text.size());) {
    const CodePoint c = NextCodePoint(text, &at);
    if (c < 0) {
      break;
    }
    lines += c == '\n' ? 1 : 0;
  }
  return lines;
}

}  // namespace

ReplacedText ReplaceIllFormed(absl::string_view text) {
  ReplacedText result;
  for (int64_t at = 0; at < static_cast<int64_t>(text.size());) {
    const CodePoint c = NextCodePoint(text, &at);
    result.replaced += static_cast<int64_t>(c < 0);
    AppendUtf8(c < 0 ? kReplacement : c, &result.text);
  }
  return result;
}

BatchTokenizer::BatchTokenizer(const CorpusTokenizer* tokenizer,
                               const BatchTokenizerOptions* options)
    : tokenizer_(tokenizer),
      options_(options),
      cache_(tokenizer->tokenizer.get()) {}

absl::StatusOr<TokenizedBatch> BatchTokenizer::Tokenize(
    const CorpusBatch& batch) {
  TokenizedBatch result;
  result.text_bytes = batch.text.size();
  result.bytes_read = batch.bytes_read;
  result.path = batch.path;
  for (const CorpusPiece& piece : batch.pieces) {
    const absl::string_view text =
        absl::string_view(batch.text)
            .substr(piece.begin, piece.end - piece.begin);
    const int64_t replaced = result.replaced;
    const absl::Status added =
        text.empty() ? absl::OkStatus()
                     : AddPiece(text, batch.path, piece.line, &result);
    if (!added.ok()) {
      if (options_->bad_lines == BadLines::kError) {
        return added;
      }
      result.replaced = replaced;
      if (++result.bad_lines == 1) {
        result.first_bad_line = std::string(added.message());
      }
    }
    if (piece.ends_document) {
      (result.sentences.empty() ? result.begins_with_end
                                : result.sentences.back().ends_document) = true;
    }
  }
  for (const int32_t id : result.ids) {
    result.continuations.push_back(
        tokenizer_->is_continuation[static_cast<size_t>(id)]);
  }
  return result;
}

absl::Status BatchTokenizer::AddPiece(absl::string_view text,
                                      const std::string& path, int64_t line,
                                      TokenizedBatch* result) {
  ReplacedText replaced;
  if (!IsUtf8(text)) {
    if (options_->invalid_utf8 == InvalidUtf8::kError) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ":", line + LinesBeforeIllFormed(text),
          ": the text should be UTF-8, but has bytes that are not"));
    }
    replaced = ReplaceIllFormed(text);
    result->replaced += replaced.replaced;
    text = replaced.text;
  }
  switch (options_->format) {
    case CorpusFormat::kBert:
      AddSentence(text, /*is_behind_blank=*/false, result);
      return absl::OkStatus();
    case CorpusFormat::kText:
      AddRunningText(text, result);
      return absl::OkStatus();
    case CorpusFormat::kJsonLines:
      return AddJson(text, absl::StrCat(path, ":", line), result);
  }
  return absl::OkStatus();
}

absl::Status BatchTokenizer::AddJson(absl::string_view text,
                                     const std::string& where,
                                     TokenizedBatch* result) {
  ReplacedText replaced;
  if (options_->invalid_utf8 == InvalidUtf8::kReplace &&
      absl::StrContains(text, "\\u")) {
    replaced = ReplaceLoneSurrogates(text);
    result->replaced += replaced.replaced;
    text = replaced.text;
  }
  ETC_ASSIGN_OR_RETURN(const nlohmann::json record, ParseJson(text, where));
  const std::string* const field = TextField(record, options_->field);
  if (field == nullptr) {
    return NoText(record, options_->field, where);
  }
  for (const absl::string_view paragraph : Paragraphs(*field)) {
    AddRunningText(paragraph, result);
  }
  return absl::OkStatus();
}

void BatchTokenizer::AddRunningText(absl::string_view text,
                                    TokenizedBatch* result) {
  for (const ByteRange& sentence : options_->split_sentences(text)) {
    const auto begin = static_cast<size_t>(sentence.begin);
    constexpr absl::string_view kBlanks = " \n\r";
    AddSentence(StripWhiteSpace(text.substr(
                    begin, static_cast<size_t>(sentence.end - sentence.begin))),
                /*is_behind_blank=*/begin > 0 &&
                    kBlanks.find(text[begin - 1]) != absl::string_view::npos,
                result);
  }
}

void BatchTokenizer::AddSentence(absl::string_view text, bool is_behind_blank,
                                 TokenizedBatch* result) {
  const bool begins_with_blank =
      is_behind_blank && tokenizer_->tokenizer->begins_words_with_blanks();
  const bool has_lines = text.find('\n') != absl::string_view::npos ||
                         text.find('\r') != absl::string_view::npos;
  if (begins_with_blank || has_lines) {
    cache_.Encode(absl::StrCat(begins_with_blank ? " " : "", JoinLines(text)),
                  &result->ids);
  } else {
    cache_.Encode(text, &result->ids);
  }
  result->sentences.push_back(
      {.end = result->ids.size(), .text_hash = HashText(text)});
}

}  // namespace etc
