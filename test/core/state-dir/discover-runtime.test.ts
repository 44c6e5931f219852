import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { discoverRuntime } from '../../../electron/core/state-dir/discover-runtime.ts';
import { type LandlordPaths, resolvePaths } from '../../../electron/core/state-dir/paths.ts';
import { acquireRuntimeLock, type RuntimeLock } from '../../../electron/core/state-dir/runtime-lock.ts';
import { loadOrCreateToken } from '../../../electron/core/state-dir/token.ts';

const SELF = { pid: process.pid, startedAt: '2026-01-02T03:04:05.000Z', version: '1.0.0' };
let dir = '';
let paths: LandlordPaths;
let server: Server | null = null;
let lock: RuntimeLock | null = null;
let status = 200;
let authorizations: (string | undefined)[] = [];

beforeEach(async () => {
  dir = await mkdtemp(`${tmpdir()}/landlord-discover-`);
  paths = resolvePaths({ env: {}, home: dir, cwd: dir, stateDir: dir });
  status = 200;
  authorizations = [];
});

afterEach(async () => {
  await lock?.release();
  lock = null;
  server?.closeAllConnections();
  server?.close();
  server = null;
  await rm(dir, { recursive: true, force: true });
});

async function listen(): Promise<number> {
  const listening = createServer((request, response) => {
    authorizations.push(request.headers.authorization);
    if (status === 0) return;
    response.writeHead(status).end('{}');
  });
  server = listening;
  listening.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  const address = listening.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

async function hold(url: string | null): Promise<void> {
  const acquired = await acquireRuntimeLock(paths, SELF);
  if (!acquired.ok) throw new Error(acquired.error.message);
  lock = acquired.value;
  if (url !== null) await lock.publish(url);
}

describe('discoverRuntime', () => {
  it('finds the runtime that holds the lock and answers, with its token', async () => {
    const made = await loadOrCreateToken(paths.tokenFile, null);
    const port = await listen();
    await hold(`http://127.0.0.1:${port}/`);
    expect(await discoverRuntime(paths)).toEqual({
      ok: true,
      value: {
        url: `http://127.0.0.1:${port}`,
        pid: process.pid,
        token: made.ok ? made.value.token : 'none',
      },
    });
    // Whoever listens there gets no token before it has proven itself.
    expect(authorizations).toEqual([undefined]);
  });

  it('does not believe a record whose lock is free, though a server answers there', async () => {
    await loadOrCreateToken(paths.tokenFile, null);
    const port = await listen();
    await hold(`http://127.0.0.1:${port}`);
    await lock?.release();
    expect(await discoverRuntime(paths)).toMatchObject({ ok: false, error: { code: 'no_runtime' } });
    expect(authorizations).toEqual([]);
  });

  it('sends nothing to an address that is not loopback', async () => {
    await hold('http://192.0.2.1:7781');
    const found = await discoverRuntime(paths);
    expect(found).toMatchObject({ ok: false, error: { code: 'no_runtime' } });
    if (!found.ok) expect(found.error.message).toContain('not loopback');
  });

  it.each([
    ['answers with an error', 500, 'HTTP 500'],
    ['hangs', 0, 'within 100 ms'],
  ])('says that the runtime holds its lock but %s', async (_name, code, words) => {
    status = code;
    const port = await listen();
    await hold(`http://127.0.0.1:${port}`);
    const found = await discoverRuntime(paths, { timeoutMs: 100 });
    expect(found).toMatchObject({ ok: false, error: { code: 'no_runtime', numbers: { pid: process.pid } } });
    if (!found.ok) expect(found.error.message).toContain(words);
  });

  it('says that none was started, or that it is still starting', async () => {
    const none = await discoverRuntime(paths);
    expect(none.ok ? '' : none.error.message).toContain('landlord serve');
    await hold(null);
    const starting = await discoverRuntime(paths);
    expect(starting.ok ? '' : starting.error.message).toContain('still starting');
  });

  it('goes to the port it was told, whatever the record says', async () => {
    await loadOrCreateToken(paths.tokenFile, null);
    const port = await listen();
    expect(await discoverRuntime(paths, { port })).toMatchObject({
      ok: true,
      value: { url: `http://127.0.0.1:${port}`, pid: null },
    });
  });

  it('says what a port did where nothing answers there', async () => {
    const found = await discoverRuntime(paths, { port: 9 });
    expect(found.ok ? '' : found.error.message).toMatch(
      /^http:\/\/127\.0\.0\.1:9 does not answer; start a runtime/,
    );
  });
});
