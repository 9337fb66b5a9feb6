#include "tasks/wikihop/task.h"

#include "absl/strings/str_cat.h"
#include "tasks/invalid_argument.h"

namespace etc {

void Wikihop::ReadOptions(JsonObjectReader& reader, Options* options) {
  reader.Optional("add_final_layer", &options->add_final_layer);
  reader.Optional("label_smoothing", &options->label_smoothing);
  reader.Optional("max_num_sentences", &options->max_num_sentences);
  reader.Optional("candidate_ignore_hard_g2l",
                  &options->candidate_ignore_hard_g2l);
  reader.Optional("query_ignore_hard_g2l", &options->query_ignore_hard_g2l);
  reader.Optional("enable_l2g_linking", &options->enable_l2g_linking);
  std::string alignment = "pieces";
  reader.Optional("mention_alignment", &alignment);
  if (alignment == "characters") {
    options->mention_alignment = MentionAlignment::kCharacters;
  } else if (alignment != "pieces") {
    reader.Fail("mention_alignment",
                absl::StrCat("should be \"pieces\" or \"characters\", but is ",
                             "\"", alignment, "\""));
  }
  if (options->label_smoothing < 0 || options->label_smoothing >= 1) {
    reader.Fail("label_smoothing", absl::StrCat("should be in [0, 1), but is ",
                                                options->label_smoothing));
  }
  if (options->max_num_sentences < 0) {
    reader.Fail("max_num_sentences",
                absl::StrCat("should not be negative, but is ",
                             options->max_num_sentences));
  }
}

absl::Status Wikihop::UseVocabulary(const Tokenizer& tokenizer,
                                    Options* options) {
  // Candidates are in lower case: with such a vocabulary, names would never be
  // found (doc/wikihop.md 3.4). [UNK] is the mark of WordPiece.
  if (options->mention_alignment == MentionAlignment::kPieces &&
      !tokenizer.lower_cases() && tokenizer.Id("[UNK]") >= 0) {
    return InvalidArgument(
        "tokenizer.lower_case should be true with WordPiece and "
        "wikihop.mention_alignment \"pieces\"");
  }
  return absl::OkStatus();
}

}  // namespace etc
