import { mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, isAbsolute } from 'node:path';
import { fail, ok, type Result } from '../../../shared/errors.ts';
import { formatBytes } from '../../../shared/format.ts';
import type { ArgsOf, Done } from '../../../shared/ipc-schema.ts';
import type { ModelAdded } from '../engine/add-model.ts';
import type { AgentDesk } from '../engine/desk/desk-api.ts';
import { ggufPath, modelNameOf } from '../engine/gguf-path.ts';
import type { SettingsFile } from '../settings/settings-file.ts';

/**
 * Gives the embedded engine a model, as `landlord engine add` does: into the config, all else of which
 * stays. Errors: `bad_input`, `bad_model_file`, `config_rejected`, `storage_failed`.
 */
export async function addModel(
  settings: SettingsFile,
  { name, file }: ArgsOf<'addModel'>,
): Promise<Result<Done>> {
  const path = pathOf(file);
  if (path === null)
    return fail(
      'bad_input',
      'Write the whole path of the file, from / or ~/ on: the runtime has no folder of yours.',
    );
  const found = await ggufPath(path);
  if (!found.ok) return found;
  const { withEmbeddedModel } = await import('../engine/add-model.ts');
  await mkdir(dirname(settings.file), { recursive: true, mode: 0o700 }).catch(() => undefined);
  const added: ModelAdded[] = [];
  const written = await settings.edit((text) => {
    const made = withEmbeddedModel(text, name ?? modelNameOf(path), path);
    if (!made.ok) return made;
    added.push(made.value);
    return ok(made.value.text);
  });
  if (!written.ok) return written;
  const id = added.at(-1)?.id ?? '';
  return ok({ message: `${id} is ${path}. Ask for the model ${id} at the gateway.`, models: [id] });
}

/** As people paste it: with blanks and quotes around. null: it is not a whole path. */
function pathOf(file: string): string | null {
  const bare = file.trim().replace(/^(['"])(.*)\1$/, '$2');
  const path = bare.startsWith('~/') ? `${homedir()}${bare.slice(1)}` : bare;
  return isAbsolute(path) ? path : null;
}

/** An agent of the engine goes for good, with its conversation, whoever registered it. Errors: `bad_input`. */
export async function forgetAgent(
  desk: AgentDesk | null,
  { agent }: ArgsOf<'forgetAgent'>,
): Promise<Result<Done>> {
  if (desk === null) return fail('not_supported', 'There is no engine here.');
  const gone = await desk.unregister(agent);
  if (!gone.ok) return { ok: false, error: gone.error.error };
  const { releasedBytes } = gone.value;
  const back = releasedBytes === 0 ? '' : ` ${formatBytes(releasedBytes)} is given back.`;
  return ok({ message: `${agent} is gone, with its conversation.${back}`, numbers: { releasedBytes } });
}
