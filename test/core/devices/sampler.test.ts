import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../electron/core/clock.ts';
import { backOff } from '../../../electron/core/devices/back-off.ts';
import { isStale, type SampleSet } from '../../../electron/core/devices/sample.ts';
import { ChildSampler, type ChildSamplerOptions } from '../../../electron/core/devices/sampler.ts';
import { procfs } from '../../../electron/core/process/procfs.ts';

const SILENT = fileURLToPath(new URL('../../fixtures/devices/silent-child.ts', import.meta.url));
const OWNER = fileURLToPath(new URL('../../fixtures/devices/sampler-owner.ts', import.meta.url));

async function until(what: string, holds: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1000; turn += 1) {
    if (holds()) return;
    await sleep(10);
  }
  throw new Error(`never: ${what}`);
}

/** Never 0: a signal to pid 0 goes to the whole group of the test runner. */
function pidOf(sampler: ChildSampler): number {
  if (sampler.pid === null) throw new Error('the sampler has no process now');
  return sampler.pid;
}

function isGone(pid: number): boolean {
  const stat = procfs().stat(pid);
  return stat === null || stat.state === 'Z';
}

describe('the sampler’s process', () => {
  let folder = '';
  let card = '';
  let sampler: ChildSampler | null = null;
  const sets: SampleSet[] = [];

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sampler-'));
    card = join(folder, 'card.json');
    writeFileSync(card, '{"name":"S","totalBytes":1000,"usedBytes":400}');
    sets.length = 0;
  });
  afterEach(async () => {
    await sampler?.stop();
    sampler = null;
    rmSync(folder, { recursive: true, force: true });
  });

  const hasReading = (): boolean => sets.at(-1)?.troubles.length === 0;

  function startSampler(options: ChildSamplerOptions = {}): ChildSampler {
    const made = new ChildSampler({
      devices: [{ kind: 'simulated', path: card }],
      periodMs: 50,
      processPeriodMs: 100,
      restart: backOff(20, 100),
      ...options,
    });
    sampler = made;
    made.start((set) => sets.push(set));
    return made;
  }

  it('sends readings that follow the device', async () => {
    startSampler();
    await until('a first reading', () => sets.some(({ devices }) => devices[0]?.usedBytes === 400));
    writeFileSync(card, '{"name":"S","totalBytes":1000,"usedBytes":700}');
    await until('the new figure', () => sets.at(-1)?.devices[0]?.usedBytes === 700);
    const sequences = sets.map(({ sequence }) => sequence);
    expect(sequences).toEqual([...sequences].sort((a, b) => a - b));
  });

  it('is replaced when it is killed, says so, and goes on counting', async () => {
    const made = startSampler();
    await until('a first reading', hasReading);
    const first = pidOf(made);
    process.kill(first, 'SIGKILL');
    await until('another process', () => made.pid !== null && made.pid !== first);
    await until('its readings', () => sets.at(-1)?.troubles.length === 0 && made.restarts === 1);
    const told = sets.find(({ troubles }) => troubles.some(({ code }) => code === 'sampler-restarted'));
    expect(told?.troubles[0]?.message).toContain('SIGKILL');
    expect(told?.processes).toBeNull();
    expect(new Set(sets.map(({ sequence }) => sequence)).size).toBe(sets.length);
  });

  it('that hangs is replaced, and its last figures grow stale by themselves', async () => {
    const made = startSampler({ silenceMs: 2000 });
    await until('a first reading', hasReading);
    const first = pidOf(made);
    process.kill(first, 'SIGSTOP');
    await until('the trouble', () => sets.some(({ troubles }) => troubles.length > 0));
    const told = sets.find(({ troubles }) => troubles.length > 0);
    expect(told?.troubles[0]).toMatchObject({
      code: 'sampler-restarted',
      message: expect.stringContaining('did not answer'),
    });
    const last = told?.devices[0];
    expect(last?.usedBytes).toBe(400);
    expect(last !== undefined && told !== undefined && isStale(last, told.takenAtMs)).toBe(true);
    await until('the hung one to go', () => isGone(first));
    await until('fresh readings', () => sets.at(-1)?.troubles.length === 0);
  });

  it('is not taken for silent when it was this process that did not run', async () => {
    // From inside, time that went by between two of its own looks: here a minute at once.
    let blockedMs = 0;
    const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + blockedMs };
    const made = startSampler({ silenceMs: 20_000, clock });
    await until('a first reading', hasReading);
    const first = pidOf(made);
    blockedMs = 60_000;
    const count = sets.length;
    await until('readings again', () => sets.length > count + 1);
    expect(pidOf(made)).toBe(first);
    expect(made.restarts).toBe(0);
    expect(sets.some(({ troubles }) => troubles.length > 0)).toBe(false);
  });

  it('that never answers gives a time-out, not a hang', async () => {
    const made = startSampler({ childPath: SILENT });
    const answer = await made.facts([process.pid], 100);
    expect(answer).toMatchObject({ ok: false, error: { code: 'timed_out' } });
    expect(await made.find({ port: 1, alias: null, routerPort: null }, 100)).toMatchObject({ ok: false });
  });

  it('without a process there is an answer at once', async () => {
    const made = new ChildSampler();
    expect(await made.facts([1])).toMatchObject({ ok: false, error: { code: 'timed_out' } });
    await made.stop();
  });

  // Through a file: there `spawn` throws, as it does where there is no memory for a process.
  it.each([['no-such-node'], ['card.json', 'node']])(
    'a program that can’t be started is a trouble, and is tried again: %j',
    async (...parts) => {
      const made = startSampler({ nodePath: join(folder, ...parts) });
      await until('a second try', () => made.restarts > 1);
      expect(sets[0]?.troubles[0]?.message).toContain('could not be started');
      expect(sets.every(({ devices }) => devices.length === 0)).toBe(true);
    },
  );

  it('stop() ends it for good', async () => {
    const made = startSampler();
    await until('a first reading', hasReading);
    const pid = pidOf(made);
    await made.stop();
    await until('its end', () => isGone(pid));
    const count = sets.length;
    await sleep(150);
    expect(sets.length).toBe(count);
    expect(made.restarts).toBe(0);
  });

  it('stop() comes back though the process is stopped', async () => {
    const made = startSampler();
    await until('a first reading', hasReading);
    const pid = pidOf(made);
    process.kill(pid, 'SIGSTOP');
    await made.stop();
    await until('its end', () => isGone(pid));
  });

  it('answers with facts of processes, and finds them', async () => {
    const made = startSampler();
    const facts = await made.facts([process.pid, 2 ** 22 + 1]);
    expect(facts).toMatchObject({ ok: true, value: [{ pid: process.pid, parentPid: process.ppid }] });
    expect(await made.find({ port: 1, alias: null, routerPort: null })).toMatchObject({ ok: true });
  });

  it('reads resident memory of the processes it is told to watch', async () => {
    const made = startSampler({ devices: [{ kind: 'system' }] });
    made.watch([process.pid]);
    await until('its row', () =>
      sets.some(({ processes }) => processes?.some(({ pid }) => pid === process.pid) ?? false),
    );
    const row = sets.flatMap(({ processes }) => processes ?? []).find(({ pid }) => pid === process.pid);
    expect(row).toMatchObject({ deviceId: 'system', source: 'statm' });
    expect(row?.bytes).toBeGreaterThan(10_000_000);
  });

  it('goes when its owner is killed', async () => {
    const owner = spawn(process.execPath, [OWNER], { stdio: ['ignore', 'pipe', 'inherit'] });
    let said = '';
    owner.stdout.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
    await until('the child’s pid', () => /^\d+\n/.test(said));
    const pid = Number(said.split('\n')[0]);
    expect(isGone(pid)).toBe(false);
    owner.kill('SIGKILL');
    await until('the child’s end', () => isGone(pid));
  });
});

describe('back-off', () => {
  it('waits longer each time, up to a limit, and starts over after a success', () => {
    const retry = backOff(100, 350);
    expect(retry.due(0)).toBe(true);
    const waits = [0, 1, 2, 3].map(() => {
      retry.failed(1000);
      return retry.waitMs;
    });
    expect(waits).toEqual([100, 200, 350, 350]);
    expect([retry.due(1349), retry.due(1350)]).toEqual([false, true]);
    retry.worked();
    expect([retry.due(0), retry.waitMs]).toEqual([true, 0]);
  });
});
