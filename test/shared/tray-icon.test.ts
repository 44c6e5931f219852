import { describe, expect, it } from 'vitest';
import type { Health, LandlordState } from '../../shared/state.ts';
import { trayIcon } from '../../shared/tray-icon.ts';
import { sampleState } from '../support/fake-runtime.ts';

const ASLEEP = { since: '2026-03-04T09:00:00.000Z', until: null };

function stateWith(healths: readonly Health[], asleep: LandlordState['asleep'] = null): LandlordState {
  const state = sampleState();
  const [device] = state.devices;
  if (device === undefined) throw new Error('the sample has a device');
  return { ...state, asleep, devices: healths.map((health) => ({ ...device, health })) };
}

describe('tray icon: the worst that a person can act on', () => {
  it('goes by the health of the devices', () => {
    expect(trayIcon(stateWith(['ok']))).toBe('fine');
    expect(trayIcon(stateWith(['threatened']))).toBe('threatened');
    expect(trayIcon(stateWith(['critical']))).toBe('critical');
    expect(trayIcon(stateWith(['stale']))).toBe('stale');
  });

  it('does not let a device that can not be read hide one in need', () => {
    expect(trayIcon(stateWith(['stale', 'threatened']))).toBe('threatened');
    expect(trayIcon(stateWith(['threatened', 'critical', 'stale']))).toBe('critical');
    expect(trayIcon(stateWith(['ok', 'stale']))).toBe('stale');
  });

  it('shows sleep only while nothing is wrong', () => {
    expect(trayIcon(stateWith(['ok'], ASLEEP))).toBe('asleep');
    expect(trayIcon(stateWith(['threatened'], ASLEEP))).toBe('threatened');
    expect(trayIcon(stateWith(['stale'], ASLEEP))).toBe('stale');
  });

  it('is stale where there is no runtime or no device yet', () => {
    expect(trayIcon(null)).toBe('stale');
    expect(trayIcon(stateWith([]))).toBe('stale');
  });
});
