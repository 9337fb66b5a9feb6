"""Stand-ins for what the documents' commands take from elsewhere.

The commands that README.md and the pages of the tasks show read downloads of
gigabytes and train for days. Here they find, under the same names, samples of
the project instead of data sets, random weights of a tiny BERT instead of
published ones, and the shipped configurations with a tiny model and two
updates. The commands themselves are not changed.
"""

import gzip
import json
import os
import random
import shutil
import stat
import struct

LAYERS, HIDDEN, HEADS, INTERMEDIATE, POSITIONS = 2, 16, 2, 32, 512

# Those of `realetc launch` in the pages are as many.
MOST_PROCESSES = 4

# Official files by the names that the shipped configurations and the pages
# give them, and the sample that stands in.
DATA = {
    'train.json': 'wikihop/sample/train.json',
    'dev.json': 'wikihop/sample/dev.json',
    'data/wikihop/train.json': 'wikihop/sample/train.json',
    'data/wikihop/dev.json': 'wikihop/sample/dev.json',
    'data/hotpotqa/hotpot_train_v1.1.json': 'hotpotqa/sample/train.json',
    'data/hotpotqa/hotpot_dev_distractor_v1.json': 'hotpotqa/sample/dev.json',
    'data/nq/v1.0/train/nq-train-00.jsonl.gz': 'nq/sample/train.jsonl.gz',
    'data/nq/v1.0/dev/nq-dev-00.jsonl.gz': 'nq/sample/dev.jsonl',
    'data/openkp/OpenKPTrain.jsonl': 'openkp/sample/train.jsonl',
    'data/openkp/OpenKPDev.jsonl': 'openkp/sample/dev.jsonl',
    'data/openkp/OpenKPEvalPublic.jsonl': 'openkp/sample/dev.jsonl',
    'MRPC/train.tsv': 'glue/sample/train.tsv',
    'MRPC/dev.tsv': 'glue/sample/dev.tsv',
    'MRPC/test.tsv': 'glue/sample/test.tsv',
}

# Lines of GLUE's official files: header or None, two training lines, one test
# header or None and one test line.
PAIR = 'the court hailed the deal .\tthe judge praised the deal .'
GLUE = {
    'CoLA': (None, ['gj04\t1\t\tthe court hailed it .', 'gj04\t0\t*\tit the .'],
             'index\tsentence', ['0\tthe court hailed it .']),
    'SST-2': ('sentence\tlabel', ['the court hailed it\t1', 'the deal\t0'],
              'index\tsentence', ['0\tthe court hailed it']),
    'STS-B': ('index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\t'
              'sentence1\tsentence2\tscore',
              [f'0\tn\tf\t2012\t1\ta\tb\t{PAIR}\t5.000',
               f'1\tn\tf\t2012\t2\ta\tb\t{PAIR}\t1.250'],
              'index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\t'
              'sentence1\tsentence2', [f'0\tn\tf\t2012\t1\ta\tb\t{PAIR}']),
    'QQP': ('id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate',
            [f'0\t1\t2\t{PAIR}\t1', f'1\t3\t4\t{PAIR}\t0'],
            'id\tquestion1\tquestion2', [f'0\t{PAIR}']),
    'QNLI': ('index\tquestion\tsentence\tlabel',
             [f'0\t{PAIR}\tentailment', f'1\t{PAIR}\tnot_entailment'],
             'index\tquestion\tsentence', [f'0\t{PAIR}']),
    'RTE': ('index\tsentence1\tsentence2\tlabel',
            [f'0\t{PAIR}\tentailment', f'1\t{PAIR}\tnot_entailment'],
            'index\tsentence1\tsentence2', [f'0\t{PAIR}']),
    'WNLI': ('index\tsentence1\tsentence2\tlabel',
             [f'0\t{PAIR}\t1', f'1\t{PAIR}\t0'],
             'index\tsentence1\tsentence2', [f'0\t{PAIR}']),
}
PARSES = 'x\tx\tx\tx'
MNLI_HEADER = ('index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\t'
               'sentence2_binary_parse\tsentence1_parse\tsentence2_parse\t'
               'sentence1\tsentence2')


