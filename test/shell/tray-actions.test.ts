import { describe, expect, it } from 'vitest';
import type { Command } from '../../electron/core/runtime-api.ts';
import { type ActionOptions, carryOut } from '../../electron/shell/tray-actions.ts';
import { fail, ok } from '../../shared/errors.ts';
import type { TrayAction } from '../../shared/tray-entry.ts';
import { createFakeDesk } from '../fakes/desk.ts';

function make(change: Partial<ActionOptions> = {}) {
  const electron = createFakeDesk();
  const done: unknown[] = [];
  const options: ActionOptions = {
    electron,
    command: async (command) => {
      done.push(command);
      return ok({ message: 'Did it.' });
    },
    host: async () => ok({ message: 'Hosted.' }),
    openUrl: async () => ok('http://127.0.0.1:7781/?key=1'),
    set: async (settings) => {
      done.push(settings);
      return ok(null);
    },
    startAtLogin: async (on) => {
      done.push({ startAtLogin: on });
      return ok(null);
    },
    openWindow: (place) => done.push(place),
    say: (message) => done.push(message),
    quit: () => done.push('quit'),
    epochMs: () => 0,
    ...change,
  };
  return { electron, done, act: (action: TrayAction) => carryOut(action, options) };
}

const DRAIN: TrayAction = {
  type: 'command',
  command: { type: 'drain' },
  ask: { question: 'Unload every model?', detail: 'All.', confirm: 'Unload all' },
};

describe('tray actions', () => {
  it('ask before what can not be taken back, and do nothing on Cancel', async () => {
    const { electron, done, act } = make();
    await act(DRAIN);
    expect(done).toEqual([]);
    expect(electron.asked[0]).toMatchObject({
      message: 'Unload every model?',
      buttons: ['Unload all', 'Cancel'],
      defaultId: 1,
      cancelId: 1,
    });
    electron.press = 0;
    await act(DRAIN);
    expect(done).toEqual([{ type: 'drain' }, 'Did it.']);
  });

  it('open the page in a browser, and say why where there is none', async () => {
    const { electron, act } = make();
    await act({ type: 'browse' });
    expect(electron.browsed).toEqual(['http://127.0.0.1:7781/?key=1']);
    electron.openExternal = async () => {
      throw new Error('no handler');
    };
    await act({ type: 'browse' });
    expect(electron.asked[0]?.detail).toContain('No browser could be opened: no handler');
    const lost = make({ openUrl: async () => fail('no_runtime', 'The runtime has ended.') });
    await lost.act({ type: 'browse' });
    expect(lost.electron.browsed).toEqual([]);
    expect(lost.electron.asked[0]?.detail).toBe('The runtime has ended.');
  });

  it('say how a long one ended, and nothing of a quick one', async () => {
    const { done, act } = make();
    await act({ type: 'command', command: { type: 'restore' }, ask: null });
    await act({ type: 'command', command: { type: 'wake' }, ask: null });
    expect(done).toEqual([{ type: 'restore' }, 'Did it.', { type: 'wake' }]);
  });

  it('tell in full what was refused', async () => {
    const { electron, act } = make({ command: async () => fail('model_busy', '27B is serving a request.') });
    await act({ type: 'command', command: { type: 'unload', model: 'r/27B', force: false }, ask: null });
    expect(electron.asked[0]).toMatchObject({ type: 'warning', detail: '27B is serving a request.' });
  });

  it('offer a load that was denied with its figures, once more by force', async () => {
    const asked: Command[] = [];
    const { electron, act } = make({
      command: async (command) => {
        asked.push(command);
        return fail('vram_denied', '18.6 GB is needed and 12.1 GB may be booked.');
      },
    });
    const load: TrayAction = {
      type: 'command',
      command: { type: 'load', model: 'r/27B', force: false },
      ask: null,
    };
    await act(load);
    expect(asked).toHaveLength(1);
    expect(electron.asked[0]).toMatchObject({
      detail: '18.6 GB is needed and 12.1 GB may be booked.',
      buttons: ['Load anyway', 'Cancel'],
    });
    electron.press = 0;
    await act(load);
    expect(asked.slice(1)).toMatchObject([{ force: false }, { force: true }]);
    // Refused by force too: no third question.
    expect(electron.asked.at(-1)).toMatchObject({ buttons: ['Close'] });
  });

  it('do the small things', async () => {
    const { electron, done, act } = make();
    await act({ type: 'copy', text: 'http://127.0.0.1:7781/v1' });
    await act({ type: 'open', place: { kind: 'event', id: 3 } });
    await act({ type: 'set', change: { bringBack: false } });
    await act({ type: 'startAtLogin', on: true });
    await act({ type: 'sleep', until: 'hour' });
    await act({ type: 'host' });
    await act({ type: 'quit' });
    expect(electron.copied).toEqual(['http://127.0.0.1:7781/v1']);
    expect(done).toEqual([
      { kind: 'event', id: 3 },
      { bringBack: false },
      { startAtLogin: true },
      { type: 'sleep', forMs: 3_600_000 },
      'quit',
    ]);
  });
});
