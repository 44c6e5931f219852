import { fail, ok } from '../../../../shared/errors.ts';
import { shellWords } from '../../ledger/footprint/other-flags.ts';
import { startedCommand } from '../../ledger/footprint/started-command.ts';
import { flagValue } from '../../process/procfs-text.ts';
import { isProgram } from '../../process/programs.ts';
import { field, saidBy } from '../http.ts';
import { positiveOf, textOf } from '../models-list.ts';
import { entriesOf, loopbackPort, type ToldModel, UNTOLD, withoutDoubles } from '../told-model.ts';
import { accepted, askSlots, getJson, odd } from './answers.ts';
import type { Ask, Dialect } from './dialect.ts';
import { type Flights, isInFlight, nextFlights, parseSwapMessage } from './llama-swap-flights.ts';

/** Its configured models change with its config alone. */
const NAMES_EVERY_MS = 30_000;
const LOAD_LIMIT_MS = 10 * 60_000;
/** It answers an unload when the process has stopped. */
const UNLOAD_LIMIT_MS = 60_000;

const STATES: Readonly<Record<string, ToldModel['status']>> = {
  stopped: 'unloaded',
  shutdown: 'unloaded',
  starting: 'loading',
  ready: 'loaded',
  stopping: 'stopping',
};

/**
 * llama-swap (internal/server/api.go): `GET /running` for states, `GET /v1/models` for names only, since
 * that one shows a starting model as loaded, and `GET /api/events` for the requests in flight. Nothing
 * under `/upstream/` is asked while watching: it loads the model.
 */
export function llamaSwapDialect(ownPort: number | null, nowMs: () => number): Dialect {
  let names: readonly { readonly name: string; readonly aliases: readonly string[] }[] = [];
  let namesAtMs: number | null = null;
  let flights: Flights | null = null;

  const readNames = async (ask: Ask): Promise<void> => {
    if (namesAtMs !== null && nowMs() - namesAtMs < NAMES_EVERY_MS) return;
    const list = await getJson(ask, '/v1/models');
    const entries = list.ok ? entriesOf(list.json, 'data') : null;
    if (entries === null) return;
    namesAtMs = nowMs();
    names = entries.flatMap((entry) => {
      const name = textOf(field(entry, 'id'));
      const aliases = entriesOf(entry, 'aliases')?.filter((alias) => typeof alias === 'string') ?? [];
      return name === null ? [] : [{ name, aliases }];
    });
  };

  return {
    kind: 'llama-swap',
    title: 'llama-swap',
    tellsLoading: true,
    isServer: (command) => isProgram(command, 'llama-swap'),
    cannot: null,
    noProcess: 'llama-swap tells no port of its own for it, as when its command runs in a container.',
    async identify(ask) {
      const running = await getJson(ask, '/running');
      if (!running.ok) return fail('backend_refused', running.reading.message);
      if (entriesOf(running.json, 'running') === null) {
        return fail('backend_refused', odd(ask.http, '/running', 'llama-swap').message);
      }
      const version = await getJson(ask, '/api/version');
      return ok({ version: version.ok ? textOf(field(version.json, 'version')) : null });
    },
    async read(ask) {
      const running = await getJson(ask, '/running');
      if (!running.ok) return running.reading;
      const entries = entriesOf(running.json, 'running');
      if (entries === null) return odd(ask.http, '/running', 'llama-swap');
      await readNames(ask);
      const there = entries.flatMap((entry) => toldModel(entry, ownPort) ?? []);
      const ready = there.filter((model) => model.status === 'loaded').map((model) => model.name);
      const models = withoutDoubles([
        ...there.map((model) => {
          const aliases = names.find((one) => one.name === model.name)?.aliases ?? [];
          return { ...model, aliases, busy: busyOf(model, [model.name, ...aliases], ready) };
        }),
        ...names.map((one) => ({ ...UNTOLD, ...one, busy: false })),
      ]);
      return { ok: true, models };
    },
    events: {
      path: '/api/events',
      onMessage(data) {
        const message = parseSwapMessage(data);
        if (message?.type === 'modelStatus') return 'list';
        if (message?.type !== 'inflight') return null;
        flights = nextFlights(flights, message.data);
        return 'busy';
      },
      onClosed() {
        flights = null;
      },
    },
    async load(ask, model) {
      const path = `/upstream/${pathOf(model.name)}/health`;
      const answer = await ask.http.get(path, { timeoutMs: LOAD_LIMIT_MS, signal: ask.signal });
      // What its server says of its health is its own affair: a server without /health is loaded all the same.
      if (answer.kind === 'answer' && answer.status === 404 && saidBy(answer) === null) return ok(undefined);
      return accepted(answer, ask.http, path);
    },
    async unload(ask, model) {
      const path = `/api/models/unload/${pathOf(model.name)}`;
      const answer = await ask.http.post(path, {}, { timeoutMs: UNLOAD_LIMIT_MS, signal: ask.signal });
      if (answer.kind === 'answer' && (answer.status === 404 || answer.status === 405)) {
        return await unloadOnly(ask, model);
      }
      return accepted(answer, ask.http, path);
    },
    async confirmIdle(ask, model, port) {
      const ready = [model.name];
      const told = isInFlight(flights, [model.name, ...model.aliases], flights?.byId == null ? [] : ready);
      if (told === true)
        return { busy: true, detail: `llama-swap has a request for ${model.name} in flight` };
      // One with a sleep timer of its own would be woken by the question.
      const sleeps = model.args?.some((word) => word.startsWith('--sleep-idle-seconds')) === true;
      const slots = port === null || sleeps ? null : await askSlots(ask, model.name, port);
      if (slots !== null && slots.busy !== null) return slots;
      return told === false ? { busy: false } : slots;
    },
    notes: () =>
      flights === null
        ? [
            'This llama-swap does not tell which requests are in flight: busy is told by the CPU time of its processes.',
          ]
        : flights.byId === null
          ? ['This llama-swap tells how many requests are in flight, but not for which model.']
          : [],
    forget() {
      namesAtMs = null;
      names = [];
    },
  };

  function busyOf(model: ToldModel, own: readonly string[], ready: readonly string[]): boolean | null {
    if (model.status === 'unloaded') return false;
    return isInFlight(flights, own, ready);
  }
}

