import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { RequestLog } from '../../../electron/core/events/request-log.ts';
import { type RequestRecord, tokensPerS } from '../../../electron/core/events/request-record.ts';
import { SqliteStore } from '../../../electron/core/events/sqlite-store.ts';
import { ok } from '../../../shared/errors.ts';

function record(atMs: number, change: Partial<RequestRecord> = {}): RequestRecord {
  return {
    atMs,
    model: 'router/small',
    backend: 'router',
    agent: 'writer',
    class: 'interactive',
    route: 'local',
    reason: null,
    status: 200,
    promptTokens: 12,
    generatedTokens: 40,
    waitedMs: 0,
    firstByteMs: 100,
    totalMs: 2_100,
    generatedMs: 2_000.5,
    ...change,
  };
}

describe('the history of requests', () => {
  it('outlives a restart, oldest first, and is found by model, agent and time', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'landlord-requests-'));
    const open = (): SqliteStore =>
      new SqliteStore({ file: join(folder, 'landlord.db'), now: Date.now, onTrouble: () => undefined });
    const now = Date.now();
    try {
      const first = open();
      const log = new RequestLog(first);
      const refused = record(now + 1, {
        route: 'refused',
        agent: null,
        status: null,
        firstByteMs: null,
        reason: 'client_left',
      });
      log.add(record(now));
      log.add(refused);
      log.add(record(now + 2, { model: 'router/other', agent: 'indexer', class: 'batch' }));
      await log.flush();
      await first.close();
      const second = open();
      const again = new RequestLog(second);
      const all = await again.query({});
      expect(all.ok && all.value.map((one) => one.atMs)).toEqual([now, now + 1, now + 2]);
      expect(all.ok && all.value[1]).toEqual(refused);
      const few = await again.query({ limit: 1 });
      expect(few.ok && few.value.map((one) => one.atMs)).toEqual([now + 2]);
      const found = await again.query({ model: 'router/small', agent: 'writer', sinceMs: now });
      expect(found.ok && found.value).toEqual([record(now)]);
      await second.close();
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it('keeps what could not be written and writes it the next time', async () => {
    let works = false;
    const written: RequestRecord[] = [];
    const log = new RequestLog({
      addRequests: async (records) => {
        if (works) written.push(...records);
        return works;
      },
      requests: async () => ok(written),
    });
    log.add(record(1));
    await log.flush();
    works = true;
    log.add(record(2));
    await log.flush();
    expect(written.map((one) => one.atMs)).toEqual([1, 2]);
  });
});

describe('tokens per second', () => {
  it('count while they were generated, and are unknown where the answer does not say how many or how long', () => {
    expect(tokensPerS(record(0, { generatedMs: 2_000 }))).toBe(20);
    expect(tokensPerS(record(0, { generatedTokens: null }))).toBeNull();
    expect(tokensPerS(record(0, { generatedMs: null }))).toBeNull();
    expect(tokensPerS(record(0, { generatedMs: 0 }))).toBeNull();
  });
});