def write(path, text):
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(text)


def write_lines(path, header, lines):
  """Rows below their header; where the first column is an index, numbered."""
  if header and header.split('\t')[0] in ('index', 'id'):
    lines = [f'{i}\t{line.split(chr(9), 1)[1]}' for i, line in enumerate(lines)]
  write(path, '\n'.join(([header] if header else []) + lines) + '\n')


def union_vocabulary(source):
  """All pieces of the samples' vocabularies, in order of appearance."""
  pieces = {}
  for path in sorted(source.glob('tasks/*/sample/vocab.txt')):
    for piece in path.read_text().splitlines():
      pieces[piece] = None
  return list(pieces)


def shrink(config, vocabulary_size):
  """Turns a shipped configuration into one that takes a second."""
  model = config.setdefault('model', {})
  if config.get('init') != 'checkpoints/lifted':
    model.update(vocab_size=vocabulary_size, hidden_size=HIDDEN,
                 num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                 intermediate_size=INTERMEDIATE)
  data = config['data']
  for field, most in (('max_long_length', 256), ('max_global_length', 128)):
    if field in data:
      data[field] = min(data[field], most)
  train = config['train']
  for field in ('epochs', 'num_train_examples', 'checkpoint_every'):
    train.pop(field, None)
  if config['task'] == 'pretrain':
    config['pretrain']['development_one_in'] = 3
  # An example for each process of a launcher.
  train.update(steps=2, batch_size=MOST_PROCESSES, micro_batch_size=1, seeds=[1],
               evaluate_every=0, threads=1)
  for task, stride in (('squad', 32), ('nq', 64)):
    if task in config:
      config[task].update({'squad': {'doc_stride': stride, 'max_query_length': 16},
                           'nq': {'stride': stride}}[task])
  return config


def shrink_translation(config):
  """The same of translation: as many checkpoints as are averaged."""
  config['model'].update(hidden_size=HIDDEN, num_encoder_layers=1,
                         num_decoder_layers=1, num_attention_heads=HEADS,
                         intermediate_size=INTERMEDIATE)
  del config['model']['vocab_size']
  config['translation'].update(max_tokens=256, beam_size=2, max_length=8)
  config['schedule']['warmup_steps'] = 2
  del config['train']['epochs']
  config['train'].update(steps=10, evaluate_every=1, batch_size=1, seeds=[1],
                         keep_last=10, threads=1)
  return config


def copy_tasks(source, work, vocabulary_size):
  """Samples as they are, shipped configurations shrunk; demos as they are."""
  for sample in sorted(source.glob('tasks/*/sample')):
    task = sample.parent.name
    shutil.copytree(sample, work / 'tasks' / task / 'sample')
    for path in sorted((sample.parent / 'configs').glob('*.json')):
      config = json.loads(path.read_text())
      if path.stem != 'demo':
        config = (shrink_translation(config) if task == 'translation' else
                  shrink(config, vocabulary_size))
      write(work / 'tasks' / task / 'configs' / path.name,
            json.dumps(config, indent=2))


def answerable(squad):
  """SQuAD 2.0's format without the questions that 1.1 does not have."""
  for document in squad['data']:
    for paragraph in document['paragraphs']:
      paragraph['qas'] = [question for question in paragraph['qas']
                          if question['answers']]
  return squad


