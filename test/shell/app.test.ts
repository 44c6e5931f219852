import { describe, expect, it } from 'vitest';
import { startShell } from '../../electron/shell/app.ts';
import { PAGE_URL } from '../../electron/shell/protocol.ts';
import type { RuntimeSource } from '../../electron/shell/runtime-source.ts';
import { fail, ok, type Result } from '../../shared/errors.ts';
import { callChannel } from '../../shared/ipc-schema.ts';
import { createFakeElectron, type FakeElectron } from '../fakes/electron.ts';
import { createFakeSource, type FakeSource } from '../support/fake-source.ts';

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

const build = { pageDir: '/build/renderer', preloadPath: '/build/preload.cjs', lostLimitMs: 20 };

function fakeSource(stop?: () => Promise<void>): FakeSource {
  const source = createFakeSource();
  if (stop !== undefined) source.onStop = stop;
  return source;
}

async function started(
  connect: () => Promise<Result<RuntimeSource>>,
  electron: FakeElectron = createFakeElectron(),
): Promise<FakeElectron> {
  const done = startShell({ electron, connect, stopLimitMs: 50, ...build });
  electron.ready();
  await done;
  return electron;
}

describe('shell: one instance', () => {
  it('ends at once when another instance has the lock, and starts no runtime', async () => {
    let connects = 0;
    const electron = createFakeElectron({ lock: false });
    await startShell({
      ...build,
      electron,
      connect: async () => {
        connects += 1;
        return ok(fakeSource());
      },
    });
    expect(electron.calls).toEqual(['lock', 'quit']);
    expect(connects).toBe(0);
  });

  it('shows its window when it is started a second time', async () => {
    const electron = await started(async () => ok(fakeSource()));
    const [window] = electron.windows;
    if (window === undefined) throw new Error('a window is open');
    window.minimized = true;
    window.calls.splice(0);
    electron.emit('second-instance', {}, []);
    expect(window.calls).toEqual(['restore', 'show', 'focus']);
    expect(electron.windows).toHaveLength(1);
  });
});

describe('shell: never without the sandbox', () => {
  it('ends with a sentence when it was started with --no-sandbox, and starts no runtime', async () => {
    const electron = createFakeElectron({ switches: ['no-sandbox'] });
    let connects = 0;
    await startShell({
      ...build,
      electron,
      connect: async () => {
        connects += 1;
        return ok(fakeSource());
      },
    });
    expect(electron.calls).toEqual(['lock', 'exit 1']);
    expect(electron.errors).toEqual([expect.stringContaining('sandbox')]);
    expect(connects).toBe(0);
  });
});

describe('shell: takes no GPU memory and gives its page no power', () => {
  it('turns acceleration off and the sandbox on before the app is ready', async () => {
    const electron = await started(async () => ok(fakeSource()));
    expect(electron.calls).toEqual(['lock', 'no acceleration', 'sandbox', 'ready']);
    expect(electron.menus).toEqual([null]);
  });

  it('opens one sandboxed, isolated window without Node on its own page', async () => {
    const electron = await started(async () => ok(fakeSource()));
    expect(electron.windows).toHaveLength(1);
    const [window] = electron.windows;
    expect(window?.loaded).toEqual([PAGE_URL]);
    expect(window?.calls).toEqual(['show']);
    expect(window?.options.webPreferences).toEqual({
      partition: 'landlord',
      preload: '/build/preload.cjs',
      sandbox: true,
      contextIsolation: true,
      nodeIntegration: false,
      webviewTag: false,
      spellcheck: false,
    });
    expect(window?.options.show).toBe(false);
  });

  it('grants the page no permission of any kind', async () => {
    const electron = await started(async () => ok(fakeSource()));
    const kept = electron.permissions.get('landlord');
    expect(kept?.request).toBeTypeOf('function');
    const answers: boolean[] = [];
    const request = kept?.request;
    if (request)
      Reflect.apply(request, null, [null, 'notifications', (granted: boolean) => answers.push(granted), {}]);
    expect(answers).toEqual([false]);
    expect(Reflect.apply(kept?.check ?? (() => true), null, [null, 'media', '', {}])).toBe(false);
    expect(Reflect.apply(kept?.device ?? (() => true), null, [{}])).toBe(false);
  });

  it('keeps every page at its own address', async () => {
    const electron = await started(async () => ok(fakeSource()));
    const contents = electron.createContents();
    for (const event of ['will-navigate', 'will-redirect', 'will-frame-navigate'] as const) {
      expect(contents.goes(event, PAGE_URL), event).toBe(true);
      for (const url of [
        'http://127.0.0.1:7781/',
        'app://other/',
        'app://landlord@example.com/',
        'app://landlord/assets/page.js',
        'file:///etc/passwd',
        'javascript:alert(1)',
        'data:text/html,x',
        'not an address',
      ]) {
        expect(contents.goes(event, url), `${event} ${url}`).toBe(false);
      }
    }
    expect(contents.goes('will-frame-navigate', PAGE_URL, false)).toBe(false);
  });

  it('opens no window for a page, and only known places in the browser', async () => {
    const electron = await started(async () => ok(fakeSource()));
    const handler = electron.createContents().openHandler;
    if (handler === null) throw new Error('a handler is set');
    const open = (url: string): void =>
      expect(Reflect.apply(handler, null, [{ url }]), url).toEqual({ action: 'deny' });
    open('https://github.com/ggml-org/llama.cpp/tree/master/tools/server');
    for (const url of [
      PAGE_URL,
      'https://example.com/',
      'http://github.com/ggml-org/llama.cpp/',
      'https://github.com/ggml-org/llama.cpp/../../else/',
      'https://user:word@github.com/ggml-org/llama.cpp/',
      'https://github.com.example.com/ggml-org/llama.cpp/',
      'file:///etc/passwd',
      `https://github.com/ggml-org/llama.cpp/${'x'.repeat(3000)}`,
    ]) {
      open(url);
    }
    expect(electron.openedOutside).toEqual([
      'https://github.com/ggml-org/llama.cpp/tree/master/tools/server',
    ]);
    expect(electron.windows).toHaveLength(1);
  });

  it('serves the page under its own scheme, in the session of the window alone', async () => {
    const electron = await started(async () => ok(fakeSource()));
    expect(electron.schemes).toEqual([{ scheme: 'app', privileges: { standard: true, secure: true } }]);
    expect([...electron.served.keys()]).toEqual(['landlord app']);
  });
});

