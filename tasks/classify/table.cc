#include "tasks/classify/table.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/counted.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "tasks/data/text_file.h"

namespace etc {
namespace {

constexpr absl::string_view kLonelyCarriageReturn =
    "the line ends with a carriage return alone, as old Macintosh programs "
    "write it; line ends should be LF or CR LF (`tr '\\r' '\\n'` makes them)";

int64_t LinesBefore(absl::string_view text, size_t position) {
  return std::count(text.begin(),
                    text.begin() + static_cast<ptrdiff_t>(position), '\n');
}

// The position of the first line that is not UTF-8.
size_t FirstLineThatIsNotUtf8(absl::string_view text) {
  size_t begin = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!IsUtf8(line)) {
      return begin;
    }
    begin += line.size() + 1;
  }
  return begin;
}

bool AreEmpty(const std::vector<std::string>& fields) {
  return absl::c_all_of(fields,
                        [](const std::string& field) { return field.empty(); });
}

// Removes a first line "sep=;" and returns the delimiter that it names.
std::optional<char> ConsumeSeparatorLine(absl::string_view* text) {
  absl::string_view rest = *text;
  if (!absl::ConsumePrefix(&rest, "sep=") || rest.empty() ||
      !IsDelimiter(rest.front())) {
    return std::nullopt;
  }
  const char separator = rest.front();
  rest.remove_prefix(1);
  absl::ConsumePrefix(&rest, "\r");
  if (!absl::ConsumePrefix(&rest, "\n")) {
    return std::nullopt;
  }
  *text = rest;
  return separator;
}

}  // namespace

bool IsDelimiter(char character) {
  constexpr absl::string_view kOthers = "\"\r\n";
  return absl::ascii_isascii(static_cast<unsigned char>(character)) &&
         !absl::ascii_isalnum(static_cast<unsigned char>(character)) &&
         !absl::StrContains(kOthers, character);
}

TableReader::TableReader(absl::string_view text, TableFormat format,
                         std::string path, char delimiter)
    : text_(text),
      format_(format),
      path_(std::move(path)),
      delimiter_(format == TableFormat::kTsv ? '\t' : delimiter) {}

absl::StatusOr<TableReader> TableReader::Open(absl::string_view text,
                                              TableFormat format,
                                              const std::string& path,
                                              std::optional<char> delimiter) {
  ETC_RETURN_IF_ERROR(CheckTextStart(text, path));
  absl::ConsumePrefix(&text, kByteOrderMark);
  TableReader reader(text, format, path, delimiter.value_or(','));
  if (const size_t nul = text.find('\0'); nul != absl::string_view::npos) {
    return reader.Mistake(1 + LinesBefore(text, nul),
                          "there should be no NUL bytes");
  }
  if (!IsUtf8(text)) {
    return reader.Mistake(1 + LinesBefore(text, FirstLineThatIsNotUtf8(text)),
                          absl::StrCat("the line", kLineIsNotUtf8));
  }
  if (const std::optional<char> named = ConsumeSeparatorLine(&text)) {
    if (format == TableFormat::kCsv && !delimiter.has_value()) {
      reader.delimiter_ = *named;
    }
    ++reader.line_;
  }
  const size_t last = text.find_last_not_of("\r\n");
  reader.text_ = text.substr(0, last == absl::string_view::npos ? 0 : last + 1);
  ETC_RETURN_IF_ERROR(reader.ReadHeader());
  return reader;
}

absl::Status TableReader::ReadHeader() {
  const int64_t line = line_;
  if (text_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path_, " is empty, but its first line should name its columns"));
  }
  // Within quotes it would be part of a name that nobody means.
  if (const size_t end = text_.find('\r');
      end != absl::string_view::npos && end + 1 < text_.size() &&
      text_[end + 1] != '\n' && end < text_.find('\n')) {
    return Mistake(line, kLonelyCarriageReturn);
  }
  absl::StatusOr<std::vector<std::string>> columns = TakeRow();
  if (!columns.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(columns.status().message(), DelimiterAdvice()));
  }
  columns_ = *std::move(columns);
  std::set<absl::string_view> names;
  for (const std::string& column : columns_) {
    // Programs name an index "", or leave empty columns behind.
    if (!column.empty() && !names.insert(column).second) {
      return Mistake(line, absl::StrCat("the column ", QuotedName(column),
                                        " is there twice"));
    }
  }
  return absl::OkStatus();
}

std::optional<size_t> TableReader::Find(absl::string_view column) const {
  const auto found = std::find(columns_.begin(), columns_.end(), column);
  return found == columns_.end()
             ? std::nullopt
             : std::optional(static_cast<size_t>(found - columns_.begin()));
}

absl::Status TableReader::MissingColumn(absl::string_view column) const {
  return absl::InvalidArgumentError(absl::StrCat(
      path_, " has no column ", QuotedName(column), "; its columns are ",
      JoinedNames(columns_), DelimiterAdvice()));
}

std::string TableReader::DelimiterAdvice() const {
  const absl::string_view header =
      text_.substr(0, std::min(text_.find('\n'), text_.size()));
  if (absl::StrContains(header, delimiter_)) {
    return "";
  }
  for (const auto& [other, name, json] :
       {std::tuple(';', "semicolons", ";"), std::tuple('\t', "tabs", "\\t"),
        std::tuple(',', "commas", ","), std::tuple('|', "bars", "|")}) {
    if (!absl::StrContains(header, other)) {
      continue;
    }
    return format_ == TableFormat::kTsv
               ? absl::StrCat("; ", name, " seem to separate them: classify.",
                              "format \"csv\" with classify.delimiter \"", json,
                              "\" reads that")
               : absl::StrCat("; ", name, " seem to separate them: ",
                              "classify.delimiter \"", json, "\" reads that");
  }
  return "";
}

