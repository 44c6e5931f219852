import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ChildEngineHost } from '../../../../electron/core/engine/child-host.ts';
import { fail, ok } from '../../../../shared/errors.ts';
import { type FakeChild, fakeProcesses } from './fake-process.ts';

const NEVER = new AbortController().signal;

describe('the engine host', () => {
  let processes: ReturnType<typeof fakeProcesses>;
  let host: ChildEngineHost;
  let nowMs: number;
  let ended: string[];
  beforeEach(() => {
    vi.useFakeTimers();
    nowMs = 0;
    processes = fakeProcesses();
    ended = [];
    host = new ChildEngineHost({
      startProcess: processes.start,
      clock: { monotonicMs: () => nowMs, epochMs: () => nowMs },
      silenceMs: 8000,
    });
    host.onEnded((why) => ended.push(why));
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  const child = (at: number): FakeChild => {
    const found = processes.children[at];
    if (found === undefined) throw new Error(`there is no child ${at}`);
    return found;
  };
  const tick = async (ms: number): Promise<void> => {
    nowMs += ms;
    await vi.advanceTimersByTimeAsync(ms);
  };
  const startUp = async (): Promise<void> => {
    const started = host.start();
    child(processes.children.length - 1).up();
    await started;
  };

  it('starts one child for all who ask at once', async () => {
    const both = Promise.all([host.start(), host.start()]);
    child(0).up();
    expect(await both).toMatchObject([{ value: { pid: 100 } }, { value: { pid: 100 } }]);
    expect(processes.children).toHaveLength(1);
    expect(host.facts()).toMatchObject({ pid: 100 });
  });

  it('starts another at once where one was killed while it started, and none for a while where the next dies too', async () => {
    const first = host.start();
    child(0).end({ signal: 'SIGKILL' });
    expect(await first).toMatchObject({ error: { code: 'engine_unavailable' } });
    const second = host.start();
    expect(processes.children).toHaveLength(2);
    child(1).end({ signal: 'SIGKILL' });
    expect(await second).toMatchObject({ error: { code: 'engine_unavailable' } });
    expect(await host.start()).toMatchObject({ error: { code: 'engine_unavailable' } });
    expect(processes.children).toHaveLength(2);
    await tick(5000);
    await startUp();
    child(2).end();
    await startUp();
    expect(processes.children).toHaveLength(4);
  });

  it('has a load that comes while a child is asked to end wait for the next one', async () => {
    await startUp();
    const stopped = host.stop();
    const load = host.loadModel({ path: '/a.gguf', gpuLayers: null }, NEVER);
    await tick(0);
    expect(child(0).heard.at(-1)).toEqual({ type: 'stop' });
    expect(child(0).calls()).toEqual([]);
    child(0).end({ code: 0, signal: null });
    await stopped;
    await tick(0);
    child(1).up();
    await tick(0);
    child(1).answer(child(1).calls()[0]?.id ?? 0, ok({ modelId: '2.m1' }));
    expect(await load).toMatchObject({ value: { modelId: '2.m1' } });
    expect(ended).toEqual([]);
  });

  it('starts a child for a load, and none for what only an earlier child could have made', async () => {
    expect(await host.tokenize('1.m1', 'x', false)).toMatchObject({ error: { code: 'engine_ended' } });
    expect(await host.unloadModel('1.m1')).toEqual(ok(undefined));
    expect(processes.children).toHaveLength(0);
    const load = host.loadModel({ path: '/a.gguf', gpuLayers: null }, NEVER);
    child(0).up();
    await tick(0);
    child(0).answer(child(0).calls()[0]?.id ?? 0, ok({ modelId: '1.m1' }));
    expect(await load).toMatchObject({ value: { modelId: '1.m1' } });
  });

  it('answers all that waited when the child crashes, tells it once, and starts another with the next call', async () => {
    await startUp();
    const waiting = Promise.all([host.tokenize('1.m1', 'x', false), host.memory()]);
    await tick(0);
    child(0).end({ signal: 'SIGABRT', lastWords: 'x\nggml.c:12: GGML_ASSERT(a == b) failed\n0: frame\n' });
    for (const answer of await waiting) {
      expect(answer).toMatchObject({ error: { code: 'engine_ended' } });
      expect(answer.ok ? '' : answer.error.message).toContain('GGML_ASSERT(a == b) failed');
    }
    expect(ended).toHaveLength(1);
    expect(host.facts()).toBeNull();
    const again = host.memory();
    child(1).up();
    await tick(0);
    // What the first made is not asked of the second, whose ids may look the same.
    expect(await host.tokenize('1.m1', 'x', false)).toMatchObject({ error: { code: 'engine_ended' } });
    child(1).answer(child(1).calls()[0]?.id ?? 0, ok({ residentBytes: 5 }));
    expect(await again).toEqual(ok({ residentBytes: 5 }));
  });

  it('kills a child that gives no sign of life, and does not wait for it to be gone', async () => {
    await startUp();
    const waiting = host.memory();
    await tick(3000);
    child(0).pong();
    await tick(6000);
    expect(child(0).killed).toBe(false);
    await tick(9000);
    expect(child(0).killed).toBe(true);
    expect(await waiting).toMatchObject({ error: { code: 'engine_ended' } });
    expect(ended[0]).toContain('did not answer');
  });

  it('kills a child whose native work does not end, though it answers', async () => {
    await startUp();
    const waiting = host.memory();
    await tick(1000);
    child(0).pong(500_000);
    expect(child(0).killed).toBe(false);
    child(0).pong(700_000);
    expect(child(0).killed).toBe(true);
    expect(await waiting).toMatchObject({ error: { code: 'engine_ended' } });
    expect(ended[0]).toContain('has not ended for 700 s');
  });

  it('starts no more children while two that were killed do not go', async () => {
    for (const at of [0, 1]) {
      await startUp();
      await tick(20_000);
      expect(child(at).killed).toBe(true);
    }
    expect(await host.start()).toMatchObject({ error: { code: 'engine_unavailable' } });
    child(0).end({ signal: 'SIGKILL' });
    await startUp();
    expect(host.facts()).toMatchObject({ pid: 102 });
  });

  it('says what is missing, and does not try again at every call', async () => {
    const first = host.start();
    child(0).unavailable('Run npm ci.');
    expect(await first).toMatchObject({ error: { code: 'engine_unavailable', message: 'Run npm ci.' } });
    child(0).end({ signal: 'SIGKILL' });
    expect(await host.memory()).toMatchObject({ error: { message: 'Run npm ci.' } });
    expect(processes.children).toHaveLength(1);
    await tick(6000);
    await startUp();
    expect(ended).toEqual([]);
  });

  it('says so where no process can be started, and tries again with the next call', async () => {
    let isFull = true;
    const one = new ChildEngineHost({
      startProcess(events) {
        if (isFull) throw new Error('spawn ENOMEM');
        return processes.start(events);
      },
    });
    expect(await one.start()).toMatchObject({
      error: { code: 'engine_unavailable', message: 'The engine could not be started: spawn ENOMEM.' },
    });
    isFull = false;
    const second = one.start();
    child(0).up();
    expect(await second).toMatchObject({ ok: true });
  });

  it('cancels a call in the child, and takes its answer', async () => {
    await startUp();
    const abort = new AbortController();
    const pieces: unknown[] = [];
    const decode = host.decode(
      { contextId: '1.c1', tokens: [1], maxTokens: 5 },
      (piece) => pieces.push(piece),
      abort.signal,
    );
    const id = child(0).calls()[0]?.id ?? 0;
    child(0).tell(id, { token: 4, text: 'a' });
    abort.abort();
    expect(child(0).heard.at(-1)).toEqual({ type: 'cancel', id });
    child(0).answer(id, ok({ stopped: 'cancelled' }));
    expect(await decode).toEqual(ok({ stopped: 'cancelled' }));
    expect(pieces).toEqual([{ token: 4, text: 'a' }]);
    expect(
      await host.decode({ contextId: '1.c1', tokens: [1], maxTokens: 5 }, () => {}, abort.signal),
    ).toEqual(fail('cancelled', 'It was cancelled before it began.'));
  });

  it('unloads a model only after its users had their moment, even where one of them fails', async () => {
    await startUp();
    const order: string[] = [];
    const save = Promise.withResolvers<void>();
    host.onUnloading(async () => {
      await save.promise;
      order.push('saved');
    });
    host.onUnloading(() => Promise.reject(new Error('broken')));
    const unload = host.unloadModel('1.m1').then(() => order.push('unloaded'));
    await tick(10);
    expect(child(0).calls()).toEqual([]);
    save.resolve();
    await tick(0);
    const call = child(0).calls()[0];
    expect(call).toMatchObject({ op: 'unloadModel', ask: { modelId: '1.m1', force: true } });
    child(0).answer(call?.id ?? 0, ok(true));
    await unload;
    expect(order).toEqual(['saved', 'unloaded']);
  });

  it('stops in order, by force where the child does not, and calls neither a crash', async () => {
    await startUp();
    const waiting = host.memory();
    await tick(0);
    const stop = host.stop();
    await tick(0);
    expect(child(0).heard.at(-1)).toEqual({ type: 'stop' });
    await tick(5000);
    expect(child(0).killed).toBe(true);
    expect(await waiting).toMatchObject({ error: { code: 'engine_ended' } });
    child(0).end({ signal: 'SIGKILL' });
    await stop;
    expect(ended).toEqual([]);
    await host.stop();
  });
});
