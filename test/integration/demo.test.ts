import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isAlive, type Seen } from '../../electron/core/demo/children.ts';
import { procfs } from '../../electron/core/process/procfs.ts';
import { type Ran, type Running, startLandlord } from '../support/landlord.ts';
import { llamaServer } from '../support/llama-server.ts';
import { until } from '../support/router.ts';

/** The demo as a person runs it, over the real llama-server and over its stand-ins. */
interface Played extends Ran {
  readonly processes: readonly Seen[];
  readonly wallMs: number;
  readonly left: readonly string[];
}

const LIMIT_MS = 150_000;
let root = '';
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'landlord-demo-e2e-'));
  // Fetched here if need be: the demo itself fetches nothing.
  await llamaServer();
});
afterAll(() => rmSync(root, { recursive: true }));

function descendants(pid: number): readonly Seen[] {
  const proc = procfs();
  const all = proc.pids().flatMap((one) => proc.stat(one) ?? []);
  const under = (parent: number): readonly Seen[] =>
    all
      .filter((one) => one.parentPid === parent)
      .flatMap((one) => [{ pid: one.pid, startTimeTicks: one.startTimeTicks }, ...under(one.pid)]);
  return under(pid);
}

function start(name: string, ...args: readonly string[]): { running: Running; folder: string } {
  const folder = mkdtempSync(join(root, name));
  const running = startLandlord(['demo', ...args], { TMPDIR: folder, HOME: folder, LANG: 'C.UTF-8' });
  return { running, folder };
}

/** Plays to the end; its processes are looked for all along. */
async function playToEnd(name: string, ...args: readonly string[]): Promise<Played> {
  const startedAtMs = performance.now();
  const { running, folder } = start(name, ...args);
  const processes = new Map<string, Seen>();
  const look = setInterval(() => {
    for (const one of descendants(running.child.pid ?? 0))
      processes.set(`${one.pid} ${one.startTimeTicks}`, one);
  }, 100);
  const ran = await running.ended;
  clearInterval(look);
  const wallMs = performance.now() - startedAtMs;
  console.log(`landlord demo ${args.join(' ')}: ${(wallMs / 1000).toFixed(1)} s`);
  return { ...ran, processes: [...processes.values()], wallMs, left: readdirSync(folder) };
}

/** What must be in the story, in this order. */
const STORY: readonly RegExp[] = [
  /Watch it live \(opens once\): http:\/\/127\.0\.0\.1:\d+\/\?key=/,
  /Act 1/,
  /pipeline-9b \(10\.6 GB\) and bge-m3 \(1\.2 GB\)\. 21\.8 GB is free/,
  /33\.9 GB of 34\.2 GB is used: 300 MB is left/,
  /would_evict: .*qwen-27b: 300 MB \w+ free, under the floor of 4\.0 GB, and it has been idle/,
  /driver_eviction: /,
  /\[█+.*\] 34\.2 GB of 34\.2 GB used, 0 B free, \d+\.\d GB out in system RAM/,
  /stop qwen-27b by hand/,
  /would_evict: .*vision-8b: qwen-27b-lean is loading and needs 18\.6 GB, 14\.1 GB \w+ free/,
  /4\.5 GB was missing\. Its request fails after \d\.\d s with HTTP 500/,
  /Act 2/,
  /guards_changed: The guards are on/,
  /33\.9 GB of 34\.2 GB is used: 300 MB is left/,
  /evicted: \w+ qwen-27b: 300 MB \w+ free, under the floor of 4\.0 GB.* 21\.5 GB came back/,
  /music player asks for its 500 MB and gets it: 21\.8 GB was free because qwen-27b had left, 21\.3 GB still is.*: 0 B/,
  /killed: \w+ vision-8b: qwen-27b-lean is loading and needs 18\.6 GB/,
  /its process \d+, proven by port, name and parent, was killed: gone 1\.\d s after/,
  /qwen-27b-lean got its memory and answered its first request in \d\.\d s/,
  /What was different/,
  /The request to qwen-27b-lean: HTTP 500 after .* With the guards: an answer after/,
  /npm start/,
];

function expectStory(out: string): void {
  let at = 0;
  for (const line of STORY) {
    const found = line.exec(out.slice(at));
    expect(found, `${line} in:\n${out.slice(at)}`).not.toBeNull();
    at += (found?.index ?? 0) + (found?.[0].length ?? 0);
  }
}

function expectNothingLeft(played: Pick<Played, 'processes' | 'left'>): void {
  expect(played.processes.length).toBeGreaterThan(4);
  expect(played.processes.filter(isAlive)).toEqual([]);
  expect(played.left).toEqual([]);
}

describe('landlord demo', () => {
  it.concurrent(
    'tells its story over a real router from what really happened, and leaves nothing behind',
    async () => {
      const played = await playToEnd('real');
      expect([played.code, played.err]).toEqual([0, '']);
      expectStory(played.out);
      expect(played.out).toMatch(/a real llama\.cpp router \(llama-server \d/);
      expect(played.out).toMatch(/The router ends vision-8b by force (?:9\.\d|1\d) s after/);
      expect(played.out).not.toContain('\u001b');
      expectNothingLeft(played);
    },
    LIMIT_MS,
  );

  it.concurrent(
    'without a llama-server, stand-ins play the same story under the same guards',
    async () => {
      const played = await playToEnd('stand-ins', '--simulated');
      expect([played.code, played.err]).toEqual([0, '']);
      expectStory(played.out);
      expect(played.out).toContain('stand-in processes play the router');
      expect(played.out).not.toContain('The router ends');
      expectNothingLeft(played);
    },
    LIMIT_MS,
  );

  it(
    'Ctrl-C in the middle of a held-up load and a long request ends all of it: 130, no process, no file',
    async () => {
      const { running, folder } = start('cut');
      await until(() => running.out().includes('vision-8b: qwen-27b-lean is loading'), LIMIT_MS, 'the race');
      const processes = descendants(running.child.pid ?? 0);
      running.child.kill('SIGINT');
      const ended = await running.ended;
      expect([ended.code, ended.err]).toEqual([
        130,
        'landlord demo: The demo was ended; all it had started is gone.\n',
      ]);
      expectNothingLeft({ processes, left: readdirSync(folder) });
    },
    LIMIT_MS,
  );
});
