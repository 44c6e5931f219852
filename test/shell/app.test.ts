import { describe, expect, it } from 'vitest';
import { startShell } from '../../electron/shell/app.ts';
import type { RuntimeSource } from '../../electron/shell/runtime-source.ts';
import { fail, ok, type Result } from '../../shared/errors.ts';
import { createFakeElectron, type FakeElectron } from '../fakes/electron.ts';

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

interface FakeSource extends RuntimeSource {
  stops: number;
  opened: number;
}

function fakeSource(stop: () => Promise<void> = async () => {}): FakeSource {
  return {
    owned: true,
    stops: 0,
    opened: 0,
    async openUrl() {
      this.opened += 1;
      return ok(`http://127.0.0.1:7781/?key=${this.opened}`);
    },
    stop() {
      this.stops += 1;
      return stop();
    },
  };
}

async function started(
  connect: () => Promise<Result<RuntimeSource>>,
  electron: FakeElectron = createFakeElectron(),
): Promise<FakeElectron> {
  const done = startShell({ electron, connect, stopLimitMs: 50 });
  electron.ready();
  await done;
  return electron;
}

describe('shell: one instance', () => {
  it('ends at once when another instance has the lock, and starts no runtime', async () => {
    let connects = 0;
    const electron = createFakeElectron({ lock: false });
    await startShell({
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
    electron.emit('second-instance');
    expect(window.calls).toEqual(['restore', 'show', 'focus']);
    expect(electron.windows).toHaveLength(1);
  });
});

describe('shell: takes no GPU memory and gives its page no power', () => {
  it('turns acceleration off and the sandbox on before the app is ready', async () => {
    const electron = await started(async () => ok(fakeSource()));
    expect(electron.calls).toEqual(['lock', 'no acceleration', 'sandbox', 'ready']);
    expect(electron.menus).toEqual([null]);
  });

  it('opens one sandboxed, isolated window without Node on the address of the runtime', async () => {
    const electron = await started(async () => ok(fakeSource()));
    expect(electron.windows).toHaveLength(1);
    const [window] = electron.windows;
    expect(window?.loaded).toEqual(['http://127.0.0.1:7781/?key=1']);
    expect(window?.calls).toEqual(['show']);
    expect(window?.options.webPreferences).toEqual({
      partition: 'landlord',
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

  it('keeps every page at the origin of the runtime', async () => {
    const electron = await started(async () => ok(fakeSource()));
    const contents = electron.createContents();
    for (const event of ['will-navigate', 'will-redirect', 'will-frame-navigate'] as const) {
      expect(contents.goes(event, 'http://127.0.0.1:7781/'), event).toBe(true);
      for (const url of [
        'http://127.0.0.1:8080/',
        'https://127.0.0.1:7781/',
        'http://127.0.0.1.example.com:7781/',
        'http://127.0.0.1:7781@example.com/',
        'file:///etc/passwd',
        'javascript:alert(1)',
        'data:text/html,x',
        'not an address',
      ]) {
        expect(contents.goes(event, url), `${event} ${url}`).toBe(false);
      }
    }
    expect(contents.goes('will-frame-navigate', 'http://127.0.0.1:7781/', false)).toBe(false);
    const handler = contents.openHandler;
    if (handler === null) throw new Error('a handler is set');
    expect(Reflect.apply(handler, null, [{ url: 'http://127.0.0.1:7781/' }])).toEqual({ action: 'deny' });
  });

  it('lets no page go anywhere before there is a runtime', async () => {
    const electron = createFakeElectron();
    void startShell({ electron, connect: async () => ok(fakeSource()) });
    expect(electron.createContents().goes('will-navigate', 'http://127.0.0.1:7781/')).toBe(false);
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
    const done = startShell({ electron, connect: () => promise });
    electron.ready();
    await settled();
    expect(electron.quits()).toBe(true);
    const source = fakeSource();
    resolve(ok(source));
    await done;
    expect(source.stops).toBe(1);
    expect(electron.windows).toEqual([]);
  });

  it('opens the page with a fresh address when it was closed while another instance asked', async () => {
    const source = fakeSource();
    const electron = await started(async () => ok(source));
    electron.windows[0]?.destroy();
    electron.emit('second-instance');
    await settled();
    expect(electron.windows.map((window) => window.loaded)).toEqual([
      ['http://127.0.0.1:7781/?key=1'],
      ['http://127.0.0.1:7781/?key=2'],
    ]);
  });
});

describe('shell: what goes wrong is told', () => {
  it('says why there is no runtime, and exits with 1', async () => {
    const electron = await started(async () => fail('storage_failed', 'The disk is full: free some space.'));
    expect(electron.errors).toEqual(['The disk is full: free some space.']);
    expect(electron.calls.at(-1)).toBe('exit 1');
    expect(electron.windows).toEqual([]);
  });

  it('says when a found runtime gives no address', async () => {
    const source = fakeSource();
    source.openUrl = async () => fail('no_runtime', 'It has ended.');
    const electron = await started(async () => ok(source));
    expect(electron.errors).toEqual(['It has ended.']);
    expect(electron.calls.at(-1)).toBe('quit');
  });
});