/** Before it could unload one model by name it could unload all: the same, where only this one runs. */
async function unloadOnly(ask: Ask, model: ToldModel) {
  const running = await getJson(ask, '/running');
  const others = (running.ok ? entriesOf(running.json, 'running') : null)?.filter(
    (entry) =>
      textOf(field(entry, 'model')) !== model.name && STATES[String(field(entry, 'state'))] !== 'unloaded',
  );
  if (others === undefined || others.length > 0) {
    return fail(
      'not_supported',
      `This llama-swap is too old to unload ${model.name} alone, and others run: update it, or unload all by its page.`,
    );
  }
  return accepted(
    await ask.http.get('/unload', { timeoutMs: UNLOAD_LIMIT_MS, signal: ask.signal }),
    ask.http,
    '/unload',
  );
}

function toldModel(entry: unknown, ownPort: number | null): ToldModel | null {
  const name = textOf(field(entry, 'model'));
  if (name === null) return null;
  const statusText = textOf(field(entry, 'state')) ?? 'not told';
  const cmd = textOf(field(entry, 'cmd'));
  const args = cmd === null ? null : startedCommand(shellWords(cmd));
  const port = loopbackPort(field(entry, 'proxy')) ?? portIn(args);
  const ttlS = positiveOf(field(entry, 'ttl'));
  return {
    ...UNTOLD,
    name,
    status: STATES[statusText] ?? 'unknown',
    statusText,
    args,
    modelPath: args === null ? null : flagValue(args, '--model', '-m'),
    contextTokens: args === null ? null : positiveOf(Number(flagValue(args, '--ctx-size', '-c') ?? 0)),
    port,
    query:
      port === null || ownPort === null
        ? null
        : { port, alias: null, routerPort: ownPort, ownerName: 'llama-swap' },
    ttlMs: ttlS === null ? null : ttlS * 1000,
  };
}

function portIn(args: readonly string[] | null): number | null {
  const port = Number((args === null ? null : flagValue(args, '--port')) ?? 0);
  return Number.isInteger(port) && port > 0 && port < 65_536 ? port : null;
}

/** A name may hold slashes; each of its parts is one of the path. */
function pathOf(name: string): string {
  return name.split('/').map(encodeURIComponent).join('/');
}
