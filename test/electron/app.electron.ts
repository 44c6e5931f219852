/** The app in Electron itself: what only the real program can show. Run by `npm run test:electron`. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { _electron, type ElectronApplication, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CALL_NAMES } from '../../shared/ipc-schema.ts';

const { LANDLORD_ELECTRON: program = '', LANDLORD_APP_DIR: appDir = '' } = process.env;
let folder = '';
let app: ElectronApplication;
let page: Page;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'landlord-electron-'));
  writeFileSync(join(folder, 'config.yaml'), 'guards: observe\nbackends: []\n');
  app = await _electron.launch({
    executablePath: program,
    args: [
      appDir,
      '--port',
      '0',
      '--state-dir',
      join(folder, 'state'),
      '--config',
      join(folder, 'config.yaml'),
      `--user-data-dir=${join(folder, 'user-data')}`,
    ],
    env: { ...process.env, XDG_CONFIG_HOME: join(folder, 'xdg-config') },
  });
  page = await app.firstWindow();
  await page.locator('.connection.live').waitFor();
});
afterAll(async () => {
  await app?.close();
  rmSync(folder, { recursive: true, force: true });
});

describe('the app in Electron', () => {
  it('shows the page of its own scheme, live', async () => {
    expect(page.url()).toBe('app://landlord/');
    expect(await page.title()).toBe('VRAM Landlord');
  });

  it('gives the page the calls of the schema, and neither Node nor Electron', async () => {
    const seen = await page.evaluate(() => ({
      calls: Object.keys(Reflect.get(globalThis, 'landlord').call),
      foreign: ['require', 'process', 'module', 'ipcRenderer'].filter((name) => name in globalThis),
    }));
    expect(seen).toEqual({ calls: [...CALL_NAMES], foreign: [] });
  });

  it('keeps acceleration off, and the page in its sandbox', async () => {
    const seen = await app.evaluate(({ app: electron, BrowserWindow }) => ({
      accelerated: electron.getGPUFeatureStatus().gpu_compositing,
      sandboxed: electron
        .getAppMetrics()
        .filter((one) => one.type === 'Tab')
        .map((one) => one.sandboxed),
      windows: BrowserWindow.getAllWindows().length,
      noSandbox: electron.commandLine.hasSwitch('no-sandbox'),
    }));
    expect(seen.accelerated).not.toBe('enabled');
    expect(seen.windows).toBe(1);
    expect(seen.noSandbox).toBe(false);
    // Told on Windows and macOS alone.
    expect(seen.sandboxed.every((one) => one !== false)).toBe(true);
  });

  it('reads the machine with Node beside it, and keeps what happened in its own log', async () => {
    expect(await app.evaluate(() => process.execPath)).not.toBe(program);
    const kinds = async (): Promise<readonly string[]> => {
      const answer = await page.evaluate(() =>
        Reflect.get(globalThis, 'landlord').call.events({ afterId: null, limit: 50 }),
      );
      return answer.ok ? answer.value.map((event: { readonly kind: string }) => event.kind) : [];
    };
    await expect.poll(kinds, { timeout: 30_000 }).toContain('device_found');
  });

  it('opens no window and goes nowhere for the page', async () => {
    await page.evaluate(() => {
      globalThis.open('https://example.com/');
      globalThis.location.href = 'https://example.com/';
    });
    await page.waitForTimeout(500);
    expect(page.url()).toBe('app://landlord/');
    expect(app.windows()).toHaveLength(1);
  });

  it('carries what the page asks for to the runtime it hosts', async () => {
    const answer = await page.evaluate(() =>
      Reflect.get(globalThis, 'landlord').call.events({ afterId: null, limit: 50 }),
    );
    expect(answer.ok && answer.value.map((event: { readonly kind: string }) => event.kind)).toContain(
      'started',
    );
  });
});
