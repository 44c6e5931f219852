import { describe, expect, it } from 'vitest';
import { DEFAULT_APP_SETTINGS } from '../../shared/app-settings.ts';
import type { LandlordEvent } from '../../shared/events.ts';
import type { LandlordState, OwnServerState } from '../../shared/state.ts';
import { type MenuEntry, sleepSpanMs, type TrayAction } from '../../shared/tray-entry.ts';
import { type TrayInput, trayView } from '../../shared/tray-menu.ts';
import { sampleAgent, sampleModel, sampleState } from '../support/fake-runtime.ts';

const NOW = Date.parse('2026-03-04T09:00:00.000Z');

function input(change: Partial<TrayInput> = {}, state: Partial<LandlordState> = {}): TrayInput {
  return {
    state: { ...sampleState(), ...state },
    link: { kind: 'own', message: 'It runs in this app.' },
    baseUrl: 'http://127.0.0.1:7781/v1',
    lastEviction: null,
    awake: null,
    settings: DEFAULT_APP_SETTINGS,
    startAtLogin: false,
    resumedAtMs: null,
    nowMs: NOW,
    ...change,
  };
}

function all(entries: readonly MenuEntry[]): readonly MenuEntry[] {
  return entries.flatMap((entry) => (entry.kind === 'menu' ? [entry, ...all(entry.entries)] : [entry]));
}

function find(view: { readonly menu: readonly MenuEntry[] }, id: string): MenuEntry | null {
  return all(view.menu).find((entry) => entry.id === id) ?? null;
}

function actionOf(change: TrayInput, id: string): TrayAction | null {
  const entry = find(trayView(change), id);
  return entry === null || entry.kind === 'line' || entry.kind === 'menu' ? null : entry.action;
}

function labelOf(change: TrayInput, id: string): string | null {
  const entry = find(trayView(change), id);
  return entry === null || entry.kind === 'line' ? null : entry.label;
}

