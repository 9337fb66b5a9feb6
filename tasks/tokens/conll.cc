#include "tasks/tokens/conll.h"

#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/counted.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "tasks/data/text_file.h"
#include "tasks/tokens/tags.h"

namespace etc {
namespace {

constexpr char kDocumentStart[] = "-DOCSTART-";
constexpr char kTextsHint[] = "; texts that are not split go into JSON lines";

std::vector<std::string> ColumnsOfLine(absl::string_view line) {
  return absl::StrContains(line, '\t')
             ? absl::StrSplit(line, '\t')
             : std::vector<std::string>(
                   absl::StrSplit(line, ' ', absl::SkipEmpty()));
}

bool EndsIn(absl::string_view path, absl::string_view ending) {
  absl::ConsumeSuffix(&path, ".gz");
  return absl::EndsWithIgnoreCase(path, ending);
}

// Returns true for the id of a range of words ("1-2") or an empty node ("8.1")
// of CoNLL-U.
bool IsIdOfNoWord(absl::string_view id) {
  const std::vector<absl::string_view> numbers =
      absl::StrSplit(id, absl::ByAnyChar("-."));
  return numbers.size() == 2 &&
         absl::c_all_of(numbers, [](absl::string_view number) {
           return !number.empty() &&
                  absl::c_all_of(number, absl::ascii_isdigit);
         });
}

// Returns true if a line begins an object of JSON ("{" and a name, maybe on the
// next line) or a list of them. A bracket that is a word has another column
// behind it.
bool BeginsJson(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  const bool is_list = absl::ConsumePrefix(&line, "[");
  if (!is_list && !absl::ConsumePrefix(&line, "{")) {
    return false;
  }
  line = absl::StripLeadingAsciiWhitespace(line);
  return line.empty() || line.front() == (is_list ? '{' : '"');
}

// Index of a column, given from 1 on or from -1 on; nothing if it is not there.
std::optional<size_t> IndexOfColumn(int64_t column, size_t columns) {
  const auto size = static_cast<int64_t>(columns);
  const int64_t index = column > 0 ? column - 1 : size + column;
  return column != 0 && index >= 0 && index < size
             ? std::optional(static_cast<size_t>(index))
             : std::nullopt;
}

// Returns true for what may stand in the column of labels: CoNLL's "_" is none.
bool IsLabel(absl::string_view text) {
  return text == "_" || LooksLikeTag(text);
}

// Returns true for a line that may be a comment; "#word" is a word.
bool MayBeComment(absl::string_view line) {
  return absl::StartsWith(line, "# ") || absl::StartsWith(line, "#\t");
}

// Collects the documents of a file line by line.
class ConllReader {
 public:
  ConllReader(const std::string& path, const TokensOptions& options)
      : path_(path), options_(options), is_conllu_(EndsIn(path, ".conllu")) {}

  absl::Status Add(absl::string_view line, int64_t number) {
    if (!IsUtf8(line)) {
      return InvalidArgument(path_, ":", number, kLineIsNotUtf8);
    }
    std::vector<std::string> columns = ColumnsOfLine(line);
    if (absl::StripAsciiWhitespace(line).empty()) {
      in_sentence_ = false;
      return absl::OkStatus();
    }
    // A line without that column may be -DOCSTART- alone.
    const std::optional<size_t> word =
        IndexOfColumn(options_.word_column, columns.size());
    if (TakeIfComment(line, columns) ||
        (is_conllu_ && word != size_t{0} && IsIdOfNoWord(columns[0]))) {
      return absl::OkStatus();
    }
    if (columns[word.value_or(0)] == kDocumentStart) {
      has_starts_ = true;
      in_sentence_ = false;
      in_document_ = false;
      return absl::OkStatus();
    }
    if (num_columns_ == 0) {
      begins_with_hash_ = MayBeComment(line);
      ETC_RETURN_IF_ERROR(FindColumns(columns.size(), number));
      ETC_RETURN_IF_ERROR(CheckLabel(columns));
    }
    if (columns.size() != num_columns_) {
      return InvalidArgument(
          path_, ":", number, " should have ",
          Counted(static_cast<int64_t>(num_columns_), "column"), ", as line ",
          first_line_, " has, but has ", columns.size(),
          begins_with_hash_
              ? absl::StrCat("; line ", first_line_,
                             " begins with #: comments ",
                             "are to be removed, or the file named .conllu")
          : num_columns_ == 1 ? kTextsHint
                              : "");
    }
    if (absl::StripAsciiWhitespace(columns[*word_]).empty()) {
      return InvalidArgument(path_, ":", number,
                             " should have a word in column ", *word_ + 1,
                             ", but has none");
    }
    Place(columns);
    documents_.back().lines.push_back(number);
    documents_.back().sentences.back().push_back(std::move(columns[*word_]));
    if (label_.has_value()) {
      documents_.back().tags.back().push_back(std::move(columns[*label_]));
    }
    return absl::OkStatus();
  }

  std::vector<ConllDocument> Result() && {
    if (has_starts_ || document_.has_value()) {
      return std::move(documents_);
    }
    std::vector<ConllDocument> sentences;
    for (ConllDocument& all : documents_) {
      auto line = all.lines.begin();
      for (size_t i = 0; i < all.sentences.size(); ++i) {
        ConllDocument& one = sentences.emplace_back();
        const auto end = line + static_cast<int64_t>(all.sentences[i].size());
        one.lines.assign(line, end);
        line = end;
        one.sentences.push_back(std::move(all.sentences[i]));
        if (label_.has_value()) {
          one.tags.push_back(std::move(all.tags[i]));
        }
      }
    }
    return sentences;
  }

