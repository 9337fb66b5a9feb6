#include "tasks/glue/official_files.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/counted.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "tasks/data/text_file.h"

namespace etc {
namespace {

using Cells = std::vector<absl::string_view>;

// Rows of the first release of QNLI (doc/glue.md 1).
constexpr int64_t kFirstQnliTrain = 108'436;
constexpr int64_t kFirstQnliDev = 5'732;
constexpr int64_t kFirstQnliTest = 5'740;

bool IsNumber(absl::string_view text) {
  return !text.empty() && text.size() <= 18 &&
         std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// Returns the one of MNLI's data sets that a file has.
std::string SetOf(const std::string& path, const GlueTask& task) {
  const std::string name = std::filesystem::path(path).filename().string();
  if (task.name != absl::string_view("mnli")) {
    return "";
  }
  return absl::StrContains(name, "mismatched") ? "mismatched"
         : absl::StrContains(name, "matched")  ? "matched"
                                               : "";
}

bool HasNoLetters(absl::string_view text) {
  return std::none_of(text.begin(), text.end(), absl::ascii_isalpha);
}

// The column of that name, or -1.
int64_t FindColumn(const Cells& header, absl::string_view name) {
  const auto found = std::find(header.begin(), header.end(), name);
  return found == header.end() || name.empty() ? -1 : found - header.begin();
}

bool HasCount(const GlueColumns& columns, size_t cells) {
  const auto count = static_cast<int64_t>(cells);
  return count > 0 && (count == columns.count || count == columns.other_count);
}

// The columns of files like this one by place; its label is that of a file with
// labels. Null: the number of columns is that of no such file.
const GlueColumns* ColumnsByPlace(const GlueTask& task, const Cells& header) {
  const bool may_be_labelled = HasCount(task.labelled, header.size());
  const bool may_be_test = HasCount(task.test, header.size());
  if (may_be_labelled && may_be_test) {  // MRPC, SST-2
    return header[0] == "index" ? &task.test : &task.labelled;
  }
  return may_be_labelled ? &task.labelled : may_be_test ? &task.test : nullptr;
}

// Reads one file.
class GlueFileReader {
 public:
  GlueFileReader(std::unique_ptr<TextFile> file, const GlueTask& task)
      : file_(std::move(file)), task_(task), set_(SetOf(file_->path(), task)) {}

  absl::StatusOr<std::vector<FileRecord>> Read() && {
    while (true) {
      ETC_ASSIGN_OR_RETURN(const bool is_line, NextLine());
      if (!is_line) {
        break;
      }
      if (num_columns_ > 0) {
        ETC_RETURN_IF_ERROR(AddRow());
      } else {
        ETC_RETURN_IF_ERROR(ReadFirstLine());
      }
    }
    if (num_columns_ == 0) {
      return InvalidArgument(file_->path(), " should be a file of ",
                             task_.title, ", but is empty");
    }
    ETC_RETURN_IF_ERROR(CheckRelease());
    return std::move(records_);
  }

 private:
  std::string Where() const {
    return absl::StrCat(file_->path(), ":", file_->line_number());
  }

  // Sets `line_` and `cells_`. False at the end, which empty lines may precede.
  absl::StatusOr<bool> NextLine() {
    int64_t empty = 0;
    while (true) {
      ETC_ASSIGN_OR_RETURN(const bool is_line, file_->NextLine(&line_));
      if (!is_line) {
        return false;
      }
      if (!line_.empty()) {
        break;
      }
      empty = empty == 0 ? file_->line_number() : empty;
    }
    // Between QQP's rows an empty line is the rest of a broken one.
    if (empty > 0 && !SkipsBrokenRows()) {
      return InvalidArgument(file_->path(), ":", empty,
                             " should be a row, but is empty");
    }
    if (absl::StrContains(line_, '\0')) {
      return InvalidArgument(Where(),
                             " should be text in UTF-8, but has a NUL byte");
    }
    if (!IsUtf8(line_)) {
      return InvalidArgument(Where(), " should be UTF-8, but is not");
    }
    cells_ = absl::StrSplit(line_, '\t');
    return true;
  }

  bool SkipsBrokenRows() const {
    return task_.name == absl::string_view("qqp");
  }

  absl::Status ReadFirstLine() {
    if (absl::StrContains(line_, '\r')) {
      return InvalidArgument(
          Where(), " ends with a carriage return alone, as old Macintosh ",
          "programs write it; line ends should be LF or CR LF (`tr '\\r' ",
          "'\\n'` makes them)");
    }
    const GlueColumns* place = ColumnsByPlace(task_, cells_);
    columns_.text_a = FindColumn(cells_, task_.text_a);
    columns_.text_b = FindColumn(cells_, task_.text_b);
    columns_.label = FindColumn(cells_, task_.label);
    if (columns_.label < 0) {
      columns_.label = FindColumn(cells_, "label");
    }
    const bool has_names = columns_.text_a >= 0 || columns_.text_b >= 0;
    if (place == nullptr && !has_names) {
      return NoHeader(Counted(static_cast<int64_t>(cells_.size()), "column"));
    }
    // CoLA's files with labels have no header; a label that is none, as in data
    // to predict for, is no name of a column.
    const bool is_cola =
        task_.name == absl::string_view("cola") && place == &task_.labelled;
    const bool is_row =
        !has_names && place != nullptr &&
        (LooksLikeRow(*place) || (is_cola && HasNoLetters(Cell(place->label))));
    if (place != nullptr) {
      UsePlaces(*place);
    }
    if (columns_.text_a < 0 || (*task_.text_b != '\0' && columns_.text_b < 0)) {
      return NoHeader(absl::StrCat(
          "the columns ",
          JoinedNames(std::vector<std::string>(cells_.begin(), cells_.end()))));
    }
    num_columns_ = cells_.size();
    const bool is_qqp_test = SkipsBrokenRows() && columns_.label < 0;
    index_ = FindColumn(cells_, is_qqp_test ? "id" : "index");
    if (!is_row) {
      return absl::OkStatus();
    }
    return is_cola ? AddRow() : NoHeader("a row");
  }

  // Returns true if a line with the columns of `place` is no header.
  bool LooksLikeRow(const GlueColumns& place) const {
    const int64_t label = place.label == kLastColumn
                              ? static_cast<int64_t>(cells_.size()) - 1
                              : place.label;
    return label < 0 ? IsNumber(cells_[0])
                     : IsGlueLabel(task_, cells_[static_cast<size_t>(label)]);
  }

  // The columns that the header does not name.
  void UsePlaces(const GlueColumns& place) {
    if (columns_.text_a < 0) {
      columns_.text_a = place.text_a;
    }
    if (columns_.text_b < 0) {
      columns_.text_b = place.text_b;
    }
    if (columns_.label < 0) {
      columns_.label = place.label == kLastColumn
                           ? static_cast<int64_t>(cells_.size()) - 1
                           : place.label;
    }
  }

  absl::Status NoHeader(absl::string_view what) const {
    return InvalidArgument(
        Where(), " should be the header of a file of ", task_.title,
        ", with the columns ",
        absl::StrJoin(
            task_.text_b[0] == '\0'
                ? std::vector<std::string>{task_.text_a}
                : std::vector<std::string>{task_.text_a, task_.text_b},
            ", "),
        " and, unless it is a test file, ", task_.label, ", but has ", what);
  }

  absl::string_view Cell(int64_t column) const {
    return cells_[static_cast<size_t>(column)];
  }

  absl::Status AddRow() {
    if (cells_.size() != num_columns_) {
      const std::string message =
          absl::StrCat(Where(), " should have ",
                       Counted(static_cast<int64_t>(num_columns_), "column"),
                       ", as the first line has, but has ", cells_.size());
      if (!SkipsBrokenRows()) {
        return InvalidArgument(message);
      }
      records_.push_back({.json = "", .where = Where(), .broken = message});
      return absl::OkStatus();
    }
    nlohmann::json record = {{"task", task_.name},
                             {"id", absl::StrCat(num_rows_)},
                             {"text", Cell(columns_.text_a)}};
    if (index_ >= 0) {
      if (!IsNumber(Cell(index_))) {
        return InvalidArgument(Where(), " should begin with the number of the ",
                               "row, but its ", index_name(), " is ",
                               QuotedName(Cell(index_)));
      }
      record["id"] = Cell(index_);
    }
    if (columns_.text_b >= 0) {
      record["text_b"] = Cell(columns_.text_b);
    }
    if (columns_.label >= 0) {
      record["label"] = Cell(columns_.label);
    }
    if (!set_.empty()) {
      record["set"] = set_;
    }
    ++num_rows_;
    records_.push_back({.json = JsonText(record), .where = Where()});
    return absl::OkStatus();
  }

  const char* index_name() const { return SkipsBrokenRows() ? "id" : "index"; }

  absl::Status CheckRelease() const {
    const bool is_first = columns_.label >= 0 ? num_rows_ == kFirstQnliTrain ||
                                                    num_rows_ == kFirstQnliDev
                                              : num_rows_ == kFirstQnliTest;
    if (task_.name != absl::string_view("qnli") || !is_first) {
      return absl::OkStatus();
    }
    return InvalidArgument(
        file_->path(), " has ", num_rows_,
        " rows, as in the first release of QNLI, whose rows are others than "
        "those that are scored today: get QNLI version 2 (QNLIv2.zip), which "
        "has 104743 rows for training, 5463 for dev and 5463 for test");
  }

  const std::unique_ptr<TextFile> file_;
  const GlueTask& task_;
  const std::string set_;
  absl::string_view line_;
  Cells cells_;
  // Columns of the first line; 0: there was none yet.
  size_t num_columns_ = 0;
  GlueColumns columns_;
  int64_t index_ = -1;  // the column with the ids; -1: none
  int64_t num_rows_ = 0;
  std::vector<FileRecord> records_;
};

}  // namespace

absl::StatusOr<std::vector<FileRecord>> ReadGlueFile(
    const std::string& path, const GlueTask& task, const RecordLimits& limits) {
  ETC_ASSIGN_OR_RETURN(std::unique_ptr<TextFile> file,
                       TextFile::Open(path, limits));
  return GlueFileReader(std::move(file), task).Read();
}

}  // namespace etc
