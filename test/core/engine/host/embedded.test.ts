import { beforeEach, describe, expect, it } from 'vitest';
import type { BackendChange } from '../../../../electron/core/backends/backend.ts';
import { EmbeddedBackend } from '../../../../electron/core/backends/embedded.ts';
import { ChildEngineHost } from '../../../../electron/core/engine/child-host.ts';
import type { CallMessage } from '../../../../electron/core/engine/messages.ts';
import { fail, ok, type Result } from '../../../../shared/errors.ts';
import { type FakeChild, fakeProcesses } from './fake-process.ts';

const NEVER = new AbortController().signal;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the embedded backend', () => {
  let processes: ReturnType<typeof fakeProcesses>;
  let host: ChildEngineHost;
  let backend: EmbeddedBackend;
  let changes: string[];
  const clock = { monotonicMs: () => 1000, epochMs: () => 1000 };
  /** What the settings have now. */
  let current: readonly EmbeddedBackend[] = [];
  const make = (models: Record<string, string>, before: EmbeddedBackend | null = null): EmbeddedBackend =>
    new EmbeddedBackend({
      name: 'embedded',
      url: 'http://x',
      models,
      engine: host,
      clock,
      before,
      all: () => current,
    });
  beforeEach(() => {
    processes = fakeProcesses();
    current = [];
    host = new ChildEngineHost({ startProcess: processes.start, clock });
    backend = make({ smol: '/smol.gguf', vectors: '/vectors.gguf' });
    changes = [];
    backend.start((change: BackendChange) => changes.push(`${change.model} ${change.what}`));
  });
  const child = (): FakeChild => {
    const last = processes.children.at(-1);
    if (last === undefined) throw new Error('no child was started');
    return last;
  };
  const status = (name: string, of = backend) => of.snapshot().models.find((model) => model.name === name);
  /** Answers the next call of this kind, which has been made by then. */
  const answer = async (op: CallMessage['op'], result: Result<unknown>): Promise<CallMessage> => {
    await turn();
    const call = child()
      .calls()
      .findLast((one) => one.op === op);
    if (call === undefined) throw new Error(`${op} was not called`);
    child().answer(call.id, result);
    await turn();
    return call;
  };
  const loadUp = async (name: string, generates = true): Promise<void> => {
    await backend.load(name, NEVER);
    if (host.facts() === null) child().up();
    await answer(
      'loadModel',
      ok({
        modelId: '1.m1',
        fileBytes: 10,
        hostBytes: 100,
        deviceBytes: null,
        generates,
        trainedContextTokens: 512,
      }),
    );
    if (generates)
      await answer(
        'createContext',
        ok({ contextId: '1.c1', contextTokens: 512, hostBytes: 20, deviceBytes: null }),
      );
    else await answer('openEmbeddings', ok({ hostBytes: 7, deviceBytes: null }));
  };
  const calls = (op: CallMessage['op']): number =>
    child()
      .calls()
      .filter((call) => call.op === op).length;

  it('starts no engine to be looked at', async () => {
    await turn();
    expect(backend.snapshot()).toMatchObject({ status: 'up', kind: 'embedded' });
    expect(status('smol')).toMatchObject({
      status: 'unloaded',
      busy: false,
      process: null,
      countedBytes: null,
    });
    expect(await backend.confirmIdle('smol', NEVER)).toEqual({ busy: false });
    expect(processes.children).toHaveLength(0);
  });

  it('loads weights and a context no larger than the model was trained for, and counts both', async () => {
    const accepted = await backend.load('smol', NEVER);
    expect(accepted).toEqual(ok(undefined));
    expect(status('smol')?.status).toBe('loading');
    await loadUp('smol');
    expect(status('smol')).toMatchObject({ status: 'loaded', countedBytes: 120, contextTokens: 512 });
    expect(
      child()
        .calls()
        .find((call) => call.op === 'createContext'),
    ).toMatchObject({ ask: { contextTokens: 512 } });
    // On the CPU its memory is the system's, whatever card there is.
    expect(status('smol')?.args?.join(' ')).toContain('--n-gpu-layers 0');
    expect(changes).toEqual(['null up', 'smol loading', 'smol loaded']);
  });

  it('makes no chat context for a model of embeddings', async () => {
    await loadUp('vectors', false);
    expect(status('vectors')).toMatchObject({ status: 'loaded', countedBytes: 107 });
    expect(calls('createContext')).toBe(0);
  });

  it('counts the context for embeddings of a model that talks, from when it is first asked for them', async () => {
    await loadUp('smol');
    await backend.ready('smol', 'text', NEVER);
    expect(calls('openEmbeddings')).toBe(0);
    const ready = backend.ready('smol', 'embeddings', NEVER);
    await answer('openEmbeddings', ok({ hostBytes: 7, deviceBytes: null }));
    expect((await ready).ok).toBe(true);
    expect(status('smol')?.countedBytes).toBe(127);
    await backend.ready('smol', 'embeddings', NEVER);
    expect(calls('openEmbeddings')).toBe(1);
  });

  describe('with two names for one file', () => {
    const both = { one: '/smol.gguf', two: '/smol.gguf' };
    const other = (loaded: EmbeddedBackend, name: string) => status(name, loaded);
    /** Both loaded, by the engine as one model. */
    const loadBoth = async (): Promise<EmbeddedBackend> => {
      const made = make(both);
      backend = made;
      await loadUp('one');
      await loadUp('two');
      return made;
    };

    it('counts their weights once', async () => {
      const made = await loadBoth();
      expect(other(made, 'one')?.countedBytes).toBe(120);
      expect(other(made, 'two')?.countedBytes).toBe(20);
    });

    it('unloads both with one, since memory is only back when the weights are', async () => {
      const made = await loadBoth();
      await made.unload('two', NEVER);
      expect([other(made, 'one')?.status, other(made, 'two')?.status]).toEqual(['stopping', 'stopping']);
      await answer('unloadModel', ok(true));
      expect([other(made, 'one')?.status, other(made, 'two')?.status]).toEqual(['unloaded', 'unloaded']);
      expect(calls('unloadModel')).toBe(1);
      // Not as if it were still there: the next request loads it.
      const ready = made.ready('one', 'text', NEVER);
      await turn();
      expect(other(made, 'one')?.status).toBe('loading');
      host.stop().catch(() => undefined);
      child().end();
      await ready;
    });

    it('leaves one loaded where the settings drop the other', async () => {
      const made = await loadBoth();
      const stopped = made.stop();
      const next = make({ one: '/smol.gguf' }, made);
      current = [next];
      await turn();
      await answer('disposeContext', ok(null));
      const call = await answer('unloadModel', ok(false));
      await stopped;
      expect(call.ask).toMatchObject({ force: false });
      expect(other(next, 'one')?.status).toBe('loaded');
    });
  });

  it('says why a load failed, and gives back what it had', async () => {
    await backend.load('smol', NEVER);
    child().up();
    await answer('loadModel', ok({ modelId: '1.m1', generates: true, trainedContextTokens: 512 }));
    await answer('createContext', fail('engine_out_of_memory', 'No room.'));
    expect(await answer('unloadModel', ok(true))).toMatchObject({ ask: { modelId: '1.m1', force: false } });
    expect(status('smol')).toMatchObject({ status: 'failed', failure: 'No room.' });
    expect(changes.at(-1)).toBe('smol load_failed');
  });

  it('is busy while a chat runs, and not a moment longer', async () => {
    await loadUp('smol');
    const chat = host.chat(
      {
        contextId: '1.c1',
        messages: [],
        tools: [],
        toolChoice: 'auto',
        parallelTools: true,
        format: null,
        maxTokens: null,
        temperature: 0,
        topP: null,
        topK: null,
        minP: null,
        seed: null,
        frequencyPenalty: 0,
        presencePenalty: 0,
        stop: [],
      },
      () => {},
      NEVER,
    );
    expect(status('smol')).toMatchObject({ busy: true, lastBusyAtMs: 1000 });
    expect(await backend.confirmIdle('smol', NEVER)).toMatchObject({ busy: true });
    await answer('chat', ok({}));
    await chat;
    expect(status('smol')?.busy).toBe(false);
    expect(changes.slice(-2)).toEqual(['smol busy', 'smol idle']);
  });

  it('is unloaded only when its memory is back', async () => {
    await loadUp('smol');
    await backend.unload('smol', NEVER);
    expect(status('smol')?.status).toBe('stopping');
    expect(await backend.load('smol', NEVER)).toMatchObject({ ok: false });
    await answer('unloadModel', ok(true));
    expect(status('smol')).toMatchObject({ status: 'unloaded', countedBytes: null });
  });

  it('stops a load on its way when it is to be unloaded', async () => {
    await backend.load('smol', NEVER);
    child().up();
    await turn();
    await backend.unload('smol', NEVER);
    expect(child().heard.some((message) => message.type === 'cancel')).toBe(true);
    await answer('loadModel', fail('cancelled', 'The load was cancelled.'));
    expect(status('smol')?.status).toBe('unloaded');
  });

  it('has failed models after the engine crashed, which the next load brings back', async () => {
    await loadUp('smol');
    child().end();
    expect(status('smol')).toMatchObject({ status: 'failed', countedBytes: null });
    expect(status('smol')?.failure).toContain('crashed');
    expect(changes.at(-1)).toBe('smol crashed');
    await backend.load('smol', NEVER);
    expect(status('smol')?.status).toBe('loading');
  });

  it('leaves loaded what the changed settings name too, and unloads the rest', async () => {
    await loadUp('smol');
    const stopped = backend.stop();
    const next = make({ smol: '/smol.gguf', more: '/more.gguf' }, backend);
    await stopped;
    expect(status('smol', next)?.status).toBe('loaded');
    expect(
      child()
        .calls()
        .some((call) => call.op === 'unloadModel'),
    ).toBe(false);
    next.start(() => {});
    const last = next.stop();
    make({ smol: '/other.gguf' }, next);
    await answer('unloadModel', ok(true));
    await last;
    expect(
      child()
        .calls()
        .filter((call) => call.op === 'unloadModel'),
    ).toHaveLength(1);
  });
});
