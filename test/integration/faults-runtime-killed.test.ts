import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, utimes } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseSettings } from '../../electron/core/settings/parse-settings.ts';
import type { LandlordEvent } from '../../shared/events.ts';
import { TALKER_SHAPE } from '../support/engine.ts';
import { seeded } from '../support/engine-agents.ts';
import { figure } from '../support/figures.ts';
import { gateIn } from '../support/gate.ts';
import { gguf, TINY_SHAPE } from '../support/gguf.ts';
import { freePort } from '../support/llama-server.ts';
import { alive } from '../support/processes.ts';
import { startRouter, type TestRouter, until } from '../support/router.ts';
import { type ServeProcess, startServeProcess } from '../support/serve-process.ts';
import { SocketClient } from '../support/socket-client.ts';

/** Higher for the long form. */
const KILLS = Number(process.env.LANDLORD_KILLS ?? 10);
/** A machine at its limit: told, and made up for. */
const SLOW = /has not answered for/;
const FLOORS = ['1GB', '2GB', '3GB'];

let router: TestRouter;
let folder = '';
let port = 0;
/** What a failure in a round would leave behind. */
let running: ServeProcess | null = null;
const random = seeded(Date.now());

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-killed-'));
  router = await startRouter({ models: { tiny: { shape: TINY_SHAPE } } });
  port = await freePort();
});
afterAll(async () => {
  await running?.end('SIGKILL');
  await router[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

/** What the runtime has said is done; null: it may be either, since a change was under way at the kill. */
interface Told {
  pinned: boolean | null;
  floor: string | null;
  readonly reports: Set<string>;
  readonly events: Map<number, string>;
}

const config = (): string =>
  [
    '# a comment of its owner',
    'floor: 1GB',
    'devices:',
    '  - { kind: system }',
    'backends:',
    `  - { name: router, kind: llama.cpp, url: "${router.url}", lanes: 1 }`,
    '',
  ].join('\n');

const textOf = ({ id: _id, ...event }: LandlordEvent): string => JSON.stringify(event);

/** Asks for everything that writes or holds something, over and over, until its runtime is gone. */
function keepBusy(served: ServeProcess, told: Told, model: string): () => Promise<void> {
  let over = false;
  const again = async (turn: () => Promise<void>): Promise<void> => {
    while (!over) await turn().catch(() => new Promise((resolve) => setTimeout(resolve, 5)));
  };
  const client = new SocketClient(served.socketPath);
  const all = [
    again(async () => {
      const answer = await served.post('/v1/chat/completions', {
        model: 'tiny',
        messages: [{ role: 'user', content: 'abc' }],
        max_tokens: 64,
        ignore_eos: true,
      });
      await answer.text();
    }),
    again(async () => {
      const wanted = random(2) === 0;
      told.pinned = null;
      const answer = await served.post(`/api/models/router%2Ftiny/${wanted ? 'pin' : 'unpin'}`);
      await answer.text();
      if (answer.ok) told.pinned = wanted;
    }),
    again(async () => {
      const view: unknown = JSON.parse(await (await served.post('/api/settings')).text());
      const fingerprint =
        typeof view === 'object' && view !== null && 'fingerprint' in view ? view.fingerprint : null;
      const yaml = FLOORS[random(FLOORS.length)] ?? '1GB';
      told.floor = null;
      const answer = await served.post('/api/change-setting', { key: 'floor', yaml, fingerprint });
      await answer.text();
      if (answer.ok) told.floor = yaml;
    }),
    again(async () => {
      const reason = `told ${performance.now()}`;
      const answer = await served.post('/api/reports', { kind: 'fail_open', reason });
      await answer.text();
      if (answer.ok) told.reports.add(reason);
    }),
    again(async () => {
      for (const event of await served.events('limit=50')) told.events.set(event.id, textOf(event));
    }),
    (async () => {
      if ((await client.ask(`REGISTER smol\t${model}`)) === null) return;
      while (!over) {
        client.send('DECODE smol 24 abc\n');
        let line: string | null = '';
        while (line !== null && line !== 'END_RESPONSE' && !line.startsWith('ERR'))
          line = await client.line();
        if (line === null) return;
      }
    })(),
  ];
  return async () => {
    over = true;
    client[Symbol.dispose]();
    await Promise.all(all);
  };
}

/** What a kill left half written is gone with a later start. */
async function leavesNoFiles(): Promise<void> {
  const left = async (): Promise<readonly string[]> => {
    const folders = [folder, join(folder, 'state')];
    const names = await Promise.all(
      folders.map(async (one) => (await readdir(one)).map((name) => join(one, name))),
    );
    return names.flat().filter((name) => name.endsWith('.tmp'));
  };
  const long = new Date(Date.now() - 3_600_000);
  for (const path of await left()) await utimes(path, long, long);
  await using _again = await startServeProcess({ folder, port });
  await until(async () => (await left()).length === 0, 20_000, 'what was half written to be gone');
}

/** What must hold between a kill and the next start. */
async function checkWhatIsLeft(served: ServeProcess, family: readonly number[], told: Told): Promise<void> {
  await until(() => alive(family).length === 0, 20_000, `no process to be left of ${family.join()}`);
  const { gate } = gateIn(served.gateDir);
  using turn = gate.tryTurn(router.url, { session: 'next' });
  expect(turn.kind).toBe('held');

  const text = await readFile(served.configFile, 'utf8');
  const settings = parseSettings(text, served.configFile, homedir());
  expect(settings.ok && text.includes('# a comment of its owner')).toBe(true);
  if (told.floor !== null) expect(text).toContain(`floor: ${told.floor}`);

  const file = join(served.stateDir, 'landlord.db');
  if (!existsSync(file)) return;
  const db = new DatabaseSync(file);
  expect(db.prepare('PRAGMA integrity_check').get()).toMatchObject({ integrity_check: 'ok' });
  db.close();
}

/** What the next runtime must show of all that was ever told. */
async function checkWhatIsThere(served: ServeProcess, told: Told): Promise<void> {
  const ids = new Set<number>();
  const reasons = new Set<string>();
  let after = 0;
  for (;;) {
    const page = await served.events(`limit=5000&after=${after}`);
    for (const event of page) {
      expect(ids.has(event.id), 'an id given twice').toBe(false);
      ids.add(event.id);
      reasons.add(event.reason);
      const before = told.events.get(event.id);
      if (before !== undefined) expect(textOf(event)).toBe(before);
      if (!SLOW.test(event.reason))
        expect(event.kind, event.reason).not.toMatch(/^(storage_failed|config_rejected)$/);
      after = Math.max(after, event.id);
    }
    if (page.length < 5000) break;
  }
  expect([...told.events.keys()].filter((id) => !ids.has(id))).toEqual([]);
  expect([...told.reports].filter((reason) => !reasons.has(reason))).toEqual([]);
  if (told.pinned === null) return;
  const wanted = told.pinned;
  await until(
    async () =>
      (await served.state()).models.some((one) => one.id === 'router/tiny' && one.pinned === wanted),
    20_000,
    `router/tiny to be ${wanted ? '' : 'un'}pinned, as it was told`,
  );
}

it(`the runtime is killed outright ${KILLS} times, at any instant of its start and its work: nothing is lost or left (rule 22)`, async () => {
  const model = await gguf(TALKER_SHAPE);
  const told: Told = { pinned: null, floor: '1GB', reports: new Set(), events: new Map() };
  const counts = { starting: 0, working: 0, processes: 0 };
  let first = true;
  for (let round = 0; round < KILLS; round += 1) {
    const atStart = round % 4 === 3;
    const served = await startServeProcess({
      folder,
      port,
      wait: false,
      ...(first ? { config: config() } : {}),
    });
    running = served;
    first = false;
    let stop = async (): Promise<void> => undefined;
    if (atStart) await new Promise((resolve) => setTimeout(resolve, random(1500)));
    else {
      await served.ready();
      await checkWhatIsThere(served, told);
      stop = keepBusy(served, told, model);
      // Some rounds long enough for a model to be loaded and the engine to answer, most not.
      await new Promise((resolve) => setTimeout(resolve, random(round % 2 === 0 ? 3000 : 500)));
    }
    const family = served.family();
    served.child.kill('SIGKILL');
    const how = await served.end();
    await stop();
    expect(how, served.err()).toBe('SIGKILL');
    await checkWhatIsLeft(served, family, told);
    counts[atStart ? 'starting' : 'working'] += 1;
    counts.processes += family.length - 1;
  }
  const last = await startServeProcess({ folder, port });
  await checkWhatIsThere(last, told);
  expect(await last.end()).toBe(0);
  await leavesNoFiles();
  figure(
    'runtime killed by SIGKILL',
    `${counts.starting} times while it started, ${counts.working} at work; ${counts.processes} processes of it ended; ${told.events.size} events and ${told.reports.size} reports told, all there`,
  );
}, 3_000_000);
