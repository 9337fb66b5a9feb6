// `realetc document`: a page with the attention of one record.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/counted.h"
#include "base/status_macros.h"
#include "base/threads.h"
#include "tasks/analysis/document_page.h"
#include "tasks/commands/commands.h"
#include "tasks/commands/console.h"
#include "tasks/commands/model_options.h"
#include "tasks/commands/output_file.h"
#include "tasks/data/data_files.h"
#include "tasks/train/progress.h"

namespace etc {
namespace {

absl::Status Document(DocumentPageOptions options) {
  // Before any file is made, which a signal would leave.
  StreamReporter reporter = ConsoleReporter();
  options.callbacks = CallbacksOf(&reporter);
  std::vector<std::string> read = FilesOfWeights(options.checkpoint);
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> data,
                       FindDataFiles({options.data}));
  read.insert(read.end(), data.begin(), data.end());
  ETC_RETURN_IF_ERROR(CheckOutputFile("--output", options.output, read));
  options.output = FileBehindLinks(options.output);
  ETC_RETURN_IF_ERROR(SetThreads(/*threads=*/0, "threads").status());
  options.progress = [&reporter](int64_t done, int64_t all) {
    reporter.Reading({.records = done, .num_records = all});
  };
  ETC_ASSIGN_OR_RETURN(const DocumentPage page, WriteDocumentPage(options));
  std::cout << options.output << ": "
            << Counted(static_cast<int64_t>(page.layers.size()), "layer")
            << ", " << Counted(static_cast<int64_t>(page.heads.size()), "head")
            << ", " << FormatBytes(static_cast<double>(page.bytes)) << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddDocumentCommand(CLI::App* program, Action* action) {
  auto options = std::make_shared<DocumentPageOptions>();
  CLI::App* command = program->add_subcommand(
      "document", "Show on a page where the attention in one record goes");
  command->footer(
      "Example:\n"
      "  realetc document runs/demo/seed-1/checkpoints/best \\\n"
      "    --data tasks/wikihop/sample/dev.json --record 3 --output page.html");
  command
      ->add_option("CHECKPOINT", options->checkpoint,
                   "Directory of a checkpoint, or of a run or a grid, whose "
                   "best one is taken")
      ->required();
  command->add_option("--data", options->data, "Official data file")
      ->required();
  command->add_option("--record", options->record,
                      "Index of the record, from 0 (default 0)");
  command->add_option("--example", options->example,
                      "Index of the example, of a record that becomes several "
                      "(default 0)");
  command->add_option("--output", options->output, "File of the page")
      ->required();
  command->add_flag("--overwrite", options->overwrite,
                    "Replace the file if it is there");
  command
      ->add_option("--layers", options->layers,
                   "Layers on the page, from 0: 0,11 (default: all, or as many "
                   "as 24 MB of probabilities have room for, one at least)")
      ->delimiter(',');
  command
      ->add_option("--heads", options->heads,
                   "Heads on the page, from 0 (default: all, or of a single "
                   "layer, without --layers, as many as there is room for)")
      ->delimiter(',');
  AddDeviceOption(command, &options->device);
  AddResidualOption(command,
                    "Mode of residual attention (default: as the weights say)",
                    &options->residual_attention);
  command->callback(
      [=] { *action = [options] { return Document(*options); }; });
}

}  // namespace etc
