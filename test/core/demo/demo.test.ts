import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { play } from '../../../electron/core/demo/acts.ts';
import { NINE, ROLES } from '../../../electron/core/demo/cast.ts';
import { holdUp, isAlive, see } from '../../../electron/core/demo/children.ts';
import { runDemo } from '../../../electron/core/demo/demo.ts';
import type { Answer } from '../../../electron/core/demo/demo-router.ts';
import { NotAsTold, type Stage, type StoryLine } from '../../../electron/core/demo/stage.ts';
import type { DemoWorld } from '../../../electron/core/demo/world.ts';
import { procfs } from '../../../electron/core/process/procfs.ts';
import { createFakeRuntime, sampleModel, sampleState } from '../../support/fake-runtime.ts';
import { until } from '../../support/router.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'landlord-demo-test-'));
  vi.stubEnv('TMPDIR', folder);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

function silentStage(): Stage & { readonly lines: StoryLine[] } {
  const lines: StoryLine[] = [];
  return { lines, say: (said) => void lines.push(...said), live: () => undefined };
}

/** A world in which every model is there and full, and the router answers as it is told. */
function fakeWorld(answer: Answer): DemoWorld {
  const state = sampleState();
  const runtime = createFakeRuntime(state);
  const [device] = state.devices;
  if (device === undefined) throw new Error('no device');
  return {
    runtime: { ...runtime, url: '', openUrl: '', notifications: () => [], stop: async () => undefined },
    router: {
      url: '',
      pid: 1,
      ask: async () => answer,
      load: async () => undefined,
      unload: async () => undefined,
      [Symbol.asyncDispose]: async () => undefined,
    },
    desktop: () => undefined,
    device: () => device,
    model: (name) =>
      sampleModel({
        id: `router/${name}`,
        measuredBytes: ROLES.find((role) => role.name === name)?.bytes ?? null,
      }),
    refusals: [],
    events: [],
    event: () => Promise.reject(new NotAsTold('no event came')),
    until: async (holds, _limitMs, what) => {
      if (!holds()) throw new NotAsTold(what);
    },
    wait: async () => undefined,
    answered: (asked) => asked,
    [Symbol.asyncDispose]: async () => undefined,
  };
}

describe('a demo in which something goes another way', () => {
  it('says what, and goes no further', async () => {
    const stage = silentStage();
    const cut: Answer = { status: 500, error: 'no such luck', tookMs: 12 };
    await expect(play(fakeWorld(cut), stage, true)).rejects.toThrow(
      'qwen-27b did not answer: HTTP 500 (no such luck)',
    );
    const said = stage.lines.map((line) => (line.kind === 'memory' ? '' : line.text)).join('\n');
    expect(said).toContain(NINE.name);
    expect(said).not.toContain('Act 2');
  });

  it('a server that does not start is an error in a sentence, and no file stays', async () => {
    const played = await runDemo({
      port: null,
      signal: new AbortController().signal,
      server: { command: '/bin/false', env: {}, version: '0' },
      stage: silentStage(),
    });
    expect(played.ok ? null : played.error).toMatchObject({
      code: 'backend_unreachable',
      message: expect.stringMatching(/router did not start: it ended with 1/),
    });
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('a load that is held up', () => {
  it('stops the process for so long and lets it go on; one that has gone is left alone', async () => {
    const { spawn } = await import('node:child_process');
    const child = spawn('sleep', ['60']);
    const { pid } = child;
    if (pid === undefined) throw new Error('no pid');
    const seen = see(pid);
    holdUp(pid, 150);
    await until(() => procfs().stat(pid)?.state === 'T', 2_000, 'it to stop');
    await until(() => procfs().stat(pid)?.state === 'S', 2_000, 'it to go on');
    child.kill('SIGKILL');
    await until(() => seen !== null && !isAlive(seen), 2_000, 'its end');
    expect(() => holdUp(pid, 10)).not.toThrow();
    expect(isAlive({ pid: process.pid, startTimeTicks: 1 })).toBe(false);
  });
});
