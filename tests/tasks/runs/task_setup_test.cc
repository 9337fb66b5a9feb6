// The tokenizer of a run: its files, and what only those beside the weights to
// start from say.
#include "tasks/runs/task_setup.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "etc/weights/wordpiece_options.h"
#include "tasks/text/tokenizer.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

TEST(TaskSetupTest, AVocabularyThatIsNamedIsUsedAsThatOfTheWeights) {
  TemporaryDirectory init;
  init.Write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n");
  init.Write("tokenizer_config.json",
             R"({"strip_accents": false, "max_input_chars_per_word": 9})");
  TemporaryDirectory directory;
  const TokenizerConfig config = {
      .type = "wordpiece",
      .vocabulary =
          directory.Write("words.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nb\n")};
  const auto alone = LoadTokenizer(config);
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(*(*alone)->wordpiece_options(), WordPieceOptions());
  const auto completed = LoadTokenizer(config, init.path());
  ASSERT_TRUE(completed.ok()) << completed.status();
  EXPECT_EQ(
      *(*completed)->wordpiece_options(),
      (WordPieceOptions{.strip_accents = false, .max_word_code_points = 9}));
  // The tokenizer of the weights need not be usable.
  init.Write("tokenizer_config.json", R"({"strip_accents": "no"})");
  EXPECT_TRUE(LoadTokenizer(config, init.path()).ok());
}

}  // namespace
}  // namespace etc
