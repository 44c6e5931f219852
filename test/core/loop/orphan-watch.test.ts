import { expect, it } from 'vitest';
import { orphanIdentity, orphansAmong, straysAmong } from '../../../electron/core/backends/orphans.ts';
import { OrphanWatch, withoutProcess } from '../../../electron/core/loop/orphan-watch.ts';
import type { ProcessFacts } from '../../../electron/core/process/identity.ts';
import { ok } from '../../../shared/errors.ts';

const facts = (change: Partial<ProcessFacts>): ProcessFacts => ({
  pid: 200,
  startTimeTicks: 20,
  parentPid: 1,
  parentStartTimeTicks: 1,
  uid: 0,
  command: ['/usr/bin/llama-server', '--port', '41001', '--alias', 'qwen'],
  listeningPorts: [41_001],
  routerPort: 8080,
  cpuMs: 0,
  state: 'S',
  ...change,
});
const ROUTER = facts({
  pid: 100,
  startTimeTicks: 10,
  routerPort: null,
  command: ['llama-server'],
  listeningPorts: [8080],
});
const RUNNER = facts({ routerPort: null, command: ['ollama', 'runner', '--model', '/x', '--port', '41001'] });
const OLLAMA = facts({ pid: 100, startTimeTicks: 10, routerPort: null, command: ['ollama', 'serve'] });

it.each<[string, readonly ProcessFacts[], boolean]>([
  ['a router’s child whose router is gone', [facts({})], true],
  ['one whose router runs', [ROUTER, facts({ parentPid: 100 })], false],
  [
    'one whose router’s pid another program has now',
    [facts({ parentPid: 100 }), facts({ pid: 100, routerPort: null, command: ['ollama', 'serve'] })],
    true,
  ],
  [
    'one whose parent is younger than itself',
    [{ ...ROUTER, startTimeTicks: 30 }, facts({ parentPid: 100 })],
    true,
  ],
  ['an Ollama runner whose Ollama is gone', [RUNNER], true],
  ['one whose Ollama runs', [OLLAMA, { ...RUNNER, parentPid: 100 }], false],
  ['a server that stands by itself, as a service does', [facts({ routerPort: null })], false],
  ['what has ended and was not collected', [facts({ state: 'Z' })], false],
])('%s', (_, processes, isOrphan) => {
  expect(orphansAmong(processes).some(({ facts: one }) => one.pid === 200)).toBe(isOrphan);
});

it('a llama-server that a newer Ollama started is an orphan when its Ollama is gone', () => {
  const child = facts({
    routerPort: null,
    command: ['/usr/local/lib/ollama/llama-server', '--model', '/blobs/sha256-5c', '--port', '41001'],
  });
  expect(orphansAmong([child])).toMatchObject([{ why: 'the Ollama that started it is gone' }]);
  expect(orphansAmong([OLLAMA, { ...child, parentPid: 100 }])).toEqual([]);
});

const STRAY = facts({ routerPort: null, isAlone: true });
it.each<[string, ProcessFacts, boolean]>([
  ['a crashed app’s llama-server', STRAY, true],
  ['one that a service keeps, or whose parent lives', { ...STRAY, isAlone: false }, false],
  ['one of which that was not looked at', facts({ routerPort: null }), false],
  ['one at a backend’s port', { ...STRAY, listeningPorts: [8080] }, false],
  ['one whose ports can not be read', { ...STRAY, listeningPorts: null }, false],
  ['a server for many models', { ...STRAY, command: ['ollama', 'serve'] }, false],
  ['one that is an orphan by proof', facts({ isAlone: true }), false],
])('stray: %s', (_, server, isStray) => {
  expect(straysAmong([server], new Set([8080]))).toHaveLength(isStray ? 1 : 0);
});

it('is told once, where it holds memory of a device, with how it can be ended', () => {
  const watch = new OrphanWatch();
  const holds = (pid: number) => [
    {
      pid,
      name: 'llama-server',
      deviceId: 'sim:0',
      bytes: 4_000_000_000,
      type: 'C' as const,
      startTimeTicks: null,
      gttBytes: null,
      source: 'nvml' as const,
    },
  ];
  expect(watch.look([facts({})], [])).toEqual({ events: [], offers: [] });
  const [event, ...others] = watch.look([facts({})], holds(200)).events;
  expect(others).toEqual([]);
  expect(event).toMatchObject({ kind: 'orphan_found', numbers: { pid: 200, heldBytes: 4_000_000_000 } });
  expect(event?.reason).toMatch(
    /Process 200 holds 4\.0 GB and serves nobody: the llama\.cpp router on port 8080.*landlord orphans --end 200/,
  );
  expect(watch.look([facts({})], holds(200)).events).toEqual([]);
});

it('a stray is told and offered as what belongs to nobody known, and only where the backends are known', () => {
  const watch = new OrphanWatch();
  expect(watch.look([STRAY], [row(200)]).offers).toEqual([]);
  const { events, offers } = watch.look([STRAY], [row(200)], null, new Set([8080]));
  expect(events[0]?.reason).toMatch(
    /Process 200 holds 4\.0 GB and belongs to nobody known here: what started it is gone, and no server known here is at port 41001/,
  );
  expect(offers.map((offer) => offer.label)).toEqual(['End process 200']);
});

it('can be proven a second time only where it listens and its command can be read', () => {
  expect(orphanIdentity({ facts: facts({}), why: '' })).toMatchObject({ pid: 200, port: 41_001 });
  expect(orphanIdentity({ facts: facts({ listeningPorts: null }), why: '' })).toBeNull();
  expect(orphanIdentity({ facts: facts({ command: null }), why: '' })).toBeNull();
});

const row = (pid: number, deviceId = 'pci:0000:03:00.0') => ({
  pid,
  name: 'llama-server',
  deviceId,
  bytes: 4_000_000_000,
  type: 'C' as const,
  startTimeTicks: null,
  gttBytes: null,
  source: 'nvml' as const,
});

it('is offered to be ended as long as it stands, and ended once it is proven again', async () => {
  const armed: number[] = [];
  const watch = new OrphanWatch(async (identity) => {
    armed.push(identity.pid);
    return ok({
      kill: async () => ok({ goneAfterMs: 5 }),
      [Symbol.dispose]: () => undefined,
    });
  });
  for (const _look of [1, 2])
    expect(watch.look([facts({})], [row(200)]).offers.map((offer) => offer.id)).toEqual(['orphan 200 20']);
  // Nothing to prove it by: it is told, and not offered.
  expect(watch.look([facts({ listeningPorts: [] })], [row(200)]).offers).toEqual([]);
  const [offer] = watch.look([facts({})], [row(200)]).offers;
  expect(await offer?.run(new AbortController().signal)).toMatchObject({
    value: { message: 'Process 200 is gone.' },
  });
  expect(armed).toEqual([200]);
});

it('what a driver lists without a living process is said as such (32-zombie-rows)', () => {
  const living = facts({ pid: 1 });
  const zombie = facts({ pid: 2, state: 'Z', parentPid: 77 });
  const found = withoutProcess([row(1), row(2), row(3), row(4, 'sim:0')], [living, zombie]);
  expect(found.map((event) => event.numbers.pid)).toEqual([2, 3]);
  expect(found[0]?.reason).toMatch(/has ended and still counts for 4\.0 GB: process 77/);
  expect(found[1]?.reason).toMatch(/is not there: it runs in a container, or it has ended/);
  const watch = new OrphanWatch();
  expect(watch.look([], [row(3)], []).events).toHaveLength(1);
  expect(watch.look([], [row(3)], []).events).toEqual([]);
});
