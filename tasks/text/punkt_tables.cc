#include "tasks/text/punkt_tables.h"

#include <array>
#include <functional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/path_lookup.h"
#include "base/status_macros.h"
#include "tasks/text/text_folding.h"
#include "tasks/text/unicode.h"

namespace etc {
namespace {

// Published ones are below 1 MB in any language.
constexpr uint64_t kMaxTableBytes = uint64_t{64} << 20;

struct FileEntry {
  const char* name;
  std::string PunktFiles::*contents;
};
constexpr std::array<FileEntry, 4> kFiles = {
    {{"abbrev_types.txt", &PunktFiles::abbreviations},
     {"collocations.tab", &PunktFiles::collocations},
     {"sent_starters.txt", &PunktFiles::sentence_starters},
     {"ortho_context.tab", &PunktFiles::orthography}}};

std::string PathOf(const std::string& folder, absl::string_view name) {
  return absl::StrCat(folder, folder.ends_with("/") ? "" : "/", name);
}

absl::Status NotATableFolder(const std::string& folder,
                             absl::string_view reason) {
  // Users of NLTK are likely to give the folder of all languages.
  const std::string english = PathOf(folder, "english");
  return absl::NotFoundError(absl::StrCat(
      folder,
      " should be a folder of Punkt's tables (NLTK's punkt_tab/english), with "
      "abbrev_types.txt, collocations.tab, sent_starters.txt and "
      "ortho_context.tab, but ",
      reason,
      PathExists(PathOf(english, kFiles[0].name)).value_or(false)
          ? absl::StrCat("; did you mean ", english, "?")
          : ""));
}

// Takes the entry of one line, or returns the expected form.
using TakeEntry = std::function<std::string(absl::string_view line)>;

absl::Status ReadLines(const std::string& contents, const std::string& path,
                       const TakeEntry& take) {
  absl::string_view text = contents;
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    absl::string_view line = text.substr(0, end);
    text.remove_prefix(end == absl::string_view::npos ? text.size() : end + 1);
    absl::ConsumeSuffix(&line, "\r");  // as text files of Windows end lines
    const std::string mistake = CountIllFormedUtf8(line) > 0
                                    ? "should be UTF-8, but is not"
                                    : take(line);
    if (!mistake.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", number, ": the line ", mistake));
    }
  }
  return absl::OkStatus();
}

// White space within a token is that between the full stops of ". . .".
bool IsType(absl::string_view text) {
  bool has_other = false;
  bool has_space = false;
  for (int64_t at = 0; at < static_cast<int64_t>(text.size());) {
    const CodePoint c = NextCodePoint(text, &at);
    has_space = has_space || IsPythonSpace(c);
    has_other = has_other || (c != '.' && !IsPythonSpace(c));
  }
  return !text.empty() && !(has_space && has_other);
}

absl::Status ReadTypes(const std::string& contents, const std::string& path,
                       absl::flat_hash_set<std::string>* types) {
  return ReadLines(contents, path, [&](absl::string_view line) -> std::string {
    if (!IsType(line)) {
      return absl::StrCat("should be one word, but is \"", line, "\"");
    }
    types->emplace(line);
    return "";
  });
}

absl::Status ReadCollocations(const std::string& contents,
                              const std::string& path, PunktTables* tables) {
  return ReadLines(contents, path, [&](absl::string_view line) -> std::string {
    const std::vector<absl::string_view> words = absl::StrSplit(line, '\t');
    if (words.size() != 2 || !IsType(words[0]) || !IsType(words[1])) {
      return absl::StrCat(
          "should be two words with a tab between them, but is \"", line, "\"");
    }
    tables->collocations.emplace(line);
    return "";
  });
}

absl::Status ReadOrthography(const std::string& contents,
                             const std::string& path, PunktTables* tables) {
  return ReadLines(contents, path, [&](absl::string_view line) -> std::string {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, '\t');
    uint32_t sum = 0;
    if (fields.size() != 2 || !IsType(fields[0]) ||
        !absl::SimpleAtoi(fields[1], &sum) ||
        (sum & ~(kPunktUpper | kPunktLower)) != 0) {
      return absl::StrCat(
          "should be a word, a tab and a sum of 2, 4, 8, 16, 32 and 64, but is "
          "\"",
          line, "\"");
    }
    const auto [entry, is_new] = tables->orthography.emplace(fields[0], sum);
    if (!is_new && entry->second != sum) {
      return absl::StrCat("should not differ from an earlier one of \"",
                          fields[0], "\", which has ", entry->second,
                          ", but has ", sum);
    }
    return "";
  });
}

}  // namespace

absl::StatusOr<PunktFiles> ReadPunktFiles(const std::string& folder) {
  ETC_ASSIGN_OR_RETURN(const bool is_directory, IsDirectory(folder));
  if (!is_directory) {
    ETC_ASSIGN_OR_RETURN(const bool is_file, PathExists(folder));
    return NotATableFolder(folder,
                           is_file ? "is a file" : "there is no such folder");
  }
  PunktFiles files;
  for (const auto& [name, contents] : kFiles) {
    const std::string path = PathOf(folder, name);
    ETC_ASSIGN_OR_RETURN(const bool is_there, PathExists(path));
    if (!is_there) {
      return NotATableFolder(folder, absl::StrCat("has no ", name));
    }
    ETC_ASSIGN_OR_RETURN(files.*contents, ReadFile(path, kMaxTableBytes));
  }
  return files;
}

absl::Status WritePunktFiles(const PunktFiles& files,
                             const std::string& folder) {
  ETC_RETURN_IF_ERROR(CreateDirectories(folder));
  for (const auto& [name, contents] : kFiles) {
    ETC_RETURN_IF_ERROR(
        WriteFileAtomically(PathOf(folder, name), files.*contents));
  }
  return absl::OkStatus();
}

absl::StatusOr<PunktTables> ParsePunktTables(const PunktFiles& files,
                                             const std::string& folder) {
  PunktTables tables;
  ETC_RETURN_IF_ERROR(ReadTypes(files.abbreviations,
                                PathOf(folder, "abbrev_types.txt"),
                                &tables.abbreviations));
  ETC_RETURN_IF_ERROR(ReadCollocations(
      files.collocations, PathOf(folder, "collocations.tab"), &tables));
  ETC_RETURN_IF_ERROR(ReadTypes(files.sentence_starters,
                                PathOf(folder, "sent_starters.txt"),
                                &tables.sentence_starters));
  ETC_RETURN_IF_ERROR(ReadOrthography(
      files.orthography, PathOf(folder, "ortho_context.tab"), &tables));
  // A language may do without collocations and starters, not without these.
  if (tables.abbreviations.empty() || tables.orthography.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        PathOf(folder, tables.abbreviations.empty() ? "abbrev_types.txt"
                                                    : "ortho_context.tab"),
        " should hold a word a line, but is empty"));
  }
  return tables;
}

}  // namespace etc