describe('shell: its end', () => {
  it('quits when the window is closed, and lets the runtime end before it exits', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const source = fakeSource(() => promise);
    const electron = await started(async () => ok(source));
    electron.closeWindow();
    expect(electron.calls.at(-1)).toBe('quit');
    expect(electron.quits()).toBe(false);
    await settled();
    expect(source.stops).toBe(1);
    expect(electron.calls).not.toContain('exit 0');
    resolve();
    await settled();
    expect(electron.calls.at(-1)).toBe('exit 0');
  });

  it('goes without a runtime that does not end, and says so in its exit code', async () => {
    const electron = await started(async () => ok(fakeSource(() => new Promise(() => {}))));
    electron.quits();
    await new Promise((resolve) => setTimeout(resolve, 80));
    expect(electron.calls.at(-1)).toBe('exit 1');
  });

  it('stops the runtime once, however often it is told to quit', async () => {
    const source = fakeSource();
    const electron = await started(async () => ok(source));
    expect(electron.quits()).toBe(false);
    expect(electron.quits()).toBe(true);
    await settled();
    expect(source.stops).toBe(1);
  });

  it('ends a runtime that came up while it was quitting, and opens no window then', async () => {
    const { promise, resolve } = Promise.withResolvers<Result<RuntimeSource>>();
    const electron = createFakeElectron();
    const done = startShell({ electron, connect: () => promise, ...build });
    electron.ready();
    await settled();
    expect(electron.quits()).toBe(true);
    const source = fakeSource();
    resolve(ok(source));
    await done;
    expect(source.stops).toBe(1);
    expect(electron.windows).toEqual([]);
  });

  it('opens the page anew when it was closed while another instance asked', async () => {
    const electron = await started(async () => ok(fakeSource()));
    electron.windows[0]?.destroy();
    electron.emit('second-instance', {}, []);
    await settled();
    expect(electron.windows.map((window) => window.loaded)).toEqual([[PAGE_URL], [PAGE_URL]]);
  });
});

describe('shell: the window and the runtime', () => {
  it('answers the page of its window, and no longer once that is closed', async () => {
    const source = fakeSource();
    const electron = await started(async () => ok(source));
    const [window] = electron.windows;
    if (window === undefined) throw new Error('a window is open');
    const ask = (name: 'watch' | 'wake'): Promise<unknown> =>
      electron.ipcMain.invoke(window.sender(), callChannel(name), {});
    expect(await ask('wake')).toEqual(ok({ message: 'Did wake.' }));
    await ask('watch');
    expect(source.runtime.stateListeners()).toBe(1);
    window.destroy();
    expect(source.runtime.stateListeners()).toBe(0);
    expect(await ask('wake')).toMatchObject({ ok: false, error: { code: 'not_permitted' } });
  });

  it('opens the window when an attached runtime stays lost, and not when it is back soon', async () => {
    const source = fakeSource();
    const electron = await started(async () => ok(source));
    electron.windows[0]?.destroy();
    source.changeLink('lost');
    source.changeLink('attached');
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(electron.windows).toHaveLength(1);
    source.changeLink('lost');
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(electron.windows).toHaveLength(2);
  });
});

describe('shell: what goes wrong is told', () => {
  it('says why there is no runtime, and exits with 1', async () => {
    const electron = await started(async () => fail('storage_failed', 'The disk is full: free some space.'));
    expect(electron.errors).toEqual(['The disk is full: free some space.']);
    expect(electron.calls.at(-1)).toBe('exit 1');
    expect(electron.windows).toEqual([]);
  });
});
