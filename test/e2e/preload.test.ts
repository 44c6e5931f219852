import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { PAGE_POLICY } from '../../electron/shell/protocol.ts';
import { fail } from '../../shared/errors.ts';
import { CALL_NAMES, callChannel, PUSH_NAMES } from '../../shared/ipc-schema.ts';
import { launchBrowser } from '../support/browser.ts';
import { createFakeSource, type FakeSource } from '../support/fake-source.ts';
import { builtPreload, openWindowPage, type WindowPage } from '../support/window-page.ts';

let browser: Browser;
let preload = '';
let there: WindowPage;
let source: FakeSource;
/** Whatever the page complained about; every test ends with none. */
const complaints: string[] = [];

beforeAll(async () => {
  using built = await builtPreload();
  preload = built.code;
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser?.close();
});
afterEach(async () => {
  await there[Symbol.asyncDispose]();
  expect(complaints.splice(0)).toEqual([]);
});

async function open(): Promise<WindowPage> {
  source = createFakeSource();
  there = await openWindowPage(browser, preload, source);
  there.page.on('pageerror', (error) => complaints.push(error.message));
  there.page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  await there.page.locator('.connection.live').waitFor();
  return there;
}

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10));
};

describe('the window: built page, built preload, real main code', () => {
  it('shows the runtime’s state and each change, over IPC alone', async () => {
    const { page, requested } = await open();
    await page.getByText('Radeon Test 24').first().waitFor();
    source.runtime.publish({
      devices: source.runtime.state().devices.map((device) => ({ ...device, name: 'Radeon Renamed' })),
    });
    await page.getByText('Radeon Renamed').first().waitFor();
    source.runtime.append({
      kind: 'evicted',
      reason: 'vision-27b was idle for 10 min.',
      model: 'router/vision-27b',
    });
    await page.getByText('vision-27b was idle for 10 min.').first().waitFor();
    expect(requested.every((address) => address.startsWith('app://landlord/'))).toBe(true);
    expect(requested.filter((address) => address.includes('/api/'))).toEqual([]);
  });

  it('carries what a person does to the runtime, and a refusal with its reason back', async () => {
    const { page } = await open();
    await page.getByText('Observe', { exact: true }).click();
    await until(() => source.runtime.commands.length === 1);
    expect(source.runtime.commands).toEqual([
      { type: 'guards', mode: 'observe', forMs: null, backend: null },
    ]);
    source.runtime.answer = () =>
      fail('vram_denied', 'It needs 19 GB and 6 GB are free.', { freeBytes: 6e9 });
    await page.evaluate(() =>
      Reflect.get(globalThis, 'landlord').call.load({ model: 'router/vision-27b', force: false }),
    );
    expect(source.runtime.commands.at(-1)).toEqual({
      type: 'load',
      model: 'router/vision-27b',
      force: false,
    });
    await page.getByText('Pause', { exact: true }).click();
    await page.getByText('It needs 19 GB and 6 GB are free.').waitFor();
  });

  it('says when its runtime is lost, offers to host one, and is live again once it does', async () => {
    const { page } = await open();
    source.changeLink('lost');
    await page.locator('.connection.lost').waitFor();
    await page.getByText('nothing guards the memory now').waitFor();
    await page.getByRole('button', { name: 'Run it in this app' }).click();
    await page.locator('.connection.live').waitFor();
    expect(source.hosts).toBe(1);
    expect(await page.getByText('nothing guards the memory now').count()).toBe(0);
  });

  it('says why it could not host one', async () => {
    const { page } = await open();
    source.onHost = async () => fail('storage_failed', 'The disk is full: free some space.');
    source.changeLink('lost');
    await page.getByRole('button', { name: 'Run it in this app' }).click();
    await page.getByText('The disk is full: free some space.').waitFor();
  });

  it('comes back after a reload, and is watched by main once', async () => {
    const { page } = await open();
    await page.reload();
    await page.locator('.connection.live').waitFor();
    expect(source.runtime.stateListeners()).toBe(1);
  });
});

describe('the window: what its page can not do', () => {
  it('has the calls of the schema and nothing else of Electron or Node', async () => {
    const { page } = await open();
    const seen = await page.evaluate(() => {
      const api = Reflect.get(globalThis, 'landlord');
      return {
        names: Object.keys(api),
        calls: Object.keys(api.call),
        pushes: Object.keys(api.on),
        foreign: ['require', 'process', 'module', 'ipcRenderer', 'electron', 'Buffer'].filter(
          (name) => name in globalThis,
        ),
        frozen: Object.isFrozen(api) && Object.isFrozen(api.call),
      };
    });
    expect(seen).toEqual({
      names: ['call', 'on'],
      calls: CALL_NAMES,
      pushes: PUSH_NAMES,
      foreign: [],
      frozen: true,
    });
  });

  it('is refused by main when it sends a wrong shape or too much, and in an embedded frame', async () => {
    const { page } = await open();
    const codes = await page.evaluate(async () => {
      const { call } = Reflect.get(globalThis, 'landlord');
      const tries = [
        call.load({ model: 'router/a', force: 'yes' }),
        call.load({ model: 'x'.repeat(100_000), force: false }),
        call.sleep({ forMs: -1 }),
        call.wake({ extra: true }),
        call.events('all'),
      ];
      return (await Promise.all(tries)).map((answer) => answer.error?.code ?? 'answered');
    });
    expect(codes).toEqual(['bad_input', 'bad_input', 'bad_input', 'bad_input', 'bad_input']);

    const frame = await page.evaluate(async () => {
      const embedded = document.createElement('iframe');
      document.body.append(embedded);
      const ask = Reflect.get(embedded.contentWindow ?? {}, 'askMain');
      return ask === undefined ? null : ask('landlord:call:drain', [{}]);
    });
    expect(frame).toMatchObject({ ok: false, error: { code: 'not_permitted' } });
    expect(source.runtime.commands).toEqual([]);
    // The page's policy forbids the frame itself, and said so.
    complaints.splice(0);
  });

  it('runs under the policy: no network, no inline code, no evaluation', async () => {
    const { page } = await open();
    const response = await page.reload();
    expect(response?.headers()['content-security-policy']).toBe(PAGE_POLICY);
    await page.locator('.connection.live').waitFor();
    const outcome = await page.evaluate(async () => {
      const said = async (run: () => unknown): Promise<string> => {
        try {
          await run();
          return 'done';
        } catch {
          return 'refused';
        }
      };
      const script = document.createElement('script');
      return {
        fetch: await said(() => fetch('/api/state')),
        // Later: while the debugger evaluates, evaluation is allowed.
        evaluation: await new Promise<string>((resolve) => {
          setTimeout(() => void said(() => new Function('return 1')()).then(resolve));
        }),
        html: await said(() => {
          document.body.innerHTML = '<b>x</b>';
        }),
        script: await said(() => {
          script.text = 'globalThis.injected = 1';
        }),
        injected: 'injected' in globalThis,
      };
    });
    expect(outcome).toEqual({
      fetch: 'refused',
      evaluation: 'refused',
      html: 'refused',
      script: 'refused',
      injected: false,
    });
    complaints.splice(0);
  });

  it('is answered on the channels of the schema alone', async () => {
    const { page, electron } = await open();
    expect([...electron.ipcMain.handlers.keys()]).toEqual(CALL_NAMES.map(callChannel));
    const strange = await page.evaluate(() =>
      Reflect.get(globalThis, 'askMain')('landlord:call:quit', [{}]).then(
        () => 'answered',
        () => 'refused',
      ),
    );
    expect(strange).toBe('refused');
  });
});
