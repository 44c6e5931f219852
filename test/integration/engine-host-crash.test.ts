import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { open, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { StateRecord } from '../../electron/core/engine/engine-host.ts';
import { must, NEVER, say, TALKER_SHAPE, type TestEngine, testEngine } from '../support/engine.ts';
import { until } from '../support/router.ts';

describe('an engine that ends', () => {
  let engine: TestEngine;
  beforeEach(() => {
    engine = testEngine();
  });
  afterEach(() => engine[Symbol.asyncDispose]());

  it('by SIGKILL in the middle of a decode: a clear error, and the conversation goes on in the next child', async () => {
    const { host } = engine;
    const model = await engine.load();
    const context = await engine.context(model, { contextTokens: 2048 });
    const prompt = await engine.tokens(model, 'Once upon a time');
    const first = await say(host, context.contextId, prompt, 10);
    const record = must(await host.saveState(context.contextId, join(engine.memoryFolder, 'story')));
    const undisturbed = await say(host, context.contextId, [], 30);
    must(await host.restoreState(context.contextId, record));

    const pid = must(await host.start()).pid;
    const cut = await host.decode(
      { contextId: context.contextId, tokens: [], maxTokens: 1500 },
      () => process.kill(pid, 'SIGKILL'),
      NEVER,
    );
    expect(cut).toMatchObject({ ok: false, error: { code: 'engine_ended' } });
    expect(cut.ok ? '' : cut.error.message).toMatch(/killed.*started again/s);
    await until(() => engine.ended.length === 1, 10_000, 'the end to be told');
    expect(host.facts()).toBeNull();

    // What was of the first child is no more; its ids never mean something of the next.
    const late = await host.decode(
      { contextId: context.contextId, tokens: [], maxTokens: 1 },
      () => {},
      NEVER,
    );
    expect(late).toMatchObject({ ok: false, error: { code: 'engine_ended' } });
    const again = await engine.load();
    expect(must(await host.start()).pid).not.toBe(pid);
    const anew = await engine.context(again, { contextTokens: 2048 });
    expect(anew.contextId).not.toBe(context.contextId);
    must(await host.restoreState(anew.contextId, record));
    expect((await say(host, anew.contextId, [], 30)).tokens).toEqual(undisturbed.tokens);
    expect(first.tokens).toHaveLength(10);
  });

  it('because it hangs: it is killed, and whoever waited is told', async () => {
    await using quick = testEngine({ silenceMs: 1500 });
    const { host } = quick;
    const model = await quick.load();
    const pid = must(await host.start()).pid;
    process.kill(pid, 'SIGSTOP');
    const answer = await host.tokenize(model.modelId, 'anybody there?', false);
    expect(answer).toMatchObject({ ok: false, error: { code: 'engine_ended' } });
    expect(quick.ended).toHaveLength(1);
    expect(quick.ended[0]).toContain('did not answer');
    await until(() => !existsSync(`/proc/${pid}`), 10_000, 'the hung child to be gone');
    must(await host.start());
  });

  it('with whoever started it, however that ends, and before the desktop when memory is short', async () => {
    const script = fileURLToPath(new URL('../support/engine-owner.ts', import.meta.url));
    const owner = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [text] = await once(owner.stdout, 'data');
    const pid = Number(String(text).trim());
    expect(readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8').trim()).toBe('800');
    // Stopped, it can't hear that its channel closed: the kernel ends it.
    process.kill(pid, 'SIGSTOP');
    owner.kill('SIGKILL');
    await until(() => !existsSync(`/proc/${pid}`), 10_000, 'the child to go with its owner');
  });

  it('before it began, where no program of it runs here: it says what to do', async () => {
    // There is no Metal on Linux.
    await using none = testEngine({ gpu: 'metal' });
    const answer = await none.host.start();
    expect(answer).toMatchObject({ ok: false, error: { code: 'engine_unavailable' } });
    expect(answer.ok ? '' : answer.error.message).toContain('choose the CPU');
    expect(none.ended).toEqual([]);
  });

  it('in order when it is stopped, and is there again with the next call', async () => {
    const { host } = engine;
    const model = await engine.load();
    const pid = must(await host.start()).pid;
    const context = await engine.context(model, { contextTokens: 2048 });
    const running = host.decode(
      { contextId: context.contextId, tokens: await engine.tokens(model, 'Hello'), maxTokens: 1500 },
      () => {},
      NEVER,
    );
    await host.stop();
    expect(existsSync(`/proc/${pid}`)).toBe(false);
    const cut = await running;
    if (cut.ok) expect(cut.value.stopped).toBe('cancelled');
    else expect(cut.error.code).toBe('engine_ended');
    expect(engine.ended).toEqual([]);
    await engine.load();
  });
});

describe('a saved state that is not what it was', () => {
  let engine: TestEngine;
  let record: StateRecord;
  let contextId: string;
  let expected: readonly number[];
  beforeEach(async () => {
    engine = testEngine();
    const model = await engine.load();
    contextId = (await engine.context(model)).contextId;
    await say(engine.host, contextId, await engine.tokens(model, 'A state of some length'), 20);
    record = must(await engine.host.saveState(contextId, join(engine.diskFolder, 'state')));
    expected = (await say(engine.host, contextId, [], 12)).tokens;
    must(await engine.host.restoreState(contextId, record));
  });
  afterEach(() => engine[Symbol.asyncDispose]());

  /** Refused, the context untouched and the child alive: it says what it would have said. */
  async function refused(other: Partial<StateRecord>, code: string): Promise<void> {
    const pid = engine.host.facts()?.pid;
    expect(await engine.host.restoreState(contextId, { ...record, ...other })).toMatchObject({
      ok: false,
      error: { code },
    });
    expect((await say(engine.host, contextId, [], 12)).tokens).toEqual(expected);
    expect(engine.host.facts()?.pid).toBe(pid);
    expect(engine.ended).toEqual([]);
  }

  it('is nobody else’s to read', async () => {
    expect((await stat(record.path)).mode & 0o777).toBe(0o600);
  });

  it('is refused where it was cut short', async () => {
    await truncate(record.path, Math.floor(record.bytes / 2));
    await refused({}, 'state_damaged');
  });

  it('is refused where one bit was flipped', async () => {
    const bytes = await readFile(record.path);
    const at = bytes.length - 100;
    bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
    await writeFile(record.path, bytes);
    await refused({}, 'state_damaged');
  });

  it.each(['flipped', 'cut'])('is refused in memory too, where it was %s since it was saved', async (how) => {
    const path = join(engine.memoryFolder, 'state');
    const kept = must(await engine.host.saveState(contextId, path));
    must(await engine.host.restoreState(contextId, kept));
    const file = await open(path, 'r+');
    const byte = Buffer.alloc(1);
    await file.read(byte, 0, 1, kept.bytes - 100);
    byte.writeUInt8(byte.readUInt8(0) ^ 1);
    if (how === 'flipped') await file.write(byte, 0, 1, kept.bytes - 100);
    else await file.truncate(kept.bytes - 10);
    await file.close();
    await refused(kept, 'state_damaged');
  });

  it('is refused where it is gone', async () => {
    await refused({ path: join(engine.diskFolder, 'nowhere') }, 'state_damaged');
  });

  it('is refused where it is of another model of the same shape', async () => {
    const twin = await engine.load({ ...TALKER_SHAPE, seed: 12 });
    const theirs = await engine.context(twin);
    await say(engine.host, theirs.contextId, [60, 61, 62], 5);
    const foreign = must(await engine.host.saveState(theirs.contextId, join(engine.diskFolder, 'foreign')));
    expect(foreign.fingerprint).not.toBe(record.fingerprint);
    await refused(foreign, 'state_mismatch');
  });

  it('is refused where it would go on with other last bits', async () => {
    await refused({ batchTokens: 128 }, 'state_mismatch');
    must(await engine.host.restoreState(contextId, record));
    await refused({ threads: 2 }, 'state_mismatch');
    must(await engine.host.restoreState(contextId, record));
    await refused({ flashAttention: !record.flashAttention }, 'state_mismatch');
  });

  it('makes the context anew, empty, where llama.cpp itself does not take it', async () => {
    // Whole by its own account, and no state at all.
    const { createHash } = await import('node:crypto');
    const bytes = Buffer.alloc(4096, 7);
    const path = join(engine.diskFolder, 'nonsense');
    await writeFile(path, bytes);
    const forged = {
      ...record,
      path,
      bytes: bytes.length,
      sha256: createHash('sha256').update(bytes).digest('hex'),
    };
    expect(await engine.host.restoreState(contextId, forged)).toMatchObject({ error: { code: 'internal' } });
    must(await engine.host.restoreState(contextId, record));
    expect((await say(engine.host, contextId, [], 12)).tokens).toEqual(expected);
    expect(engine.ended).toEqual([]);
  });
});