describe('tray menu: a pure function of what is known', () => {
  it('gives equal views for equal inputs, with every entry told apart', () => {
    expect(trayView(input())).toEqual(trayView(input()));
    const ids = all(trayView(input()).menu).map((entry) => entry.id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('shows first, then figures; quits last', () => {
    const { menu } = trayView(input());
    expect(menu[0]).toMatchObject({ id: 'show', action: { type: 'open', place: { kind: 'home' } } });
    expect(menu[2]).toMatchObject({ label: '9 GB free, floor 3 GB', action: null });
    expect(menu[3]).toMatchObject({ label: 'coder-9b: busy' });
    expect(menu.at(-1)).toMatchObject({ id: 'quit', label: 'Quit', action: { type: 'quit' } });
  });

  it('has everything in its place, from the figures to the way out', () => {
    const event = { id: 12, at: '2026-03-04T08:58:00.000Z', kind: 'evicted', numbers: {} } as const;
    const { menu } = trayView(
      input({
        awake: 'Keeps the machine awake: coder-9b',
        lastEviction: { ...event, model: 'router/vision-27b', reason: 'Unloaded vision-27b.' },
      }),
    );
    expect(menu.filter((entry) => entry.kind !== 'line').map((entry) => entry.id)).toEqual([
      'show',
      'status 0',
      'status 1',
      'awake',
      'url',
      'model router/coder-9b',
      'model router/bge',
      'unloaded',
      'sleep',
      'make-room',
      'restore',
      'last-eviction',
      'log',
      'guards',
      'browse',
      'settings',
      'login',
      'quit',
    ]);
    expect(find({ menu }, 'browse')).toMatchObject({ label: 'Open in the browser' });
  });

  it('says who is at work and who waits', () => {
    const agents = [sampleAgent({ agent: 'smol', state: 'generating' })];
    expect(trayView(input({}, { agents })).tooltip).toContain('\nAgents: smol generating');
  });

  it('tells a server that is ours to run by what it does, and is silent of one that waits for its first use', () => {
    const [router] = sampleState().backends;
    if (router === undefined) throw new Error('the sample has a backend');
    const own = {
      pid: null,
      startedAt: null,
      nextStartAt: null,
      restarts: 0,
      note: null,
      logFile: '/logs/router.log',
      lastLines: [],
    };
    const tooltip = (status: OwnServerState['status'] | null, startedAt: string | null = null): string =>
      trayView(
        input(
          {},
          {
            backends: [
              {
                ...router,
                status: 'down',
                ...(status === null ? {} : { own: { ...own, status, startedAt } }),
              },
            ],
          },
        ),
      ).tooltip;
    expect(tooltip(null)).toContain('router does not answer');
    expect(tooltip('idle')).not.toContain('router');
    expect(tooltip('starting')).toContain('router has been started and does not answer yet');
    expect(tooltip('running', '2026-03-04T08:59:00.000Z')).toContain('does not answer yet');
    expect(tooltip('running', '2026-03-04T08:00:00.000Z')).toMatch(/router does not answer$/);
    expect(tooltip('waiting')).toContain('router has ended and is started again');
    expect(tooltip('taken')).toContain("router can't start: another program has its port");
  });

  it('copies the base URL, and offers none while there is none', () => {
    expect(actionOf(input(), 'url')).toEqual({ type: 'copy', text: 'http://127.0.0.1:7781/v1' });
    expect(find(trayView(input({ baseUrl: null })), 'url')).toBeNull();
  });

  it('changes only its steps with the free bytes', () => {
    const at = (freeBytes: number): string => {
      const state = sampleState();
      return JSON.stringify(
        trayView(input({}, { devices: state.devices.map((one) => ({ ...one, freeBytes })) })).menu,
      );
    };
    expect(at(9.0e9)).toBe(at(9.4e9));
    expect(at(9.0e9)).not.toBe(at(9.5e9));
  });

  it('says why the machine is kept awake', () => {
    expect(labelOf(input({ awake: 'Keeps the machine awake: 27B for writer' }), 'awake')).toBe(
      'Keeps the machine awake: 27B for writer',
    );
  });
});

describe('tray menu: models', () => {
  const models = [
    sampleModel({ id: 'r/busy', status: 'loaded', busy: true, measuredBytes: 12e9 }),
    sampleModel({ id: 'r/idle', status: 'loaded', busy: false, measuredBytes: 2e9 }),
    sampleModel({ id: 'r/unknown', status: 'loaded', busy: null }),
    sampleModel({ id: 'r/new', status: 'loading', predictedBytes: 5e9, loadProgress: 0.5 }),
    sampleModel({ id: 'r/away', predictedBytes: 7e9 }),
    sampleModel({ id: 's/away', pinned: true }),
  ];
  const set = input({}, { models });

  it('say how much each holds and what it does', () => {
    expect(labelOf(set, 'model r/busy')).toBe('busy, 12 GB, busy');
    expect(labelOf(set, 'model r/new')).toBe('new, about 5 GB, loading');
    expect(labelOf(set, 'model r/away')).toBe('r/away, about 7 GB');
    expect(labelOf(set, 'model s/away')).toBe('s/away, kept');
    expect(labelOf(set, 'unloaded')).toBe('Not loaded (2)');
  });

  it('are loaded, cancelled and unloaded; busy ones after a question', () => {
    expect(actionOf(set, 'load r/away')).toEqual({
      type: 'command',
      command: { type: 'load', model: 'r/away', force: false },
      ask: null,
    });
    expect(actionOf(set, 'cancel r/new')).toMatchObject({
      command: { type: 'unload', force: false },
      ask: null,
    });
    expect(actionOf(set, 'unload r/idle')).toMatchObject({ command: { force: false }, ask: null });
    const busy = actionOf(set, 'unload r/busy');
    expect(busy).toMatchObject({ command: { type: 'unload', force: true }, ask: { confirm: 'Unload' } });
    expect(JSON.stringify(busy)).toContain('cuts that request off');
  });

  it('that may be busy are not taken for idle', () => {
    expect(JSON.stringify(actionOf(set, 'unload r/unknown'))).toContain("can't be told");
  });

  it('are kept and no longer kept', () => {
    expect(actionOf(set, 'keep r/idle')).toMatchObject({ command: { type: 'pin', model: 'r/idle' } });
    expect(actionOf(set, 'keep s/away')).toMatchObject({ command: { type: 'unpin' } });
  });

  it('of which there are many lead to the window', () => {
    const many = Array.from({ length: 40 }, (_one, at) => sampleModel({ id: `r/m${at}` }));
    expect(labelOf(input({}, { models: many }), 'more-models')).toBe('15 more in the window');
  });
});

describe('tray menu: room, sleep and guards', () => {
  it('makes room of 8 GB, 16 GB, or all there is after a question', () => {
    expect(actionOf(input(), 'room  8000000000')).toMatchObject({
      command: { type: 'makeRoom', freeBytes: 8e9, deviceId: null },
      ask: null,
    });
    expect(actionOf(input(), 'room  16000000000')).toMatchObject({ command: { freeBytes: 16e9 } });
    const everything = actionOf(input(), 'room everything');
    expect(everything).toMatchObject({ command: { type: 'drain' }, ask: { confirm: 'Unload all' } });
  });

  it('offers what only a person does, each after its question', () => {
    const offers = [{ id: 'drain-kill', text: 'It hangs.', label: 'End it', question: 'End it now?' }];
    const waiting = input({}, { offers });
    expect(labelOf(waiting, 'offer drain-kill')).toBe('End it …');
    expect(actionOf(waiting, 'offer drain-kill')).toEqual({
      type: 'command',
      command: { type: 'accept', offer: 'drain-kill' },
      ask: { question: 'End it now?', detail: 'It hangs.', confirm: 'End it' },
    });
  });

  it('makes no more room than there is, and says on which card', () => {
    const [card] = sampleState().devices;
    if (card === undefined) throw new Error('the sample has a device');
    const small = input({}, { devices: [{ ...card, totalBytes: 12e9 }] });
    expect(find(trayView(small), 'room  16000000000')).toBeNull();
    const two = input({}, { devices: [card, { ...card, id: 'pci:2', name: 'Second' }] });
    expect(actionOf(two, 'room pci:2 8000000000')).toMatchObject({ command: { deviceId: 'pci:2' } });
    expect(labelOf(two, 'rooms pci:2')).toBe('Second');
  });

  it('brings back what left, where there is any', () => {
    expect(labelOf(input(), 'restore')).toBe('Bring back what left: vision-27b');
    expect(find(trayView(input({}, { restorable: [] })), 'restore')).toBeNull();
  });

  it('sleeps until woken, for an hour or until tomorrow; then wakes', () => {
    expect(['woken', 'hour', 'tomorrow'].map((until) => actionOf(input(), `sleep ${until}`))).toEqual([
      { type: 'sleep', until: 'woken' },
      { type: 'sleep', until: 'hour' },
      { type: 'sleep', until: 'tomorrow' },
    ]);
    const asleep = input({}, { asleep: { since: '2026-03-04T08:00:00.000Z', until: null } });
    expect(actionOf(asleep, 'wake')).toMatchObject({ command: { type: 'wake' } });
    expect(trayView(asleep).icon).toBe('asleep');
    expect(trayView(asleep).tooltip).toContain('Big models asleep until woken');
  });

  it('reckons a sleep when it is chosen: tomorrow begins at eight', () => {
    const evening = new Date(2026, 2, 4, 23, 30).getTime();
    expect(sleepSpanMs('tomorrow', evening)).toBe(8.5 * 3_600_000);
    expect(sleepSpanMs('hour', evening)).toBe(3_600_000);
    expect(sleepSpanMs('woken', evening)).toBeNull();
  });

  it('sets the guards on, to watch, or aside for 15 minutes', () => {
    expect(actionOf(input(), 'guards pause')).toMatchObject({
      command: { type: 'guards', mode: 'pause', forMs: 900_000 },
    });
    expect(find(trayView(input()), 'guards on')).toMatchObject({ kind: 'radio', checked: true });
    const { policy } = sampleState();
    const watching = input({}, { policy: { ...policy, guards: 'observe' } });
    expect(find(trayView(watching), 'guards observe')).toMatchObject({ checked: true });
    expect(trayView(watching).tooltip).toContain('Guards only watch');
  });
});

describe('tray menu: the last eviction', () => {
  const event: LandlordEvent = {
    id: 12,
    at: '2026-03-04T08:58:00.000Z',
    kind: 'evicted',
    model: 'router/vision-27b',
    reason: 'Unloaded vision-27b.',
    numbers: {},
  };

  it('offers to load it again, to keep it, and to see why', () => {
    const set = input({ lastEviction: event });
    expect(actionOf(set, 'last-eviction-load')).toMatchObject({
      command: { type: 'load', model: 'router/vision-27b' },
    });
    expect(actionOf(set, 'last-eviction-keep')).toMatchObject({ command: { type: 'pin' } });
    expect(actionOf(set, 'last-eviction-why')).toEqual({ type: 'open', place: { kind: 'event', id: 12 } });
  });

  it('does not offer to load what is back', () => {
    const models = [sampleModel({ id: 'router/vision-27b', status: 'loaded' })];
    expect(actionOf(input({ lastEviction: event }, { models }), 'last-eviction-load')).toBeNull();
  });

  it('is silent of models that are no longer known', () => {
    expect(find(trayView(input({ lastEviction: event }, { models: [] })), 'last-eviction')).toBeNull();
  });
});

describe('tray menu: nothing old passes for news', () => {
  it('does not trust readings from before a resume', () => {
    const view = trayView(input({ resumedAtMs: NOW + 1 }));
    expect(view.icon).toBe('stale');
    expect(view.tooltip).toContain('no reading to trust');
    expect(trayView(input({ resumedAtMs: NOW })).icon).toBe('fine');
  });

  it('shows nothing of a lost runtime but that it is lost, and offers to host one', () => {
    const lost = input({ link: { kind: 'lost', message: 'It has ended: nothing guards now.' } });
    const view = trayView(lost);
    expect(view.icon).toBe('stale');
    expect(view.tooltip).toBe('VRAM Landlord\nIt has ended: nothing guards now.');
    expect(actionOf(lost, 'host')).toEqual({ type: 'host' });
    expect(find(view, 'make-room')).toBeNull();
    expect(find(view, 'model router/coder-9b')).toBeNull();
    expect(find(view, 'quit')).not.toBeNull();
  });

  it('says that an attached runtime goes on', () => {
    const attached = input({ link: { kind: 'attached', message: 'x' } });
    expect(labelOf(attached, 'quit')).toBe('Quit (the runtime goes on)');
    expect(find(trayView(attached), 'host')).toBeNull();
  });

  it('waits for a first state', () => {
    expect(trayView(input({ state: null })).tooltip).toBe('VRAM Landlord\nStarting …');
  });
});

describe('tray menu: what a person sets', () => {
  it('offers each choice with what stands marked', () => {
    expect(find(trayView(input()), 'notify all')).toMatchObject({ checked: true });
    expect(actionOf(input(), 'notify needed')).toEqual({ type: 'set', change: { notifications: 'needed' } });
    expect(actionOf(input(), 'quiet')).toMatchObject({ change: { quietHours: { fromMinute: 1320 } } });
    expect(actionOf(input(), 'close minimize')).toEqual({
      type: 'set',
      change: { closeWithoutTray: 'minimize' },
    });
    expect(actionOf(input(), 'suspend')).toEqual({ type: 'set', change: { unloadBeforeSuspend: true } });
    expect(actionOf(input(), 'bring-back')).toEqual({ type: 'set', change: { bringBack: false } });
    expect(actionOf(input(), 'login')).toEqual({ type: 'startAtLogin', on: true });
    expect(find(trayView(input({ startAtLogin: null })), 'login')).toBeNull();
  });
});
