import { fail, ok } from '../../../../shared/errors.ts';
import { commandFlags } from '../../ledger/footprint/command-flags.ts';
import { flagValue } from '../../process/procfs-text.ts';
import { isProgram } from '../../process/programs.ts';
import { field } from '../http.ts';
import { positiveOf, textOf } from '../models-list.ts';
import { entriesOf, loopbackPort, type ToldModel, UNTOLD, withoutDoubles } from '../told-model.ts';
import { accepted, askSlots, errorIn, getJson, odd } from './answers.ts';
import type { Ask, Dialect } from './dialect.ts';

const NAMES_EVERY_MS = 30_000;
const LOAD_LIMIT_MS = 10 * 60_000;
const UNLOAD_LIMIT_MS = 60_000;
/** The second is where older releases have it. */
const PREFIXES = ['/v1', '/api/v1'] as const;

/** Lemonade Server (its server spec): `GET /v1/health` tells what is loaded, with pid, busy flag and address of each. */
export function lemonadeDialect(ownPort: number | null, nowMs: () => number): Dialect {
  let prefix: (typeof PREFIXES)[number] | null = null;
  let names: readonly { readonly name: string; readonly sizeBytes: number | null }[] = [];
  let namesAtMs: number | null = null;

  const health = async (ask: Ask) => {
    let last = odd(ask.http, '/v1/health', 'Lemonade');
    for (const one of prefix === null ? PREFIXES : [prefix]) {
      const path = `${one}/health`;
      const answer = await getJson(ask, path);
      if (!answer.ok) {
        last = answer.reading;
        if (answer.reading.status !== 404) break;
        continue;
      }
      const loaded = entriesOf(answer.json, 'all_models_loaded') ?? theOnlyOne(answer.json);
      if (loaded !== null) {
        prefix = one;
        return { ok: true as const, loaded, version: textOf(field(answer.json, 'version')) };
      }
      last = odd(ask.http, path, 'Lemonade');
    }
    return last;
  };

  const readNames = async (ask: Ask): Promise<void> => {
    if (namesAtMs !== null && nowMs() - namesAtMs < NAMES_EVERY_MS) return;
    const list = await getJson(ask, `${prefix ?? '/v1'}/models`);
    const entries = list.ok ? entriesOf(list.json, 'data') : null;
    if (entries === null) return;
    namesAtMs = nowMs();
    names = entries.flatMap((entry) => {
      const name = textOf(field(entry, 'id'));
      if (name === null || field(entry, 'downloaded') === false || isElsewhere(entry)) return [];
      const size = field(entry, 'size');
      // In gigabytes, as its list of models has it.
      const sizeBytes = typeof size === 'number' && size > 0 ? Math.round(size * 1e9) : null;
      return [{ name, sizeBytes }];
    });
  };

  return {
    kind: 'lemonade',
    title: 'Lemonade',
    tellsLoading: false,
    isServer: (command) => isProgram(command, 'lemonade-server', 'lemonade-router', 'lemonade', 'lemond'),
    cannot: null,
    noProcess: 'Lemonade tells no port of its own for it.',
    async identify(ask) {
      prefix = null;
      const found = await health(ask);
      return found.ok ? ok({ version: found.version }) : fail('backend_refused', found.message);
    },
    async read(ask) {
      const found = await health(ask);
      if (!found.ok) return found;
      await readNames(ask);
      const there = found.loaded.flatMap((entry) => toldModel(entry, ownPort) ?? []);
      const sizeOf = (name: string) => names.find((one) => one.name === name)?.sizeBytes ?? null;
      return {
        ok: true,
        models: withoutDoubles([
          ...there.map((model) => ({ ...model, weightsBytes: sizeOf(model.name) })),
          ...names.map((one) => ({ ...UNTOLD, name: one.name, busy: false, weightsBytes: one.sizeBytes })),
        ]),
      };
    },
    events: null,
    async load(ask, model) {
      const path = `${prefix ?? '/v1'}/load`;
      const limits = { timeoutMs: LOAD_LIMIT_MS, signal: ask.signal };
      return accepted(await ask.http.post(path, { model_name: model.name }, limits), ask.http, path, errorIn);
    },
    async unload(ask, model) {
      const path = `${prefix ?? '/v1'}/unload`;
      const limits = { timeoutMs: UNLOAD_LIMIT_MS, signal: ask.signal };
      return accepted(await ask.http.post(path, { model_name: model.name }, limits), ask.http, path, errorIn);
    },
    async confirmIdle(ask, model, port) {
      // Its own word first, read anew; then that of the process itself.
      const now = await health(ask);
      if (!now.ok) return { busy: null, why: now.message.replace(/\.\s*$/, '') };
      const told = now.loaded
        .flatMap((entry) => toldModel(entry, ownPort) ?? [])
        .find((one) => one.name === model.name);
      if (told?.busy === true)
        return { busy: true, detail: `Lemonade says that ${model.name} serves a request` };
      const slots = port === null ? null : await askSlots(ask, model.name, port);
      if (slots !== null && slots.busy !== null) return slots;
      return told === undefined || told.busy === false ? { busy: false } : slots;
    },
    notes: (models) =>
      models.some((model) => model.status === 'loaded' && model.busy === null)
        ? ['This Lemonade does not tell whether a model works: that is told by the CPU time of its process.']
        : [],
    forget() {
      prefix = null;
      namesAtMs = null;
      names = [];
    },
  };
}