absl::StatusOr<std::optional<std::vector<std::string>>> TableReader::Next() {
  // In a table of one column an empty line is an empty field.
  const bool skips_empty = columns_.size() > 1;
  while (skips_empty && TakeLineEnd()) {
  }
  if (AtEnd()) {
    return std::optional<std::vector<std::string>>();
  }
  row_line_ = line_;
  ETC_ASSIGN_OR_RETURN(std::vector<std::string> fields, TakeRow());
  // Spreadsheets write rows of delimiters alone below a table. Between others
  // one is a row, lest the numbers of all behind it change.
  if (skips_empty && position_ > filled_end_ && AreEmpty(fields)) {
    ETC_ASSIGN_OR_RETURN(const bool is_below, TakeEmptyRest());
    if (is_below) {
      return std::optional<std::vector<std::string>>();
    }
  }
  if (fields.size() != columns_.size()) {
    return Mistake(
        row_line_,
        absl::StrCat("the row has ",
                     Counted(static_cast<int64_t>(fields.size()), "field"),
                     ", but the header names ",
                     Counted(static_cast<int64_t>(columns_.size()), "column"),
                     ": ", JoinedNames(columns_)));
  }
  return std::optional(std::move(fields));
}

absl::StatusOr<bool> TableReader::TakeEmptyRest() {
  const size_t position = position_;
  const int64_t line = line_;
  while (!AtEnd()) {
    ETC_ASSIGN_OR_RETURN(const std::vector<std::string> fields, TakeRow());
    if (!AreEmpty(fields)) {
      filled_end_ = std::exchange(position_, position);
      line_ = line;
      return false;
    }
  }
  return true;
}

std::string TableReader::WhereLine(int64_t line) const {
  return absl::StrCat(path_, ":", line);
}

absl::Status TableReader::Mistake(int64_t line,
                                  absl::string_view message) const {
  return absl::InvalidArgumentError(
      absl::StrCat(WhereLine(line), ": ", message));
}

bool TableReader::TakeLineEnd() {
  absl::string_view rest = text_.substr(position_);
  if (!absl::ConsumePrefix(&rest, "\r\n") &&
      !absl::ConsumePrefix(&rest, "\n")) {
    return false;
  }
  position_ = text_.size() - rest.size();
  ++line_;
  return true;
}

absl::StatusOr<std::vector<std::string>> TableReader::TakeRow() {
  if (format_ == TableFormat::kTsv) {
    return TakeTsvRow();
  }
  return TakeCsvRow();
}

std::vector<std::string> TableReader::TakeTsvRow() {
  const size_t end = std::min(text_.find('\n', position_), text_.size());
  absl::string_view line = text_.substr(position_, end - position_);
  absl::ConsumeSuffix(&line, "\r");
  position_ = std::min(end + 1, text_.size());
  ++line_;
  return absl::StrSplit(line, '\t');
}

absl::StatusOr<std::vector<std::string>> TableReader::TakeCsvRow() {
  std::vector<std::string> fields;
  fields.reserve(columns_.size());
  while (true) {
    const bool is_quoted = !AtEnd() && text_[position_] == '"';
    const size_t number = fields.size() + 1;
    ETC_ASSIGN_OR_RETURN(fields.emplace_back(), is_quoted
                                                    ? TakeQuotedField(number)
                                                    : TakePlainField(number));
    if (AtEnd() || TakeLineEnd()) {
      return fields;
    }
    if (text_[position_] != delimiter_) {
      return Mistake(
          line_,
          absl::StrCat(
              "behind the closing quote of field ", number, " should be ",
              delimiter_ == ',' ? "a comma"
                                : QuotedName(std::string(1, delimiter_)),
              " or the end of the line; a quote within quotes is written "
              "twice"));
    }
    ++position_;
  }
}

absl::StatusOr<std::string> TableReader::TakeQuotedField(size_t field) {
  const int64_t first_line = line_;
  std::string value;
  ++position_;
  while (true) {
    const size_t quote = text_.find('"', position_);
    if (quote == absl::string_view::npos) {
      return Mistake(first_line, absl::StrCat("the quote that begins field ",
                                              field, " is never closed"));
    }
    const absl::string_view part = text_.substr(position_, quote - position_);
    line_ += std::count(part.begin(), part.end(), '\n');
    value.append(part.data(), part.size());
    position_ = quote + 1;
    if (AtEnd() || text_[position_] != '"') {
      return value;
    }
    value += '"';
    ++position_;
  }
}

absl::StatusOr<std::string> TableReader::TakePlainField(size_t field) {
  const size_t end = std::min(
      text_.find_first_of(std::string("\"\r\n") + delimiter_, position_),
      text_.size());
  const absl::string_view value = text_.substr(position_, end - position_);
  position_ = end;
  const absl::string_view next = text_.substr(end, 2);
  if (absl::StartsWith(next, "\"")) {
    return Mistake(line_, absl::StrCat("field ", field,
                                       " has a quote, so it should be in "
                                       "quotes, and that one written twice"));
  }
  if (absl::StartsWith(next, "\r") && next != "\r\n") {
    return Mistake(line_, absl::StrCat("field ", field,
                                       " has a carriage return without a line "
                                       "feed, so it should be in quotes"));
  }
  return std::string(value);
}

}  // namespace etc
