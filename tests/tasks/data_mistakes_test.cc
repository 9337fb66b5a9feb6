// Mistakes of people, second half: in data files, vocabularies, checkpoints and
// prediction files. Each must end in one line that names file and place and
// says what belongs there, and must leave files as they were.
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/tasks/user_mistakes.h"

namespace etc {
namespace {

using Json = nlohmann::json;

auto Data(const std::string& text) {
  return [text](UserFolder* folder) { folder->Write("data.json", text); };
}

// Changes one field of every record.
auto Field(const std::string& field, const Json& value) {
  return [field, value](UserFolder* folder) {
    folder->ChangeRecords([&](Json* record) { (*record)[field] = value; });
  };
}

void DropAnswers(UserFolder* folder) {
  folder->ChangeRecords([](Json* record) { record->erase("answer"); });
}

// A run whose checkpoint is then damaged by `damage`.
auto AfterRun(const std::function<void(UserFolder*)>& damage = nullptr) {
  return [damage](UserFolder* folder) {
    folder->AddRun();
    if (damage != nullptr) {
      damage(folder);
    }
  };
}

std::string InCheckpoint(const std::string& name) {
  return std::string(kCheckpoint) + "/" + name;
}

auto WithoutFile(const std::string& name) {
  return AfterRun(
      [name](UserFolder* folder) { folder->Remove(InCheckpoint(name)); });
}

TEST(DataMistakesTest, InDataFilesAreClear) {
  const std::string run = "train run.json";
  ExpectClearErrors({
      {nullptr, run + " --set data.train=dat.json", {"dat.json", "o such"}},
      {nullptr,
       run + " --set data.train='[\"train-*.json\"]'",
       {"no file that matches train-*.json"}},
      {nullptr,
       run + " --set data.train='[]'",
       {"data.train", "at least one file", "empty"}},
      {Data("[]"), run, {"data.train", "data.json"}},
      {nullptr,
       run + " --set data.train='[\".\"]'",
       {". is a directory: name its files"}},
      {nullptr, run + " --set data.dev='[\"dev.json\"]'", {"dev.json"}},
      {nullptr,
       run + " --set data.train='[\"vocab.txt\"]'",
       {"vocab.txt:1", "expected '{' of a record"}},
      {Data(""), run, {"data.json:1", "expected a JSON array of objects"}},
      {Data("[{\"id\": \"q0\"}, 5]"),
       run,
       {"data.json:1", "expected '{' of a record", "'5'"}},
      {[](UserFolder* folder) { folder->Cut("data.json", -20); },
       run,
       {"data.json:1", "the file ends within the record"}},
      {[](UserFolder* folder) {
         folder->Write("data.json", folder->Read("data.json") + "]");
       },
       run,
       {"data.json:1", "expected nothing after the array"}},
      {[](UserFolder* folder) {
         const std::string data = folder->File("data.json");
         ASSERT_EQ(std::system(("gzip " + data).c_str()), 0);
         folder->Cut("data.json.gz", -30);
       },
       run + " --set data.train='[\"data.json.gz\"]' "
             "--set data.dev='[\"data.json.gz\"]'",
       {"data.json.gz", "the file ends in the middle of its gzip data"}},
      {nullptr,
       "inspect --config run.json --record 6",
       {"data.json", "record 6 should be in [0, 6)"}},
      {nullptr,
       "inspect --config run.json --record -1",
       {"record -1 should be in [0, 6)"}},
  });
}

TEST(DataMistakesTest, InRecordsAreClear) {
  const std::string run = "train run.json";
  std::vector<UserMistake> mistakes = {
      {Data("{\"id\": \"q0\"}"),
       run + " --set train.batch_size=1 --set train.micro_batch_size=1",
       {"data.json", "record 0", "query is missing"}},
      {Field("answer", "paris"),
       run,
       {"data.json: record", ".answer", "\"paris\"", "question q"}},
      {Field("candidates", Json::array()),
       run,
       {"data.json: record", ".candidates", "at least one", "[]"}},
      {Field("candidates", "oslo"),
       run,
       {".candidates should be an array, but is \"oslo\""}},
      {Field("supports", "mira lives in oslo ."),
       run,
       {".supports should be an array"}},
      {Field("supports", Json::array({1})),
       run,
       {".supports[0] should be a string, but is 1"}},
      {Field("query", ""), run, {"question q", "the query has no token"}},
      {Field("id", 7), run, {".id should be a string, but is 7"}},
      {nullptr,
       run + " --set data.max_long_length=3",
       {"question q", "7 long tokens", "max_long_length is 3"}},
      {nullptr,
       run + " --set data.max_global_length=5",
       {"question q", "9 global tokens", "max_global_length is 5"}},
  };
  for (UserMistake& mistake : mistakes) {
    mistake.begins_run = true;
  }
  mistakes.push_back({Data("{\"id\": \"q0\"}"),
                      "inspect --config run.json --set "
                      "data.on_bad_record=skip",
                      {"query is missing", "; a run skips this record"}});
  ExpectClearErrors(mistakes);
}

TEST(DataMistakesTest, InVocabulariesAndTablesAreClear) {
  const std::string run = "train run.json";
  const auto tables = [](const std::string& orthography) {
    return [orthography](UserFolder* folder) {
      std::filesystem::create_directory(folder->File("english"));
      folder->Write("english/abbrev_types.txt", "mr\n");
      folder->Write("english/collocations.tab", "a\tb\n");
      folder->Write("english/sent_starters.txt", "the\n");
      folder->Write("english/ortho_context.tab", orthography);
    };
  };
  ExpectClearErrors({
      {[](UserFolder* folder) { folder->Write("vocab.txt", ""); },
       run,
       {"vocab.txt"}},
      {[](UserFolder* folder) {
         folder->Replace("vocab.txt", "[UNK]", "[unk]");
       },
       run,
       {"vocab.txt", "[UNK]"}},
      {[](UserFolder* folder) { folder->Write("vocab.txt", "\xFF\xFE\n"); },
       run,
       {"vocab.txt"}},
      {tables("the\t126\nof 32\n"),
       run + " --set data.sentences=english",
       {"english/ortho_context.tab:2", "a tab", "\"of 32\""}},
      {tables(""),
       run + " --set data.sentences=english",
       {"english/ortho_context.tab", "empty"}},
      {[](UserFolder* folder) {
         std::filesystem::create_directory(folder->File("tables"));
       },
       run + " --set data.sentences=tables",
       {"data.sentences", "tables", "has no abbrev_types.txt"}},
  });
}

TEST(DataMistakesTest, InCheckpointsAreClear) {
  const std::string evaluate = std::string("evaluate ") + kCheckpoint;
  const std::string predict =
      absl::StrCat("predict ", kCheckpoint, " --data data.json");
  const std::string model = InCheckpoint("model.safetensors");
  ExpectClearErrors({
      {nullptr, "evaluate rum", {"rum"}},
      {nullptr, "evaluate .", {"run_config.json"}},
      {nullptr, "evaluate data.json", {"data.json"}},
      {WithoutFile("run_config.json"), evaluate, {"run_config.json"}},
      {WithoutFile("etc_config.json"), evaluate, {"etc_config.json"}},
      {WithoutFile("model.safetensors"), evaluate, {"model.safetensors"}},
      {WithoutFile("vocab.txt"), evaluate, {"step-00000002/vocab.txt"}},
      {AfterRun([=](UserFolder* folder) {
         const std::string weights = folder->Read(model);
         folder->Write(model, weights.substr(0, weights.size() - 4) +
                                  std::string("\x00\x00\xC0\x7F", 4));
       }),
       evaluate,
       {"model.safetensors is damaged", "CRC-32C"}},
      {AfterRun([](UserFolder* folder) {
         folder->ChangeRecords([](Json* record) {
           (*record)["supports"].push_back("mira lives .");
         });
       }),
       "train run.json --resume",
       {"data.dev"}},
      {AfterRun([=](UserFolder* folder) { folder->Cut(model, -100); }),
       evaluate,
       {"model.safetensors"}},
      {AfterRun([=](UserFolder* folder) { folder->Cut(model, 5); }),
       evaluate,
       {"model.safetensors"}},
      {AfterRun([=](UserFolder* folder) {
         folder->Write(model, "version https://git-lfs.github.com/spec/v1\n");
       }),
       evaluate,
       {"model.safetensors"}},
      {AfterRun([=](UserFolder* folder) {
         folder->Replace(InCheckpoint("etc_config.json"), "\"hidden_size\": 8",
                         "\"hidden_size\": 16");
       }),
       evaluate,
       {"run/seed-1/checkpoints/", "should be [16], but is [8]"}},
      {AfterRun([=](UserFolder* folder) {
         folder->Replace(InCheckpoint("run_config.json"), "{", "{,");
       }),
       evaluate,
       {"run_config.json:1:2"}},
      {AfterRun(), evaluate + " --data dev.json", {"dev.json"}},
      {AfterRun(), evaluate + " --data vocab.txt", {"vocab.txt"}},
      {AfterRun(DropAnswers), evaluate, {"no answers", "predict"}},
      {AfterRun(), predict + " --output no/p.json", {"no/p.json"}},
      {AfterRun(), predict + " --output run", {"run"}},
      {AfterRun(), "train run.json", {"run/seed-1", "resume"}},
      {nullptr, "train run.json --resume", {"run", "no run to resume"}},
      {AfterRun(),
       "train run.json --resume --output rum",
       {"rum does not exist"}},
      // Above a run.
      {AfterRun(), "train run.json --resume --output .", {"no run to resume"}},
      {[](UserFolder* folder) {
         folder->Write("summary.json", "{\"runs\": []}");
       },
       "train run.json --output .",
       {"summary.json should have task, main_metric", "move it away"}},
      {[](UserFolder* folder) {
         folder->Write("summary.json", folder->Read("data.json"));
       },
       "train run.json --output . --set data.dev='[\"summary.json\"]'",
       {"data.dev names ", "summary.json", "give it another output"}},
      {AfterRun(),
       "train run.json --resume --set train.learning_rate=1",
       {"train.learning_rate"}},
      {AfterRun([](UserFolder* folder) {
         folder->Cut(InCheckpoint("training_state.safetensors"), -10);
       }),
       "train run.json --resume",
       {"training_state.safetensors"}},
      {AfterRun(),
       absl::StrCat("inspect ", InCheckpoint("run_config.json")),
       {"run_config.json"}},
      {AfterRun(),
       absl::StrCat("inspect ", kCheckpoint, " --compare no"),
       {"no"}},
      {nullptr, "import data.json --dry-run", {"data.json"}},
      {nullptr, "import data.json out", {"data.json"}},
      {nullptr, "import vocab.txt out", {"vocab.txt"}},
      {nullptr, "export no out", {"no"}},
      {AfterRun(),
       absl::StrCat("export ", kCheckpoint, " data.json"),
       {"data.json"}},
  });
}

TEST(DataMistakesTest, InPredictionFilesAreClear) {
  const auto predictions = [](const std::string& text) {
    return [text](UserFolder* folder) { folder->Write("p.json", text); };
  };
  const std::string score = "score wikihop data.json p.json";
  ExpectClearErrors({
      {nullptr, score, {"p.json"}},
      {predictions("oslo\n"), score, {"p.json:1"}},
      {predictions("[\"oslo\"]"), score, {"p.json", "object"}},
      {predictions("{\"q0\": 1}"), score, {"p.json", "q0"}},
      {predictions("{}"), "score wikihop gold.json p.json", {"gold.json"}},
      {predictions("{}"),
       "score hotpotqa data.json p.json",
       {"p.json", "no \"answer\""}},
      {[=](UserFolder* folder) {
         predictions("{}")(folder);
         DropAnswers(folder);
       },
       score,
       {"data.json", "answer"}},
  });
}

}  // namespace
}  // namespace etc