def copy_data(source, work):
  for name, sample in DATA.items():
    path, sample = work / name, source / 'tasks' / sample
    path.parent.mkdir(parents=True, exist_ok=True)
    if name.endswith('.gz') and sample.suffix != '.gz':
      path.write_bytes(gzip.compress(sample.read_bytes()))
    else:
      shutil.copy(sample, path)
  for name in ('train', 'dev'):
    rows = ''.join(f'{i},Flat {i},"The court ruled .\nOn appeal it was upheld '
                   f'by {name} .",{("owner", "tenant", "retrial")[i % 3]}\n'
                   for i in range(18))
    write(work / f'data/documents/{name}.csv', 'id,title,text,label\n' + rows)
  for name in ('train', 'dev'):
    write(work / f'data/names/{name}.conll', ''.join(
        f'-DOCSTART- O\n\nThe O\ncourt B-{label}\nruled I-{label}\n. O\n\n'
        for label in ('town', 'firm') * 9))
  for name, field in (('data/documents/train', ', "KeyPhrases": ["court"]'),
                      ('data/documents/dev', ', "KeyPhrases": ["court"]'),
                      ('new_documents', '')):
    write(work / f'{name}.jsonl', ''.join(
        f'{{"id": "{i}", "text": "The court ruled. It was late."{field}}}\n'
        for i in range(18)))
  write(work / 'books.jsonl', ''.join(
      f'{{"id": "{i}", "text": "The court ruled. It was upheld."}}\n'
      for i in range(2)))
  spans = json.dumps([{'start': 4, 'end': 9, 'label': 'town'}])
  for name, field in (('new', ''), ('new_spans', f', "spans": {spans}')):
    write(work / f'{name}.jsonl', ''.join(
        f'{{"id": "{i}", "text": "The court ruled."{field}}}\n'
        for i in range(2)))
  for split, names in (('train', ['data/squad/train-v1.1.json']),
                       ('dev', ['data/squad/dev-v1.1.json', 'dev-v1.1.json'])):
    sample = source / 'tasks' / 'squad' / 'sample' / f'{split}.json'
    for name in names:
      write(work / name, json.dumps(answerable(json.loads(sample.read_text()))))
  for name, column, cells in (('new', '', ('', '')),
                              ('new_labels', ',label', (',owner', ',tenant'))):
    write(work / f'{name}.csv', f'id,title,text{column}\n' + ''.join(
        f'{i},Flat {i},The court ruled .{cell}\n'
        for i, cell in enumerate(cells)))
  draw = random.Random(2)
  words = 'court bank judge owner tenant house ruled upheld the of on'.split()
  for book in ('one', 'two'):
    documents = (''.join(f'The {" ".join(draw.choices(words, k=6))} .\n'
                         for _ in range(36)) for _ in range(20))
    write(work / 'books' / f'{book}.txt', '\n\n\n'.join(documents))


def write_multi30k(source, work, run):
  """Parallel text of an invented language by the names of Multi30k."""
  folder = work / 'data/multi30k'
  folder.mkdir(parents=True)
  run(f'python3 {source}/tasks/translation/sample/language.py make {folder}')
  for part, name, lines in (('train', 'train', 200), ('dev', 'val', 10),
                            ('test', 'test_2016_flickr', 10)):
    for side, language in (('source', 'en'), ('target', 'de')):
      text = (folder / f'{part}.{side}').read_text().splitlines(True)
      write(folder / f'{name}.{language}', ''.join(text[:lines]))
  run('realetc vocabulary data/multi30k/train.en data/multi30k/train.de '
      '--size 200 --output data/multi30k/vocab.model')


def copy_glue(work):
  for task, (header, lines, test_header, test_lines) in GLUE.items():
    for split in ('train', 'dev'):
      write_lines(work / task / f'{split}.tsv', header, lines * 8)
    write_lines(work / task / 'test.tsv', test_header, test_lines)
  row = f'0\t1\t2\tfiction\t{PARSES}\t{PAIR}'
  labels = ('entailment', 'neutral', 'contradiction')
  write_lines(work / 'MNLI/train.tsv', MNLI_HEADER + '\tlabel1\tgold_label',
              [f'{row}\t{label}\t{label}' for label in labels] * 6)
  five = '\t'.join(f'label{i}' for i in range(1, 6))
  for kind in ('matched', 'mismatched'):
    write_lines(work / f'MNLI/dev_{kind}.tsv',
                f'{MNLI_HEADER}\t{five}\tgold_label',
                ['\t'.join([row] + [label] * 6) for label in labels])
    write_lines(work / f'MNLI/test_{kind}.tsv', MNLI_HEADER, [row])
  write_lines(work / 'diagnostic/diagnostic.tsv',
              'index\tsentence1\tsentence2', [f'0\t{PAIR}'])


