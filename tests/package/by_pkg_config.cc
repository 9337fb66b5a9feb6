// A program outside of this project, by what pkg-config says alone. Its
// headers, one of them LibTorch's, are quick to compile; FinetuneTask links the
// whole library, and a file of SentencePiece is read by a module.
#include <torch/version.h>

#include <iostream>

#include "tasks/run_task.h"
#include "tasks/text/load_tokenizer.h"

int main(int /*argc*/, char** argv) {
  std::cout << "LibTorch " << TORCH_VERSION << "\n"
            << etc::LoadTokenizer(argv[1]).status() << "\n"
            << etc::FinetuneTask({.config = argv[1]}).status() << "\n";
}
