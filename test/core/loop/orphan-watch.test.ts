import { expect, it } from 'vitest';
import { orphanIdentity, orphansAmong } from '../../../electron/core/backends/orphans.ts';
import { OrphanWatch } from '../../../electron/core/loop/orphan-watch.ts';
import type { ProcessFacts } from '../../../electron/core/process/identity.ts';

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
  expect(watch.look([facts({})], [])).toEqual([]);
  const [event, ...others] = watch.look([facts({})], holds(200));
  expect(others).toEqual([]);
  expect(event).toMatchObject({ kind: 'orphan_found', numbers: { pid: 200, heldBytes: 4_000_000_000 } });
  expect(event?.reason).toMatch(
    /Process 200 holds 4\.0 GB and serves nobody: the llama\.cpp router on port 8080.*landlord orphans --end 200/,
  );
  expect(watch.look([facts({})], holds(200))).toEqual([]);
});

it('can be proven a second time only where it listens and its command can be read', () => {
  expect(orphanIdentity({ facts: facts({}), why: '' })).toMatchObject({ pid: 200, port: 41_001 });
  expect(orphanIdentity({ facts: facts({ listeningPorts: null }), why: '' })).toBeNull();
  expect(orphanIdentity({ facts: facts({ command: null }), why: '' })).toBeNull();
});
