import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  busctlData,
  parseVariant,
  type RunTool,
  runTool,
  sessionBus,
} from '../../electron/shell/session-bus.ts';
import { findTray } from '../../electron/shell/tray-host.ts';
import { BusPeer, hasBusTools, type PrivateBus, startBus } from '../support/bus-peer.ts';

const WATCHER = 'org.kde.StatusNotifierWatcher';
const OBJECT = { name: WATCHER, path: '/StatusNotifierWatcher', interface: WATCHER };

describe('session bus: what its tools print is read, and nothing else is taken for an answer', () => {
  it('reads what busctl prints', () => {
    expect(busctlData('{"type":"b","data":true}\n')).toBe(true);
    expect(busctlData('{"type":"as","data":["a","b"]}')).toEqual(['a', 'b']);
    expect(busctlData('{"type":"u","data":[42]}')).toEqual([42]);
    for (const text of ['', 'b true', '[]', '"x"', '{"type":"b"}']) expect(busctlData(text), text).toBeNull();
  });

  it('reads what gdbus prints', () => {
    expect(parseVariant('(true,)\n')).toBe(true);
    expect(parseVariant('(<false>,)')).toBe(false);
    expect(parseVariant('(uint32 4711,)')).toBe(4711);
    expect(parseVariant("(['a', ':1.5/Item'],)")).toEqual(['a', ':1.5/Item']);
    expect(parseVariant('(<@as []>,)')).toEqual([]);
    expect(parseVariant("(<'Active'>,)")).toBe('Active');
    expect(parseVariant("(['it\\'s'],)")).toEqual(["it's"]);
    expect(parseVariant('(<[(16, 16, [byte 0x00])]>,)')).not.toBeNull();
    for (const text of ['', '()', 'true', 'Error: no such name']) expect(parseVariant(text), text).toBeNull();
  });

  it('knows nothing where neither tool is there', async () => {
    const bus = sessionBus(async () => null);
    expect(await bus.hasOwner(WATCHER)).toBeNull();
    expect(await bus.isAvailable(WATCHER)).toBeNull();
    expect(await bus.getBoolean(OBJECT, 'X')).toBeNull();
    expect(await bus.getStrings(OBJECT, 'X')).toBeNull();
    expect(await bus.hasProperty(OBJECT, 'X')).toBeNull();
    expect(await bus.pidOf(':1.1')).toBeNull();
    expect((await findTray(bus, 1)).kind).toBe('unknown');
  });

  it('does not wait for a tool that is missing', async () => {
    expect(await runTool('vram-landlord-no-such-tool', [])).toBeNull();
  });
});

// Where a machine has no D-Bus there is nothing to ask.
if (hasBusTools) {
  describe('session bus: a real one, asked with each tool', () => {
    let bus: PrivateBus;
    let before: string | undefined;
    beforeAll(async () => {
      bus = await startBus();
      before = process.env.DBUS_SESSION_BUS_ADDRESS;
      process.env.DBUS_SESSION_BUS_ADDRESS = bus.address;
    });
    afterAll(() => {
      if (before === undefined) delete process.env.DBUS_SESSION_BUS_ADDRESS;
      else process.env.DBUS_SESSION_BUS_ADDRESS = before;
      bus.stop();
    });

    for (const tool of ['busctl', 'gdbus']) {
      const only: RunTool = (program, args) =>
        program === tool ? runTool(program, args) : Promise.resolve(null);

      it(`finds a tray's host, and our icon on it by the process behind it, with ${tool}`, async () => {
        const asked = sessionBus(only);
        expect(await asked.hasOwner(WATCHER)).toBe(false);
        expect(await asked.isAvailable(WATCHER)).toBe(false);
        expect(await findTray(asked, process.pid)).toMatchObject({ kind: 'hidden', retry: false });

        const watcher = await BusPeer.join(bus.address, WATCHER);
        watcher.properties.set('IsStatusNotifierHostRegistered', false);
        expect(await asked.hasOwner(WATCHER)).toBe(true);
        expect(await findTray(asked, process.pid)).toMatchObject({ kind: 'hidden', retry: false });

        watcher.properties.set('IsStatusNotifierHostRegistered', true);
        watcher.properties.set('RegisteredStatusNotifierItems', []);
        expect(await findTray(asked, process.pid)).toMatchObject({ kind: 'hidden', retry: true });

        const icon = await BusPeer.join(bus.address, 'org.freedesktop.StatusNotifierItem-1-1');
        watcher.properties.set('RegisteredStatusNotifierItems', [`${icon.uniqueName}/StatusNotifierItem`]);
        // Registered, and nothing there to show.
        expect(await findTray(asked, process.pid)).toMatchObject({ kind: 'hidden', retry: true });
        icon.properties.set('Status', 'Active');
        expect(await findTray(asked, process.pid)).toEqual({ kind: 'shown', retry: false });
        // By its well-known name, as KDE lists it.
        watcher.properties.set('RegisteredStatusNotifierItems', ['org.freedesktop.StatusNotifierItem-1-1']);
        expect(await findTray(asked, process.pid)).toEqual({ kind: 'shown', retry: false });
        // Another program's icon is not ours.
        expect(await findTray(asked, process.pid + 1)).toMatchObject({ kind: 'hidden', retry: true });
        icon.leave();
        watcher.leave();
      });
    }

    it('tells when the watcher comes, speaks and goes', async () => {
      const onChange = vi.fn();
      const undo = sessionBus().watch(WATCHER, onChange);
      const heard = async (): Promise<void> => {
        await vi.waitFor(() => expect(onChange).toHaveBeenCalled(), { timeout: 10_000 });
        // What belongs together has been heard.
        await new Promise((resolve) => setTimeout(resolve, 200));
        onChange.mockClear();
      };
      await heard();
      const watcher = await BusPeer.join(bus.address, WATCHER);
      await heard();
      watcher.signal('StatusNotifierHostRegistered');
      await heard();
      watcher.leave();
      await heard();
      undo();
    });
  });
}
