#include "tasks/wikihop/task.h"

#include "absl/strings/str_cat.h"

namespace etc {

void Wikihop::ReadOptions(JsonObjectReader& reader, Options* options) {
  WikihopHeadOptions& head = options->head;
  WikihopExampleOptions& example = options->example;
  reader.Optional("add_final_layer", &head.add_final_layer);
  reader.Optional("label_smoothing", &head.label_smoothing);
  reader.Optional("max_num_sentences", &example.max_num_sentences);
  reader.Optional("candidate_ignore_hard_g2l",
                  &example.candidate_ignore_hard_g2l);
  reader.Optional("query_ignore_hard_g2l", &example.query_ignore_hard_g2l);
  reader.Optional("enable_l2g_linking", &example.enable_l2g_linking);
  std::string alignment = "pieces";
  reader.Optional("mention_alignment", &alignment);
  if (alignment == "characters") {
    example.mention_alignment = MentionAlignment::kCharacters;
  } else if (alignment != "pieces") {
    reader.Fail("mention_alignment",
                absl::StrCat("should be \"pieces\" or \"characters\", but is ",
                             "\"", alignment, "\""));
  }
  if (head.label_smoothing < 0 || head.label_smoothing >= 1) {
    reader.Fail("label_smoothing", absl::StrCat("should be in [0, 1), but is ",
                                                head.label_smoothing));
  }
  if (example.max_num_sentences < 0) {
    reader.Fail("max_num_sentences",
                absl::StrCat("should not be negative, but is ",
                             example.max_num_sentences));
  }
}

absl::Status Wikihop::UseVocabulary(const Tokenizer& tokenizer,
                                    const TaskSettings& /*settings*/,
                                    Options* options) {
  // Candidates are in lower case: with such a vocabulary, names would never be
  // found (doc/wikihop.md 3.4). [UNK] is the mark of WordPiece.
  if (options->example.mention_alignment == MentionAlignment::kPieces &&
      !tokenizer.lower_cases() && tokenizer.Id("[UNK]") >= 0) {
    return absl::InvalidArgumentError(
        "tokenizer.lower_case should be true with WordPiece and "
        "wikihop.mention_alignment \"pieces\"");
  }
  return absl::OkStatus();
}

}  // namespace etc
