import { mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { ok } from '../../shared/errors.ts';
import { type ModelAdded, withEmbeddedModel } from '../core/engine/add-model.ts';
import { ggufPath } from '../core/engine/gguf-path.ts';
import { readInChild } from '../core/settings/config-reader.ts';
import { SettingsFile } from '../core/settings/settings-file.ts';
import { resolvePaths } from '../core/state-dir/paths.ts';
import type { Run } from './commands.ts';
import { EXIT } from './exit-codes.ts';
import { plain } from './terminal.ts';
import { usageError } from './usage.ts';

/** Adds a model to the embedded engine's: 0 done, 65 no GGUF file, 69 refused. */
export const runEngine: Run = async (invocation, terminal) => {
  const [what, name = '', file = ''] = invocation.positionals;
  if (what !== 'add') return usageError(invocation.command, `it can add a model, not ${what}.`, terminal);
  const model = await ggufPath(resolve(file));
  if (!model.ok) {
    terminal.err(`landlord engine: ${plain(model.error.message)}`);
    return EXIT.badFile;
  }
  const config = invocation.text('config') ?? undefined;
  const stateDir = invocation.text('state-dir') ?? undefined;
  const paths = resolvePaths({ env: process.env, home: homedir(), cwd: process.cwd(), stateDir, config });
  await mkdir(paths.configDir, { recursive: true, mode: 0o700 }).catch(() => undefined);
  const settings = new SettingsFile({
    paths,
    home: homedir(),
    reader: readInChild(process.execPath),
    now: Date.now,
    onSettings: () => {},
    onEvent: () => {},
  });
  let added: ModelAdded | null = null;
  const written = await settings.edit((text) => {
    const made = withEmbeddedModel(text, name, model.value);
    if (!made.ok) return made;
    added = made.value;
    return ok(made.value.text);
  });
  await settings.stop();
  const done: ModelAdded | null = added;
  if (!written.ok || done === null) {
    const why = written.ok ? 'nothing was changed' : written.error.message;
    terminal.err(`landlord engine: ${plain(why)}`);
    return EXIT.refused;
  }
  terminal.out(plain(sentenceOf(done, model.value, paths.configFile)));
  return EXIT.done;
};

function sentenceOf({ id, before }: ModelAdded, file: string, config: string): string {
  const change =
    before === null || before === file ? `${id} is ${file}` : `${id} is ${file} now, instead of ${before}`;
  return `${change}, as ${config} says. Ask for the model ${id} at the gateway, or \`landlord load ${id}\`.`;
}