 private:
  // Index of the column of labels; nothing in a file without labels.
  std::optional<size_t> LabelColumn(size_t columns) const {
    const auto label = IndexOfColumn(options_.label_column, columns);
    return label == IndexOfColumn(options_.word_column, columns) ||
                   label == IndexOfColumn(options_.document_column, columns)
               ? std::nullopt
               : label;
  }

  // Returns true for a comment, and notes that the file has some. Outside of
  // CoNLL-U "#" may be a word, too: a line that may be one is no comment, and
  // no line is if no comment stands before all words.
  bool TakeIfComment(absl::string_view line,
                     const std::vector<std::string>& columns) {
    if (is_conllu_) {
      return absl::StartsWith(line, "#");
    }
    if (!MayBeComment(line)) {
      return false;
    }
    const std::optional<size_t> label = LabelColumn(columns.size());
    const bool has_words = num_columns_ > 0;
    const bool may_be_word = (!has_words || columns.size() == num_columns_) &&
                             (!label.has_value() || IsLabel(columns[*label]));
    has_comments_ = has_comments_ || (!has_words && !may_be_word);
    return has_comments_ && !may_be_word;
  }

  absl::Status FindColumns(size_t columns, int64_t number) {
    num_columns_ = columns;
    first_line_ = number;
    word_ = IndexOfColumn(options_.word_column, columns);
    label_ = LabelColumn(columns);
    document_ = IndexOfColumn(options_.document_column, columns);
    const auto missing = [&](const char* field, int64_t column) {
      return InvalidArgument(path_, ":", number, " should have column ", column,
                             " (tokens.", field, "), but has ",
                             Counted(static_cast<int64_t>(columns), "column"));
    };
    if (!word_.has_value()) {
      return missing("word_column", options_.word_column);
    }
    if (options_.document_column != 0 && !document_.has_value()) {
      return missing("document_column", options_.document_column);
    }
    if (document_ == word_) {
      return InvalidArgument(
          path_, ":", number, ": tokens.document_column (",
          options_.document_column,
          ") should be another column than tokens.word_column (",
          options_.word_column, "), but of ",
          Counted(static_cast<int64_t>(columns), "column"),
          " they are the same");
    }
    return absl::OkStatus();
  }

  // Checks that the first line has a label where it should have one, or CoNLL's
  // "_" for none: the words of a line of text are columns, too. Last columns of
  // CoNLL-U are of many kinds.
  absl::Status CheckLabel(const std::vector<std::string>& columns) const {
    if (!label_.has_value() || is_conllu_ || IsLabel(columns[*label_])) {
      return absl::OkStatus();
    }
    return InvalidArgument(
        path_, ":", first_line_, " is read as CoNLL, whose column ",
        *label_ + 1,
        " (tokens.label_column) should be a label such as \"O\" or ",
        "\"B-town\", but is ", QuotedName(columns[*label_]), kTextsHint,
        ", and columns without labels are read with tokens.label_column=",
        num_columns_ + 1);
  }

  // Begins a document and a sentence where the line says so.
  void Place(const std::vector<std::string>& columns) {
    if (document_.has_value() && in_document_ &&
        documents_.back().id != columns[*document_]) {
      in_document_ = false;
      in_sentence_ = false;
    }
    if (!in_document_) {
      documents_.emplace_back();
      if (document_.has_value()) {
        documents_.back().id = columns[*document_];
      }
      in_document_ = true;
    }
    if (!in_sentence_) {
      documents_.back().sentences.emplace_back();
      if (label_.has_value()) {
        documents_.back().tags.emplace_back();
      }
      in_sentence_ = true;
    }
  }

  const std::string& path_;
  const TokensOptions& options_;
  const bool is_conllu_;
  // Columns and number of the first line; 0 before it.
  size_t num_columns_ = 0;
  int64_t first_line_ = 0;
  // True if that line may be meant as a comment.
  bool begins_with_hash_ = false;
  std::optional<size_t> word_;
  std::optional<size_t> label_;
  std::optional<size_t> document_;
  bool has_comments_ = false;  // one stood before all words
  bool has_starts_ = false;
  bool in_document_ = false;
  bool in_sentence_ = false;
  std::vector<ConllDocument> documents_;
};

}  // namespace

absl::StatusOr<std::vector<ConllDocument>> ReadConllFile(
    const std::string& path, const TokensOptions& options,
    const RecordLimits& limits) {
  ETC_ASSIGN_OR_RETURN(const std::unique_ptr<TextFile> file,
                       TextFile::Open(path, limits));
  ConllReader reader(path, options);
  absl::string_view line;
  while (true) {
    ETC_ASSIGN_OR_RETURN(const bool has_line, file->NextLine(&line));
    if (!has_line) {
      return std::move(reader).Result();
    }
    ETC_RETURN_IF_ERROR(reader.Add(line, file->line_number()));
  }
}

bool IsConllName(const std::string& path) {
  return absl::c_any_of(
      kConllEndings, [&](const char* ending) { return EndsIn(path, ending); });
}

absl::StatusOr<bool> HasConll(const std::string& path) {
  // A list of records may be one line.
  ETC_ASSIGN_OR_RETURN(const std::unique_ptr<TextFile> file,
                       TextFile::Open(path, {.max_record_bytes = kAnyBytes}));
  absl::string_view line;
  while (true) {
    ETC_ASSIGN_OR_RETURN(const bool has_line, file->NextLine(&line));
    if (!has_line || !absl::StripAsciiWhitespace(line).empty()) {
      return !has_line || !BeginsJson(line);
    }
  }
}

}  // namespace etc
