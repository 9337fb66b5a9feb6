// The program `realetc`.

#include "base/process_end.h"
#include "tasks/commands/build_commit.h"
#include "tasks/commands/program.h"

int main(int argc, char** argv) {
  etc::EndProcess(etc::RunProgram(argc, argv, etc::kBuildCommit));
}
