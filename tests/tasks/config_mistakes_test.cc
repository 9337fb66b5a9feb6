// Mistakes of people, first half: in what they type and in their configuration.
// Each must end in one line that names the place and says what belongs there,
// before anything is written.
#include "gtest/gtest.h"
#include "tests/support/sanitizers.h"
#include "tests/tasks/user_mistakes.h"

namespace etc {
namespace {

// A command line with fields of run.json set otherwise.
std::string Set(const std::string& field_and_value) {
  return "train run.json --set " + field_and_value;
}

// Writes run.json anew.
auto Config(const std::string& text) {
  return [text](UserFolder* folder) { folder->Write("run.json", text); };
}

// Replaces a part of run.json.
auto Edit(const std::string& from, const std::string& to) {
  return
      [from, to](UserFolder* folder) { folder->Replace("run.json", from, to); };
}

TEST(ConfigMistakesTest, InCommandLinesAreClear) {
  constexpr int kUsage = 2;
  const std::string checkpoint = kCheckpoint;
  ExpectClearErrors({
      {nullptr, "trian run.json", {"did you mean \"train\"?"}, kUsage},
      {nullptr, "fit run.json", {"no command \"fit\"", "--help"}, kUsage},
      {nullptr, "train", {"CONFIG", "train --help"}, kUsage},
      {nullptr, "train run.json data.json", {"data.json"}, kUsage},
      {nullptr, "train run.json --resum", {"--resum"}, kUsage},
      {nullptr, "train run.json --set", {"--set"}, kUsage},
      {nullptr, "train run.json --steps 5", {"--steps"}, kUsage},
      {nullptr, "evaluate", {"CHECKPOINT"}, kUsage},
      {nullptr, "evaluate run --residual on", {"--residual", "off"}, kUsage},
      {nullptr, "evaluate run --threads two", {"--threads", "two"}, kUsage},
      {nullptr,
       "evaluate run --threads 0",
       {"--threads: should be a whole number of at least 1, but is 0;"},
       kUsage},
      {nullptr,
       "evaluate run --batch-size 99999999999999999999",
       {"--batch-size: should be a whole number from -9223372036854775808 to "
        "9223372036854775807, but is 99999999999999999999;"},
       kUsage},
      {nullptr,
       "average run --last ''",
       {"--last: should be a whole number of at least 1, but is \"\";"},
       kUsage},
      {nullptr,
       "translate run --length-penalty=-1",
       {"--length-penalty: should be a number of at least 0, but is -1;"},
       kUsage},
      {nullptr, "evaluate run --batch-size -3", {"--batch-size"}, kUsage},
      {nullptr, "predict run --data data.json", {"--output"}, kUsage},
      {nullptr, "score wikihop data.json", {"PREDICTIONS"}, kUsage},
      {nullptr, "inspect run --record 3", {"--record", "--config"}, kUsage},
      {nullptr, "inspect --config run.json --record x", {"--record"}, kUsage},
      {nullptr, Set("train.steps"), {"train.steps", "a field and its value"}},
      {nullptr, Set("=5"), {"=5"}},
      {nullptr, Set("train..steps=5"), {"train..steps=5"}},
      {nullptr, Set("task.name=x"), {"task.name=x", "no object"}},
      {nullptr,
       "score wikihopp data.json data.json",
       {"\"wikihopp\"", "did you mean \"wikihop\"?"}},
  });
}

TEST(ConfigMistakesTest, InTheConfigurationFileAreClear) {
  const std::string run = "train run.json";
  ExpectClearErrors({
      {nullptr, "train rum.json", {"rum.json", "o such file"}},
      {nullptr, "train .", {"."}},
      {nullptr, "train vocab.txt", {"vocab.txt:1:2"}},
      {Config(""), run, {"run.json"}},
      {Config("[]"), run, {"run.json", "object"}},
      {Config("{'task': 'wikihop'}"), run, {"run.json:1:2"}},
      {Config("{\"task\": \"wikihop\",}"), run, {"run.json:1:20"}},
      {Config("{\n  // mine\n}"), run, {"run.json:2:3"}},
      {Config("{\"task\": \"wikihop\""), run, {"run.json:1"}},
      {Config("{\"task\": \"wikihop\", \"task\": \"nq\"}"),
       run,
       {"run.json", "task", "twice"}},
      {Config("{\"task\": \"wiki\xFFhop\"}"), run, {"run.json", "UTF-8"}},
      {Config("\xFF\xFE{\0}\0"), run, {"run.json:1:1"}},
      {Config("{\"model\": {}}"), run, {"run.json", "task"}},
      {Config("{\"task\": \"wikihop\"}"), run, {"run.json", "model"}},
      {Edit("\"train\": {", "\"trian\": {"),
       run,
       {"run.json", "\"trian\"", "did you mean \"train\"?"}},
      {Edit("\"steps\"", "\"step\""),
       run,
       {"run.json: train", "\"step\"", "did you mean \"steps\"?"}},
      {Edit("\"vocabulary\"", "\"vocab\""),
       run,
       {"tokenizer", "\"vocab\"", "vocabulary"}},
      {Edit("\"threads\": 1", "\"threads\": \"all\""),
       run,
       {"train.threads should be", "\"all\""}},
      {Edit("\"batch_size\": 3", "\"batch_size\": 2.5"),
       run,
       {"train.batch_size should be", "2.5"}},
      {Edit("\"output\": \"run\"", "\"output\": null"),
       run,
       {"output should be", "null"}},
      {Edit("\"tokenizer\": {", "\"tokenizer\": [{}], \"x\": {"),
       run,
       {"tokenizer", "object"}},
  });
}

TEST(ConfigMistakesTest, InFieldsAreClear) {
  ExpectClearErrors({
      {nullptr, Set("task=wikihopp"), {"did you mean \"wikihop\"?"}},
      {nullptr, Set("train.learning_rate=0"), {"train.learning_rate", "0"}},
      {nullptr, Set("train.learning_rate=fast"), {"number", "\"fast\""}},
      {nullptr, Set("train.learning_rate=NaN"), {"number", "\"NaN\""}},
      {nullptr, Set("train.batch_size=0"), {"train.batch_size", "at least 1"}},
      {nullptr, Set("train.batch_size=1e30"), {"train.batch_size"}},
      {nullptr,
       Set("train.micro_batch_size=4"),
       {"micro_batch_size", "batch_size (3)", "4"}},
      {nullptr, Set("train.steps=-1"), {"train.steps", "at least 0", "-1"}},
      {nullptr, Set("train.steps=0"), {"train.steps is 0", "init"}},
      {nullptr,
       Set("train.epochs=0 --set train.steps=null"),
       {"train.epochs", "more than 0"}},
      {nullptr, Set("train.seeds=[]"), {"train.seeds", "empty"}},
      {nullptr, Set("train.seeds=[1,2,1]"), {"train.seeds", "1", "twice"}},
      {nullptr, Set("grid=fast"), {"grid should be an object", "\"fast\""}},
      {nullptr, Set("grid.train.epochs=[]"), {"grid.train.epochs", "empty"}},
      {nullptr, Set("grid.train.seeds=[1,2]"), {"train.seeds", "all seeds"}},
      {nullptr,
       Set("grid.train.epoch=[1,2]"),
       {"of its grid): train", "did you mean \"epochs\"?"}},
      {nullptr,
       Set("grid.train.learning_rate=[1e-5,2e-5,0]"),
       {"train.learning_rate=0 of its grid", "more than 0"}},
      {nullptr, Set("grid.train.batch_size=[3,300]"), {"batch of 300"}},
      {nullptr,
       Set("grid.wikihop.label_smoothing=[0,1]"),
       {"wikihop.label_smoothing", "[0, 1)"}},
      {nullptr, Set("train.precision=fp16"), {"precision", "\"bf16\""}},
      {nullptr, Set("train.device=gpu"), {"device should be", "\"gpu\""}},
      {nullptr,
       Set("train.device=cuda:120"),
       {"train.device is \"cuda:120\"", "CUDA", "can be used here: cpu"}},
      {nullptr,
       Set("optimizer.type=adam"),
       {"optimizer.type", "\"adamw\"", "\"adam\""}},
      {nullptr, Set("optimizer.beta1=1"), {"optimizer.beta1", "1"}},
      {nullptr,
       Set("schedule.warmup_proportion=10"),
       {"schedule.warmup_proportion", "10"}},
      {nullptr,
       Set("residual_attention=on"),
       {"residual_attention", "\"sum\"", "\"on\""}},
      {nullptr,
       Set("data.on_bad_record=ignore"),
       {"on_bad_record", "\"skip\""}},
      {nullptr, Set("data.workers=0"), {"data.workers", "at least 1"}},
      {nullptr,
       Set("model.vocab_size=18"),
       {"vocab.txt has 19 pieces", "model.vocab_size is 18"}},
      {nullptr, Set("model.hidden_size=9"), {"hidden_size", "9"}},
      {nullptr,
       Set("model.local_radius=0"),
       {"model.local_radius should be at least 1, but is 0"}},
      {nullptr,
       Set("model.num_hidden_layer=3"),
       {"model", "did you mean \"num_hidden_layers\"?"}},
      {nullptr,
       Set("model.preset=huge"),
       {"model.preset", "\"base\" or \"large\"", "\"huge\""}},
      {nullptr, Set("model.path=etc_config.json"), {"etc_config.json"}},
      {nullptr,
       Set("model.preset=base --set model.path=x.json"),
       {"model.path", "preset"}},
      {nullptr, Set("init=bert-base"), {"bert-base", "o such file"}},
      {nullptr, Set("init=data.json"), {"data.json"}},
      {nullptr, Set("tokenizer.type=bpe"), {"tokenizer.type", "\"bpe\""}},
      {nullptr, Set("tokenizer.vocabulary=vocab.text"), {"vocab.text"}},
      {nullptr, Set("tokenizer.vocabulary="), {"tokenizer.vocabulary"}},
      {nullptr,
       Set("wikihop.label_smoothing=1"),
       {"wikihop.label_smoothing", "[0, 1)"}},
      {nullptr,
       Set("wikihop.mention_alignment=words"),
       {"mention_alignment", "\"pieces\" or \"characters\""}},
      {nullptr, Set("hotpotqa.answer_encoding=bio"), {"\"hotpotqa\""}},
      {nullptr, Set("output="), {"output"}},
      {nullptr, Set("output=data.json"), {"data.json"}},
      {nullptr, Set("output=/dev/null/run"), {"/dev/null"}},
      {nullptr,
       Set("data.sentences=punkt"),
       {"data.sentences", "punkt", "no such folder", "ortho_context.tab"}},
  });
}

// More tokens than the model has positions, and long tokens for a model without
// them, by every command that reads a configuration.
TEST(ConfigMistakesTest, InWhatTheModelCanReadAreClear) {
  const std::string positions =
      " --set model.max_absolute_position_embeddings=64";
  const std::string global = positions + " --set data.max_long_length=64";
  const std::string bert =
      " --set model='{\"preset\": \"bert_small\", \"vocab_size\": 19}'";
  std::vector<UserMistake> mistakes;
  for (const std::string command : {"train run.json", "estimate run.json",
                                    "inspect --config run.json --record 0",
                                    "inspect --config run.json --count"}) {
    mistakes.push_back(
        {nullptr,
         command + positions,
         {"run.json", "data.max_long_length should be at most 64", "4096"}});
    mistakes.push_back(
        {nullptr,
         command + global,
         {"data.max_global_length should be at most 64", "512"}});
    mistakes.push_back({nullptr,
                        command + bert,
                        {"model.has_long_tokens should be true", "wikihop",
                         "as of BERT; give a preset of ETC"}});
  }
  mistakes.push_back(
      {nullptr,
       Set("model='{\"preset\": \"bert_small\", \"vocab_size\": 19, "
           "\"has_long_tokens\": false}'"),
       {"model.has_long_tokens should be true",
        "leave it out: a BERT in init is lifted to ETC"}});
  mistakes.push_back(
      {nullptr,
       "train run.json" + global + " --set grid.data.max_global_length=[64,65]",
       {"max_global_length=65 of its grid", "at most 64", "but is 65"}});
  for (const std::string command :
       {"evaluate run", "predict run --data data.json --output p.json"}) {
    mistakes.push_back(
        {[](UserFolder* folder) {
           folder->AddRun();
           folder->Replace(std::string(kCheckpoint) + "/etc_config.json",
                           "\"max_absolute_position_embeddings\": 0",
                           "\"max_absolute_position_embeddings\": 64");
         },
         command,
         {"run_config.json", "data.max_long_length should be at most 64"}});
  }
  mistakes.push_back(
      {nullptr,
       Set("data.dev_fraction=0.1 --set data.dev=[]"),
       {"data.dev_fraction should be 0 for wikihop", "it holds out records of",
        "classify", "glue", "tokens"}});
  ExpectClearErrors(mistakes);
}

// Names that a system does not take, or that are no text.
TEST(ConfigMistakesTest, InPathsAreClear) {
  const std::string too_long(300, 'x');
  const std::string tokenize = "tokenize data.json --format text --vocabulary ";
  ExpectClearErrors({
      {nullptr, Set("init=" + too_long), {too_long, "too long"}},
      {nullptr, "evaluate " + too_long, {too_long, "too long"}},
      {nullptr,
       "predict " + too_long + " --data data.json --output p.json",
       {too_long, "too long"}},
      {nullptr, "inspect " + too_long, {too_long, "too long"}},
      {nullptr, "import " + too_long + " out", {too_long, "too long"}},
      {nullptr,
       tokenize + too_long + " --output x.tokens",
       {too_long, "too long"}},
      {nullptr,
       tokenize + "vocab.txt --mask-piece '[unused0]' --output " + too_long,
       {too_long, "too long"}},
      {nullptr, Set("data.train=" + too_long), {too_long, "too long"}},
      {nullptr, Set("data.sentences=" + too_long), {too_long, "too long"}},
      {nullptr, Set("output=caf\xE9"), {"should be UTF-8", "caf\\xe9"}},
      {nullptr,
       "train run.json --output caf\xE9",
       {"--output", "should be UTF-8", "caf\\xe9"}},
      {nullptr, Set("data.train=caf\xE9.json"), {"should be UTF-8"}},
  });
}

TEST(ConfigMistakesTest, InTheTypeOfTokenizerAreClear) {
  if (kAddressSanitized) {
    GTEST_SKIP() << "SentencePiece cannot be loaded under AddressSanitizer";
  }
  ExpectClearErrors(
      {{nullptr, Set("tokenizer.type=sentencepiece"), {"vocab.txt"}}});
}

}  // namespace
}  // namespace etc
