#include "tasks/translation/sentencepiece_training.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "tasks/data/text_file.h"
#include "tasks/text/sentencepiece_loader.h"
#include "tasks/text/text_folding.h"

namespace etc {
namespace {

constexpr int32_t kUnknownPiece = 3;
constexpr int64_t kLongestLine = 64'000'000;
// SentencePiece's training of bpe counts the characters of a word in 16 bits,
// and crashes at more; its mark of a blank is one of them.
constexpr int64_t kLongestBpeWord = 32'000;

// Characters of a text in UTF-8.
int64_t CountCharacters(absl::string_view text) {
  return std::count_if(text.begin(), text.end(), BeginsCharacter);
}

// The training text, and what becomes of it, behind the module's interface.
class Training {
 public:
  explicit Training(const SentencePieceTraining& training)
      : files_(training.files), is_bpe_(training.type == "bpe") {}

  SentencePieceTrainingCalls Calls() {
    return {.context = this,
            .next =
                [](void* context, const char** text, size_t* size) {
                  auto* self = static_cast<Training*>(context);
                  absl::string_view line;
                  const bool more = self->Next(&line);
                  *text = line.data();
                  *size = line.size();
                  return more;
                },
            .receive =
                [](void* context, const char* bytes, size_t size) {
                  static_cast<Training*>(context)->trained_.model.assign(bytes,
                                                                         size);
                },
            .report =
                [](void* context, const char* message) {
                  // By the names that `realetc vocabulary` has for options.
                  static_cast<Training*>(context)->reason_ =
                      absl::StrReplaceAll(
                          SentencePieceReason(message),
                          {{"vocab_size", "--size"},
                           {"character_coverage with --character_coverage "
                            "option",
                            "--coverage"}});
                }};
  }

  // The first error of a file.
  const absl::Status& status() const { return status_; }
  const std::string& reason() const { return reason_; }
  // Returns true if some line is not blank.
  bool has_text() const { return has_text_; }
  TrainedSentencePiece& trained() { return trained_; }

 private:
  // False at the end of all files and after an error.
  bool Next(absl::string_view* line) {
    const absl::StatusOr<bool> more = Read(line);
    status_.Update(more.status());
    return more.ok() && *more;
  }

  absl::StatusOr<bool> Read(absl::string_view* line) {
    while (true) {
      if (file_ == nullptr) {
        if (index_ == files_.size()) {
          return false;
        }
        ETC_ASSIGN_OR_RETURN(file_, TextFile::Open(files_[index_++]));
      }
      ETC_ASSIGN_OR_RETURN(const bool more, file_->NextLine(line));
      if (more) {
        ++trained_.lines;
        has_text_ = has_text_ || !absl::StripAsciiWhitespace(*line).empty();
        ETC_RETURN_IF_ERROR(CheckLine(*line));
        return true;
      }
      file_ = nullptr;
    }
  }

  absl::Status CheckLine(absl::string_view line) const {
    const auto place = [&] {
      return absl::StrCat(file_->path(), ":", file_->line_number());
    };
    if (!IsUtf8(line)) {
      return InvalidArgument(place(), ": should be UTF-8, but is not");
    }
    // The library would leave out the line without an error.
    if (absl::StrContains(line, "\u2585") ||
        line.find('\0') != absl::string_view::npos) {
      return InvalidArgument(
          place(),
          ": should not have U+2585 or U+0000, which SentencePiece reserves");
    }
    if (is_bpe_ && std::ssize(line) > kLongestBpeWord) {
      for (const absl::string_view word : SplitWhiteSpace(line)) {
        const int64_t length = CountCharacters(word);
        if (length > kLongestBpeWord) {
          return InvalidArgument(
              place(), ": a word for bpe should have at most ", kLongestBpeWord,
              " characters, but one has ", length,
              ": split it, or choose --type unigram");
        }
      }
    }
    return absl::OkStatus();
  }

  const std::vector<std::string>& files_;
  const bool is_bpe_;
  size_t index_ = 0;
  std::unique_ptr<TextFile> file_;
  absl::Status status_;
  std::string reason_;
  bool has_text_ = false;
  TrainedSentencePiece trained_;
};

absl::Status CheckTraining(const SentencePieceTraining& training) {
  if (training.type != "bpe" && training.type != "unigram") {
    return InvalidArgument(
        "the type of a vocabulary should be \"bpe\" or \"unigram\", but is ",
        QuotedName(training.type));
  }
  constexpr int64_t kSmallest = 5;
  constexpr int64_t kLargest = 1'000'000;
  if (training.vocab_size < kSmallest || training.vocab_size > kLargest) {
    return InvalidArgument("the size of a vocabulary should be in [", kSmallest,
                           ", ", kLargest, "], but is ", training.vocab_size);
  }
  if (!(training.character_coverage >= 0.98 &&
        training.character_coverage <= 1)) {
    return InvalidArgument(
        "the character coverage should be in [0.98, 1], but is ",
        training.character_coverage);
  }
  if (training.files.empty()) {
    return InvalidArgument("a vocabulary needs at least one file of text");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TrainedSentencePiece> TrainSentencePiece(
    const SentencePieceTraining& training) {
  ETC_RETURN_IF_ERROR(CheckTraining(training));
  ETC_ASSIGN_OR_RETURN(const auto* const module, OpenSentencePieceModule());
  Training run(training);
  const bool trained = module->train(
      absl::StrCat("model_type=", training.type,
                   " vocab_size=", training.vocab_size,
                   " character_coverage=", training.character_coverage,
                   " bos_id=0 pad_id=1 eos_id=2 unk_id=3 num_threads=1",
                   training.mask ? " control_symbols=<mask>" : "",
                   // No line is left out for its length.
                   " max_sentence_length=", kLongestLine)
          .c_str(),
      run.Calls());
  ETC_RETURN_IF_ERROR(run.status());
  if (!run.has_text()) {
    return InvalidArgument(absl::StrJoin(training.files, ", "),
                           ": should have lines of text, but has none");
  }
  if (!trained) {
    return InvalidArgument("no vocabulary of ", training.vocab_size,
                           " pieces can be made of ", run.trained().lines,
                           " lines: ", run.reason());
  }
  return std::move(run.trained());
}

absl::StatusOr<PieceCounts> CountPieces(const SentencePieceModel& model,
                                        const std::string& path) {
  struct Line {
    int64_t pieces = 1;  // its end
    int64_t unknown = 0;
  };
  ETC_ASSIGN_OR_RETURN(const std::unique_ptr<TextFile> file,
                       TextFile::Open(path));
  PieceCounts counts;
  absl::string_view text;
  while (true) {
    ETC_ASSIGN_OR_RETURN(const bool more, file->NextLine(&text));
    if (!more) {
      return counts;
    }
    Line line;
    if (!model.Encode(text.data(), text.size(), &line,
                      [](void* context, const SentencePiece& piece) {
                        auto* counted = static_cast<Line*>(context);
                        ++counted->pieces;
                        counted->unknown += piece.id == kUnknownPiece ? 1 : 0;
                      })) {
      return absl::ResourceExhaustedError(
          absl::StrCat(path, ":", file->line_number(), ": out of memory"));
    }
    ++counts.lines;
    counts.pieces += line.pieces;
    counts.longest = std::max(counts.longest, line.pieces);
    counts.unknown += line.unknown;
  }
}

}  // namespace etc
