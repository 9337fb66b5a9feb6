// `realetc vocabulary`: a SentencePiece model of one's own text.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "tasks/commands/commands.h"
#include "tasks/commands/console.h"
#include "tasks/commands/output_file.h"
#include "tasks/data/data_files.h"
#include "tasks/data/text_file.h"
#include "tasks/text/sentencepiece_loader.h"
#include "tasks/translation/sentencepiece_training.h"

namespace etc {
namespace {

struct VocabularyArguments {
  SentencePieceTraining training;
  std::string output;
};

absl::Status MakeVocabulary(const VocabularyArguments& arguments) {
  SentencePieceTraining training = arguments.training;
  ETC_ASSIGN_OR_RETURN(training.files, FindDataFiles(training.files));
  ETC_RETURN_IF_ERROR(CheckNamedOnce(training.files));
  const std::string output = FileBehindLinks(arguments.output);
  ETC_RETURN_IF_ERROR(CheckOutputFile("--output", output, training.files));
  ETC_ASSIGN_OR_RETURN(const std::string markup, FindMarkup(training.files));
  if (!markup.empty()) {
    PrintWarnings({absl::StrCat(markup, ", but is read as text")});
  }
  ETC_ASSIGN_OR_RETURN(const TrainedSentencePiece trained,
                       TrainSentencePiece(training));
  ETC_ASSIGN_OR_RETURN(const SentencePieceModelPtr model,
                       LoadSentencePieceModel(trained.model, output));
  for (const std::string& file : training.files) {
    ETC_ASSIGN_OR_RETURN(const PieceCounts counts, CountPieces(*model, file));
    std::cout << file << ": " << FormatCount(counts.lines) << " lines, "
              << FormatCount(counts.pieces)
              << " pieces with the ends of lines, the longest line "
              << FormatCount(counts.longest) << ", unknown "
              << FormatCount(counts.unknown) << "\n";
  }
  ETC_RETURN_IF_ERROR(WriteFileAtomically(output, trained.model));
  std::cout << "written: " << output << ", " << Counted(model->size(), "piece")
            << " (" << training.type << ")\n";
  return absl::OkStatus();
}

}  // namespace

void AddVocabularyCommand(CLI::App* program, Action* action) {
  auto arguments = std::make_shared<VocabularyArguments>();
  CLI::App* command = program->add_subcommand(
      "vocabulary", "Train a SentencePiece vocabulary on text");
  command->footer(
      "Files have a sentence in each line; those of several languages give "
      "one\n"
      "vocabulary for all. <s>, <pad>, </s> and <unk> are pieces 0 to 3, and\n"
      "with --mask <mask> is piece 4. The same text gives the same vocabulary."
      "\n"
      "\n"
      "Examples:\n"
      "  realetc vocabulary train.en train.de --output en-de.model\n"
      "  realetc vocabulary 'books/*.txt' --mask --output books.model");
  command
      ->add_option("FILES", arguments->training.files,
                   "Text, plain or gzip, or patterns of names")
      ->required();
  command
      ->add_option("--output", arguments->output,
                   "The .model file to be written")
      ->required();
  command
      ->add_option("--type", arguments->training.type,
                   "bpe (default) or unigram")
      ->check(CLI::IsMember({"bpe", "unigram"}));
  command->add_option("--size", arguments->training.vocab_size,
                      "Pieces, the special ones among them (8000)");
  command->add_flag("--mask", arguments->training.mask,
                    "Add the piece <mask>, which pre-training needs "
                    "(realetc tokenize)");
  command->add_option("--coverage", arguments->training.character_coverage,
                      "Share of the text's characters that get pieces, from "
                      "0.98 to 1 (1)");
  command->callback(
      [=] { *action = [arguments] { return MakeVocabulary(*arguments); }; });
}

}  // namespace etc
