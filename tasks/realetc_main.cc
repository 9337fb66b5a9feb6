// The program `realetc`.

#include <sys/prctl.h>

#include "base/process_end.h"
#include "tasks/commands/build_commit.h"
#include "tasks/commands/program.h"

int main(int argc, char** argv) {
  // For top, ps and pkill: `launch` starts its processes as /proc/self/exe.
  prctl(PR_SET_NAME, "realetc");
  etc::EndProcess(etc::RunProgram(argc, argv, etc::kBuildCommit));
}