def bert_tensors(vocabulary_size):
  """Names and shapes of HuggingFace's BertModel."""
  shapes = {
      'embeddings.word_embeddings.weight': (vocabulary_size, HIDDEN),
      'embeddings.position_embeddings.weight': (POSITIONS, HIDDEN),
      'embeddings.token_type_embeddings.weight': (2, HIDDEN),
      'pooler.dense.weight': (HIDDEN, HIDDEN),
      'pooler.dense.bias': (HIDDEN,),
  }

  def add_norm(name):
    shapes[f'{name}.LayerNorm.weight'] = (HIDDEN,)
    shapes[f'{name}.LayerNorm.bias'] = (HIDDEN,)

  def add_linear(name, inputs, outputs):
    shapes[f'{name}.weight'] = (outputs, inputs)
    shapes[f'{name}.bias'] = (outputs,)

  add_norm('embeddings')
  for layer in range(LAYERS):
    prefix = f'encoder.layer.{layer}'
    for part in ('self.query', 'self.key', 'self.value', 'output.dense'):
      add_linear(f'{prefix}.attention.{part}', HIDDEN, HIDDEN)
    add_norm(f'{prefix}.attention.output')
    add_linear(f'{prefix}.intermediate.dense', HIDDEN, INTERMEDIATE)
    add_linear(f'{prefix}.output.dense', INTERMEDIATE, HIDDEN)
    add_norm(f'{prefix}.output')
  return shapes


def write_safetensors(path, shapes):
  draw = random.Random(1)
  header, blobs, offset = {}, [], 0
  for name, shape in shapes.items():
    count = 1
    for size in shape:
      count *= size
    is_norm = name.endswith('LayerNorm.weight')
    values = [draw.gauss(1.0 if is_norm else 0.0, 0.02) for _ in range(count)]
    blobs.append(struct.pack(f'<{count}f', *values))
    header[name] = {'dtype': 'F32', 'shape': list(shape),
                    'data_offsets': [offset, offset + 4 * count]}
    offset += 4 * count
  text = json.dumps(header).encode()
  text += b' ' * (-len(text) % 8)
  path.write_bytes(struct.pack('<Q', len(text)) + text + b''.join(blobs))


def write_hugging_face_bert(folder, vocabulary, activation='gelu'):
  folder.mkdir(parents=True)
  write(folder / 'config.json', json.dumps({
      'architectures': ['BertModel'], 'model_type': 'bert',
      'vocab_size': len(vocabulary), 'hidden_size': HIDDEN,
      'num_hidden_layers': LAYERS, 'num_attention_heads': HEADS,
      'intermediate_size': INTERMEDIATE, 'hidden_act': activation,
      'max_position_embeddings': POSITIONS, 'type_vocab_size': 2,
      'layer_norm_eps': 1e-12, 'initializer_range': 0.02,
      'hidden_dropout_prob': 0.1, 'attention_probs_dropout_prob': 0.1,
      'pad_token_id': 0}))
  write(folder / 'vocab.txt', ''.join(f'{piece}\n' for piece in vocabulary))
  # The class says that words of more than 100 characters are [UNK].
  write(folder / 'tokenizer_config.json', json.dumps(
      {'do_lower_case': True, 'tokenizer_class': 'BertTokenizer'}))
  write_safetensors(folder / 'model.safetensors',
                    bert_tensors(len(vocabulary)))


