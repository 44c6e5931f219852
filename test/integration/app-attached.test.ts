import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startShell } from '../../electron/shell/app.ts';
import { realParts } from '../../electron/shell/real-source.ts';
import { connectRuntime, type RuntimeSource } from '../../electron/shell/runtime-source.ts';
import { callChannel } from '../../shared/ipc-schema.ts';
import { createFakeElectron } from '../fakes/electron.ts';
import { type Running, startLandlord } from '../support/landlord.ts';
import { until } from '../support/router.ts';

const LIMIT_MS = 60_000;

let folder = '';
let served: Running | null = null;
let source: RuntimeSource | null = null;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-app-attached-'));
  await writeFile(join(folder, 'config.yaml'), 'devices:\n  - { kind: system }\nbackends: []\n');
});
afterEach(async () => {
  await source?.stop();
  source = null;
  if (served?.child.exitCode === null && served.child.signalCode === null) served.child.kill('SIGKILL');
  await served?.ended;
  served = null;
  await rm(folder, { recursive: true, force: true });
});

async function serve(): Promise<void> {
  const files = ['--config', join(folder, 'config.yaml'), '--state-dir', join(folder, 'state')];
  const running = startLandlord(['serve', '--port', '0', ...files]);
  served = running;
  await until(() => running.out().includes('its page opens'), LIMIT_MS, 'landlord serve to be ready');
}

async function startApp(): Promise<{
  readonly source: RuntimeSource;
  readonly windows: () => number;
  ask(name: 'wake' | 'host'): Promise<unknown>;
}> {
  const electron = createFakeElectron();
  const choice = { configPath: join(folder, 'config.yaml'), stateDir: join(folder, 'state'), port: 0 };
  const started = startShell({
    electron,
    connect: async () => {
      const connected = await connectRuntime(realParts, choice, 100);
      if (connected.ok) source = connected.value;
      return connected;
    },
    pageDir: '/none',
    preloadPath: '/none/preload.cjs',
    lostLimitMs: 50,
  });
  electron.ready();
  await started;
  const [window] = electron.windows;
  if (source === null || window === undefined) throw new Error(`The app did not start: ${electron.errors}`);
  return {
    source,
    windows: () => electron.windows.length,
    ask: (name) => electron.ipcMain.invoke(window.sender(), callChannel(name), {}),
  };
}

describe('the app and a service: real runtimes', () => {
  it('shows the one that runs, says when it is killed, and hosts one over the same state', async () => {
    await serve();
    const app = await startApp();
    expect(app.source.link().kind).toBe('attached');
    expect(app.source.owned).toBe(false);
    await until(() => app.source.api.state().devices.length > 0, LIMIT_MS, 'a device of the service');
    expect(await app.ask('wake')).toMatchObject({ ok: true });

    served?.child.kill('SIGKILL');
    await until(() => app.source.link().kind === 'lost', LIMIT_MS, 'the loss to be seen');
    expect(app.source.link().message).toContain('nothing guards the memory now');
    expect(await app.ask('wake')).toMatchObject({ ok: false, error: { code: 'no_runtime' } });

    expect(await app.ask('host')).toMatchObject({ ok: true });
    expect(app.source.link().kind).toBe('own');
    expect(app.source.owned).toBe(true);
    const events = await app.source.api.events({ kinds: ['started'] });
    // The service's own start is in the same log.
    expect(events.ok && events.value.length).toBe(2);
    expect(await app.ask('wake')).toMatchObject({ ok: true });
  });

  it('attaches to the one that comes back, and leaves it running when it quits', async () => {
    await serve();
    const app = await startApp();
    served?.child.kill('SIGKILL');
    await served?.ended;
    await until(() => app.source.link().kind === 'lost', LIMIT_MS, 'the loss to be seen');
    await serve();
    await until(() => app.source.link().kind === 'attached', LIMIT_MS, 'the service to be found again');
    expect(await app.ask('wake')).toMatchObject({ ok: true });
    const url = app.source.url();
    await app.source.stop();
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
  });
});
