import { describe, expect, it } from 'vitest';
import { cardChecks, kernelLogCheck, trayCheck } from '../../electron/cli/doctor-machine.ts';
import type { CardFacts } from '../../electron/core/devices/reader.ts';

const card = (change: Partial<CardFacts>): CardFacts => ({
  id: 'pci:0000:03:00.0',
  kind: 'amdgpu',
  name: 'Radeon',
  pciAddress: '0000:03:00.0',
  path: '/sys/class/drm/card1',
  memory: 'discrete',
  drivesDisplay: true,
  maySuspend: false,
  notes: [],
  ...change,
});

describe('what doctor says of the machine', () => {
  it('a kernel log that may not be read is said as such, with the group that allows it', () => {
    expect(kernelLogCheck(null, 'ada')).toMatchObject({
      outcome: 'skipped',
      detail: [
        expect.stringMatching(/may not read it/),
        expect.stringMatching(/usermod -aG systemd-journal ada.*adm/),
      ],
    });
    expect(kernelLogCheck('journal', null).outcome).toBe('ok');
    expect(kernelLogCheck('kmsg', null).outcome).toBe('ok');
    expect(kernelLogCheck('off', null).detail[0]).toMatch(/kernelLog: off/);
  });

  it('a laptop with two cards: which drives the display, and which one sleeps', () => {
    const asked: string[] = [];
    const cards = [
      card({ id: 'pci:0000:00:02.0', name: 'Iris', memory: 'unified', path: '/sys/class/drm/card0' }),
      card({ drivesDisplay: false, maySuspend: true }),
      card({ drivesDisplay: null, name: 'No node', path: '/sys/bus/pci/devices/0000:01:00.0' }),
    ];
    const checks = cardChecks(cards, (path) => {
      asked.push(path);
      return path.includes('card1') ? 'suspended\n' : 'active\n';
    });
    expect(checks.map((one) => one.detail.join(' '))).toEqual([
      expect.stringMatching(/shares the system’s memory, drives a display\.$/),
      expect.stringMatching(/drives no display\. it sleeps to save power, and is not read/),
      expect.stringMatching(/whether it drives a display is not known\.$/),
    ]);
    // Nothing else of a sleeping card is read.
    expect(asked.every((path) => path.endsWith('/power/runtime_status'))).toBe(true);
    expect(asked[2]).toBe('/sys/bus/pci/devices/0000:01:00.0/power/runtime_status');
    expect(cardChecks([], () => null)).toMatchObject([{ name: 'cards', outcome: 'skipped' }]);
  });

  it('a desktop without a place for tray icons', () => {
    expect(trayCheck('b true\n').outcome).toBe('ok');
    expect(trayCheck('b false\n').detail.join(' ')).toMatch(/AppIndicator/);
    expect(trayCheck(null).detail[0]).toMatch(/no session bus/);
  });
});
