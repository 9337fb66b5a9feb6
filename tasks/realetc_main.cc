// The program `realetc`.

#include "tasks/commands/program.h"

int main(int argc, char** argv) { return etc::RunProgram(argc, argv); }
