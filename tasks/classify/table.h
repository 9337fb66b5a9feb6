#ifndef ETC_TASKS_CLASSIFY_TABLE_H_
#define ETC_TASKS_CLASSIFY_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace etc {

// Comma-separated as in RFC 4180, or separated by another character: fields may
// be in quotes, and then have delimiters, line ends and quotes written twice.
// Tab-separated: without quotes.
enum class TableFormat { kCsv, kTsv };

// True of a character that may stand between the fields of a CSV file.
bool IsDelimiter(char character);

// The rows of a table in UTF-8 whose first line names its columns. Lines end
// with LF or CR LF; a byte order mark at the beginning, the line "sep=;" by
// which spreadsheets are told the delimiter, empty lines at the end, and of
// several columns any empty lines, and rows of empty fields at the end, are no
// part of it.
class TableReader {
 public:
  // Reads the header. `text` must outlive the reader; `path` starts each
  // message; `delimiter` is that of a CSV file, absent: as its line "sep=;"
  // says, or a comma.
  //   kInvalidArgument  NUL, what is not UTF-8, by its line; no text; a column
  //                     that is there twice; lines that end with CR alone
  static absl::StatusOr<TableReader> Open(absl::string_view text,
                                          TableFormat format,
                                          const std::string& path,
                                          std::optional<char> delimiter = {});

  const std::vector<std::string>& columns() const { return columns_; }
  // The index of a column, or nothing.
  std::optional<size_t> Find(absl::string_view column) const;
  // Returns the error that a column is missing, with the names of those that
  // exist.
  absl::Status MissingColumn(absl::string_view column) const;

  // The fields of the next row, as many as there are columns; nothing at the
  // end.
  //   kInvalidArgument  another number of fields, or quotes out of place, by
  //                     the line; a quote that is never closed, by the line
  //                     where it opens
  absl::StatusOr<std::optional<std::vector<std::string>>> Next();
  // Position of that row: "dev.csv:17".
  std::string Where() const { return WhereLine(row_line_); }

 private:
  TableReader(absl::string_view text, TableFormat format, std::string path,
              char delimiter);

  std::string WhereLine(int64_t line) const;
  absl::Status Mistake(int64_t line, absl::string_view message) const;
  absl::Status ReadHeader();
  // Returns advice to append to an error in the header if another character
  // seems to separate its columns; else empty.
  std::string DelimiterAdvice() const;
  bool AtEnd() const { return position_ >= text_.size(); }
  // Returns true if a line ends here; then it is taken.
  bool TakeLineEnd();
  absl::StatusOr<std::vector<std::string>> TakeRow();
  // Returns true if there are no more rows but those of empty fields; then they
  // are taken.
  absl::StatusOr<bool> TakeEmptyRest();
  std::vector<std::string> TakeTsvRow();
  absl::StatusOr<std::vector<std::string>> TakeCsvRow();
  // Field number `field`, from 1 on.
  absl::StatusOr<std::string> TakeQuotedField(size_t field);
  absl::StatusOr<std::string> TakePlainField(size_t field);

  absl::string_view text_;
  TableFormat format_;
  std::string path_;
  char delimiter_;
  std::vector<std::string> columns_;
  size_t position_ = 0;
  // The end of a row that is not empty, as TakeEmptyRest saw it.
  size_t filled_end_ = 0;
  // Counted from 1.
  int64_t line_ = 1;
  int64_t row_line_ = 1;
};

}  // namespace etc

#endif  // ETC_TASKS_CLASSIFY_TABLE_H_
