// Answers records, a JSON object a line, with a fine-tuned model. A line that
// is no record goes to standard error with its mistake, and the program goes
// on.
//
// Prints:
//   {"id":"first","label":"...","probabilities":{...}}
//   {"id":"second","label":"...","probabilities":{...}}
#include <iostream>
#include <string>

#include "realetc.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: predictor_over_stdin CHECKPOINT\n";
    return 2;
  }
  const auto predictor = etc::Predictor::Open(argv[1]);
  if (!predictor.ok()) {
    std::cerr << predictor.status().message() << "\n";
    return 1;
  }
  bool all_ok = true;
  for (std::string line; std::getline(std::cin, line);) {
    const auto prediction = predictor->Predict(line);
    all_ok = all_ok && prediction.ok();
    if (prediction.ok()) {
      std::cout << prediction->json << std::endl;
    } else {
      std::cerr << prediction.status().message() << std::endl;
    }
  }
  return all_ok ? 0 : 1;
}
