// The program `realetc`.

#include "tasks/commands/build_commit.h"
#include "tasks/commands/program.h"

int main(int argc, char** argv) {
  return etc::RunProgram(argc, argv, etc::kBuildCommit);
}