# Launchers of others, as far as they are documented: each starts the processes,
# but no more than MOST_PROCESSES, and gives each its place among them by its own
# variables.
LAUNCHER = f'#!/usr/bin/env python3\nMOST_PROCESSES = {MOST_PROCESSES}' + '''
import os, socket, subprocess, sys
name, arguments = os.path.basename(sys.argv[0]), sys.argv[1:]
count, nodes, command = 1, 1, []
while arguments and not command:
  head = arguments.pop(0)
  if head in ('-n', '--nproc-per-node'): count = int(arguments.pop(0))
  elif head == '--nnodes': nodes = int(arguments.pop(0))
  elif head in ('--rdzv-backend', '--rdzv-endpoint', '--max-restarts'):
    arguments.pop(0)
  elif head == '--no-python': pass
  elif head.startswith('-'): sys.exit(f'{name}: unknown option {head}')
  else: command = [head] + arguments
count = min(count * nodes, MOST_PROCESSES)
with socket.socket() as probe:
  probe.bind(('127.0.0.1', 0))
  port = str(probe.getsockname()[1])
processes = []
for rank in range(count):
  place = {'torchrun': {'RANK': rank, 'WORLD_SIZE': count, 'LOCAL_RANK': rank,
                        'LOCAL_WORLD_SIZE': count},
           'mpirun': {'OMPI_COMM_WORLD_RANK': rank,
                      'OMPI_COMM_WORLD_SIZE': count,
                      'OMPI_COMM_WORLD_LOCAL_RANK': rank,
                      'OMPI_COMM_WORLD_LOCAL_SIZE': count},
           'srun': {'SLURM_PROCID': rank, 'SLURM_STEP_NUM_TASKS': count,
                    'SLURM_LOCALID': rank, 'SLURM_JOB_ID': 1,
                    'SLURM_STEP_ID': 0}}[name]
  environment = dict(os.environ, MASTER_ADDR='127.0.0.1', MASTER_PORT=port,
                     **{key: str(value) for key, value in place.items()})
  processes.append(subprocess.Popen(command, env=environment))
sys.exit(max(abs(process.wait()) for process in processes))
'''

# A download is what was put beside the program; unzip and zip see to it that it
# is there.
CURL = '#!/bin/sh\ncp "$DOWNLOADS/$(basename "$2")" .\n'
UNZIP = '#!/bin/sh\ncp -r "$DOWNLOADS/${1%.zip}" .\n'
ZIP = '#!/bin/sh\nout=$1; shift; cat "$@" > "$out"\n'


def write_programs(folder, realetc):
  """The programs that the commands call, for PATH."""
  texts = {'curl': CURL, 'unzip': UNZIP, 'zip': ZIP,
           'realetc': f'#!/bin/sh\nexec "{realetc}" "$@"\n'}
  texts.update(dict.fromkeys(('torchrun', 'mpirun', 'srun'), LAUNCHER))
  for name, text in texts.items():
    write(folder / name, text)
    os.chmod(folder / name, stat.S_IRWXU)


def write_google_bert(work, vocabulary, run):
  """A BERT of Google's layout, as its zip archive has it."""
  name = 'uncased_L-12_H-768_A-12'
  write_hugging_face_bert(work / 'tanh_bert', vocabulary, activation='gelu_new')
  run('realetc import tanh_bert checkpoints/tanh_bert')
  run(f'realetc export checkpoints/tanh_bert downloads/{name}')
  run(f'cp -r downloads/{name} .')
  (work / 'downloads' / f'{name}.zip').touch()


def train_demos(run):
  """WikiHop's demo with and without residual scores, for pages that copy it."""
  for mode in ('off', 'sum'):
    run(f'realetc train tasks/wikihop/configs/demo.json --set '
        f'residual_attention={mode} --set train.steps=4 --set '
        f'train.evaluate_every=4 --output demos/{mode}')


def prepare(source, work, realetc, run):
  """Fills `work` so that the commands of every document find what they name.

  `run` executes a line of shell in `work`.
  """
  vocabulary = union_vocabulary(source)
  write_programs(work / 'programs', realetc)
  copy_tasks(source, work, len(vocabulary))
  copy_data(source, work)
  copy_glue(work)
  write(work / 'vocab.txt', ''.join(f'{piece}\n' for piece in vocabulary))
  write_hugging_face_bert(work / 'bert-base-uncased', vocabulary)
  run('realetc import bert-base-uncased checkpoints/etc_base_2x_pretrain --lift')
  write_google_bert(work, vocabulary, run)
  write_multi30k(source, work, run)
  train_demos(run)
