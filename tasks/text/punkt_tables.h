#ifndef ETC_TASKS_TEXT_PUNKT_TABLES_H_
#define ETC_TASKS_TEXT_PUNKT_TABLES_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace etc {

// The trained tables of a Punkt sentence splitter (Kiss and Strunk 2006,
// "Unsupervised Multilingual Sentence Boundary Detection"), as NLTK's data
// package `punkt_tab` has them: one folder a language, four files in it, one
// entry a line, UTF-8.

// The four files as they are, so that a checkpoint can carry them.
struct PunktFiles {
  std::string abbreviations;      // abbrev_types.txt
  std::string collocations;       // collocations.tab
  std::string sentence_starters;  // sent_starters.txt
  std::string orthography;        // ortho_context.tab

  bool operator==(const PunktFiles&) const = default;
};

// Cases and positions in sentences in which a type was met in training. A type
// has the sum of those that were.
enum PunktOrthography : uint32_t {
  kPunktUpperAtBeginning = 2,
  kPunktUpperInMiddle = 4,
  kPunktUpperAnywhere = 8,
  kPunktLowerAtBeginning = 16,
  kPunktLowerInMiddle = 32,
  kPunktLowerAnywhere = 64,
  kPunktUpper =
      kPunktUpperAtBeginning | kPunktUpperInMiddle | kPunktUpperAnywhere,
  kPunktLower =
      kPunktLowerAtBeginning | kPunktLowerInMiddle | kPunktLowerAnywhere,
};

// The tables of the files, by type: a token in lower case, or "##number##" for
// any number.
struct PunktTables {
  // Abbreviations without their last full stop.
  absl::flat_hash_set<std::string> abbreviations;
  // "first\tsecond": pairs with no border between them.
  absl::flat_hash_set<std::string> collocations;
  absl::flat_hash_set<std::string> sentence_starters;
  // Sums of PunktOrthography; a type that is not there has 0.
  absl::flat_hash_map<std::string, uint32_t> orthography;
};

// Reads the files of the folder, and checks nothing.
//   kNotFound  no such folder, or a file is not in it; the message says what a
//              folder of tables holds
// and the errors of PathExists and ReadFile.
absl::StatusOr<PunktFiles> ReadPunktFiles(const std::string& folder);

// Writes the files into `folder`, which is created if need be.
absl::Status WritePunktFiles(const PunktFiles& files,
                             const std::string& folder);

// `folder` is where the files are from; messages begin with it.
//   kInvalidArgument  a line that is none of its table, by file and line; a
//                     file without the entries that every training gives
absl::StatusOr<PunktTables> ParsePunktTables(const PunktFiles& files,
                                             const std::string& folder);

}  // namespace etc

#endif  // ETC_TASKS_TEXT_PUNKT_TABLES_H_
