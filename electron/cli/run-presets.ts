import { readFile, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { messageOf } from '../../shared/errors.ts';
import { formatBytes } from '../../shared/format.ts';
import { DEFAULT_FLAGS } from '../core/ledger/footprint/flags.ts';
import { readCompanions, readModel } from '../core/ledger/footprint/footprint-of-load.ts';
import { makeSlotFolder } from '../core/parking/slot-folder.ts';
import { resolvePaths } from '../core/state-dir/paths.ts';
import { readCount } from './arguments.ts';
import type { Run } from './commands.ts';
import { EXIT } from './exit-codes.ts';
import { budgetFor } from './presets/budget.ts';
import { choose, type Wish } from './presets/choose.ts';
import { type FoundModel, findModels, type LeftOut } from './presets/find-models.ts';
import { MARK, objectionToPath, type PresetModel, presetText } from './presets/preset-text.ts';
import { columns, paint, plain, type Terminal } from './terminal.ts';
import { usageError } from './usage.ts';

/** Writes a llama.cpp preset file for a folder of GGUF files. Exit code 65: there is no usable one in it. */
export const runPresets: Run = async (invocation, terminal) => {
  const ctx = readCount(invocation, 'ctx', 256, 16_777_216);
  const parallel = readCount(invocation, 'parallel', 1, 64);
  for (const count of [ctx, parallel])
    if (!count.ok) return usageError(invocation.command, count.error.message, terminal);
  const folder = resolve(invocation.positionals[0] ?? '.');
  const contents = await findModels(folder);
  if (!contents.ok) return refuse(terminal, contents.error.message, EXIT.badFile);
  const budget = await budgetFor(invocation);
  if (!budget.ok) {
    return budget.error.code === 'bad_input'
      ? usageError(invocation.command, budget.error.message, terminal)
      : refuse(terminal, budget.error.message, EXIT.refused);
  }
  const wish: Wish = {
    budgetBytes: budget.value.bytes,
    deviceKind: budget.value.deviceKind,
    contextTokens: ctx.ok ? ctx.value : null,
    slots: (parallel.ok ? parallel.value : null) ?? 1,
  };
  const models: PresetModel[] = [];
  const leftOut: LeftOut[] = [...contents.value.leftOut];
  for (const model of contents.value.models) {
    const made = await presetOf(model, wish);
    if ('why' in made) leftOut.push(made);
    else models.push(made);
  }
  const slotFolder = resolvePaths({
    env: process.env,
    home: homedir(),
    cwd: process.cwd(),
    stateDir: invocation.text('state-dir') ?? undefined,
  }).parkedDir;
  const text = presetText({
    folder,
    budgetBytes: budget.value.bytes,
    how: budget.value.how,
    models,
    leftOut,
    slots: wish.slots,
    slotFolder,
  });
  if (invocation.flag('dry-run')) {
    terminal.out(text.trimEnd());
    return models.length === 0 ? EXIT.badFile : EXIT.done;
  }
  if (models.length === 0) {
    const why = leftOut.map((one) => `  ${plain(basename(one.path))}: ${plain(one.why)}`);
    return refuse(terminal, [`no model of ${plain(folder)} can be used.`, ...why].join('\n'), EXIT.badFile);
  }
  const file = resolve(invocation.text('output') ?? join(folder, 'models.ini'));
  const stands = await readFile(file, 'utf8').catch(() => null);
  if (stands !== null && !stands.startsWith(MARK) && !invocation.flag('force')) {
    return refuse(
      terminal,
      `${plain(file)} is there and was not made by this command; add --force to replace it.`,
      EXIT.refused,
    );
  }
  // A server that finds no such folder does not start.
  const noFolder = makeSlotFolder(slotFolder);
  if (noFolder !== null) return refuse(terminal, plain(noFolder), EXIT.refused);
  try {
    await writeFile(file, text);
  } catch (thrown) {
    return refuse(terminal, `${plain(file)} can't be written: ${plain(messageOf(thrown))}.`, EXIT.refused);
  }
  terminal.out(report(file, budget.value, models, leftOut, terminal));
  return EXIT.done;
};

async function presetOf(model: FoundModel, wish: Wish): Promise<PresetModel | LeftOut> {
  const out = (why: string): LeftOut => ({ path: model.path, why });
  for (const path of [model.path, model.projectorPath ?? '']) {
    const objection = objectionToPath(path);
    if (objection !== null) return out(objection);
  }
  const header = await readModel(model.path);
  if (!header.ok) return out(header.error.message);
  if (!header.value.hasWeights) return out('It is a header alone, without weights.');
  const companions = await readCompanions({ ...DEFAULT_FLAGS, projectorPath: model.projectorPath });
  if (!companions.ok) return out(companions.error.message);
  const choice = choose(header.value, companions.value, wish);
  return choice.kind === 'none' ? out(choice.why) : { model, choice };
}

function report(
  file: string,
  budget: { readonly bytes: number; readonly how: string },
  models: readonly PresetModel[],
  leftOut: readonly LeftOut[],
  terminal: Terminal,
): string {
  const rows = models.map(({ model, choice }) => [
    `  ${plain(model.name)}`,
    formatBytes(choice.footprint.totalBytes),
    plain(choice.why.join(' ')),
  ]);
  return [
    `${plain(file)}: ${models.length} ${models.length === 1 ? 'model' : 'models'}, each alone in ${formatBytes(budget.bytes)} (${plain(budget.how)}).`,
    ...columns(rows, [1]),
    ...leftOut.map((one) =>
      paint(terminal, 'quiet', `  left out: ${plain(basename(one.path))}: ${plain(one.why)}`),
    ),
    '',
    `Start it with: llama-server --models-preset ${plain(file)} --port 8080`,
    'Or let VRAM Landlord run it; in its config:',
    `  - { name: router, kind: llama.cpp, url: "http://127.0.0.1:8080", command: [llama-server, --models-preset, ${JSON.stringify(file)}, --port, "8080"] }`,
  ].join('\n');
}

function refuse(terminal: Terminal, message: string, code: number): number {
  terminal.err(`landlord presets: ${message}`);
  return code;
}