/** Before it could hold several (and in its Python package still) it names one, or null; anything else: null. */
function theOnlyOne(body: unknown): readonly unknown[] | null {
  const name = field(body, 'model_loaded');
  if (name === undefined || field(body, 'checkpoint_loaded') === undefined) return null;
  return textOf(name) === null ? [] : [{ model_name: name }];
}

function toldModel(entry: unknown, ownPort: number | null): ToldModel | null {
  const name = textOf(field(entry, 'model_name'));
  if (name === null || isElsewhere(entry)) return null;
  const port = loopbackPort(field(entry, 'backend_url'));
  const pid = positiveOf(field(entry, 'pid'));
  const options = field(entry, 'recipe_options');
  const command = commandOf(entry);
  const contextTokens =
    positiveOf(field(options, 'ctx_size')) ?? positiveOf(commandFlags(command ?? []).contextTokens);
  const lastUse = field(entry, 'last_use');
  const isThere = field(entry, 'loaded') !== false && field(entry, 'status') !== 'loading';
  return {
    ...UNTOLD,
    name,
    status: isThere ? 'loaded' : 'loading',
    statusText: isThere ? 'loaded' : 'loading',
    busy: isThere ? busyOf(entry) : null,
    usedMark: typeof lastUse === 'number' || typeof lastUse === 'string' ? String(lastUse) : null,
    args: argsOf(command, contextTokens, field(entry, 'device')),
    modelPath: command === null ? null : flagValue(command, '--model', '-m'),
    contextTokens,
    port,
    query:
      port === null || ownPort === null
        ? null
        : {
            port,
            alias: null,
            routerPort: ownPort,
            ownerName: 'Lemonade',
            ...(pid === null ? {} : { pid }),
          },
  };
}

/** A provider's model, by Lemonade's cloud recipe: it holds nothing here. */
function isElsewhere(entry: unknown): boolean {
  return field(entry, 'recipe') === 'cloud';
}

/** How its llama-server was really started, since Lemonade 11; null: not told, or another kind of server. */
function commandOf(entry: unknown): readonly string[] | null {
  const told = entriesOf(entry, 'launch_command')?.filter((word) => typeof word === 'string') ?? [];
  return isProgram(told, 'llama-server') ? told : null;
}

/** In llama-server's words. One that runs on the CPU or the NPU alone has nothing on a card. */
function argsOf(
  command: readonly string[] | null,
  contextTokens: number | null,
  device: unknown,
): readonly string[] | null {
  const isOffCard = typeof device === 'string' && /cpu|npu/i.test(device) && !/gpu/i.test(device);
  const offCard = isOffCard ? ['--gpu-layers', '0'] : [];
  if (command !== null) return [...command, ...offCard];
  const args = [...(contextTokens === null ? [] : ['--ctx-size', String(contextTokens)]), ...offCard];
  return args.length === 0 ? null : ['lemonade', ...args];
}

function busyOf(entry: unknown): boolean | null {
  const flags = [field(entry, 'is_busy'), field(entry, 'is_streaming')];
  if (flags.includes(true) || field(entry, 'status') === 'in_use') return true;
  return flags[0] === false ? false : null;
}
