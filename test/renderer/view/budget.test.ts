import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Budget, budgetOf } from '../../../renderer/view/budget.ts';
import type { DeviceState, LandlordState, TenantState } from '../../../shared/state.ts';
import { loadState, stateNames } from '../../support/states.ts';

const fine = loadState('fine').state;

function withTenants(
  tenants: readonly Partial<TenantState>[],
  change: Partial<DeviceState> = {},
): {
  readonly state: LandlordState;
  readonly budget: Budget;
} {
  const first = fine.devices[0];
  if (first === undefined) throw new Error('the fixture has a device');
  const device = {
    ...first,
    totalBytes: 100e9,
    capBytes: 90e9,
    floorBytes: 4e9,
    outstandingBytes: 0,
    usedBytes: null,
    ...change,
  };
  const state: LandlordState = {
    ...fine,
    devices: [device],
    tenants: tenants.map((tenant, index) => ({
      id: `t${index}`,
      kind: 'foreign',
      name: `t${index}`,
      deviceId: device.id,
      predictedBytes: null,
      measuredBytes: null,
      pids: [],
      ...tenant,
    })),
  };
  const budget = budgetOf(device, state);
  if (budget === null) throw new Error('a known total gives a budget');
  return { state, budget };
}

function total(budget: Budget): number {
  return budget.segments.reduce((sum, segment) => sum + segment.widthPercent, budget.freePercent);
}

describe('budget bar: drawn to scale', () => {
  it('segments and the free rest are the whole, and follow each other without gap', () => {
    const bytes = fc.oneof(fc.constant(null), fc.integer({ min: 0, max: 150_000_000_000 }));
    const kind = fc.constantFrom('desktop', 'model', 'agent', 'reserved', 'foreign');
    const tenant = fc.record({ kind, measuredBytes: bytes, predictedBytes: bytes });
    fc.assert(
      fc.property(fc.array(tenant, { maxLength: 12 }), bytes, (tenants, usedBytes) => {
        const { budget } = withTenants(tenants, { usedBytes });
        expect(total(budget)).toBeCloseTo(100, 6);
        let at = 0;
        for (const segment of budget.segments) {
          expect(segment.fromPercent).toBeCloseTo(at, 6);
          expect(segment.widthPercent).toBeGreaterThan(0);
          at += segment.widthPercent;
        }
        expect(at).toBeLessThanOrEqual(100.000_001);
      }),
      { numRuns: 200 },
    );
  });

  it.each(stateNames)('%s: every fixture adds up', (name) => {
    const { state } = loadState(name);
    for (const device of state.devices) {
      const budget = budgetOf(device, state);
      expect(budget === null ? 100 : total(budget)).toBeCloseTo(100, 6);
    }
  });

  it('marks the floor from the right and the cap from where models begin', () => {
    const { budget } = withTenants([
      { kind: 'desktop', measuredBytes: 5e9 },
      { kind: 'model', name: 'router/a', measuredBytes: 20e9 },
    ]);
    expect(budget.floor).toEqual({ atPercent: 96, label: 'floor: 4 GB kept free' });
    expect(budget.cap).toEqual({ atPercent: 95, label: 'cap: 90 GB for models' });
    // Where the desktop holds more than the cap leaves it, the cap can not bind.
    expect(withTenants([{ kind: 'desktop', measuredBytes: 30e9 }]).budget.cap?.atPercent).toBe(100);
  });

  it('leaves a limit out that is unknown, and draws nothing without a total', () => {
    const { budget } = withTenants([], { floorBytes: null, capBytes: null });
    expect(budget.floor).toBeNull();
    expect(budget.cap).toBeNull();
    for (const device of fine.devices) expect(budgetOf({ ...device, totalBytes: null }, fine)).toBeNull();
  });

  it('says when more is booked than there is, and does not draw past the end', () => {
    const { budget } = withTenants([
      { kind: 'model', name: 'a', measuredBytes: 80e9 },
      { kind: 'foreign', measuredBytes: 30e9 },
    ]);
    expect(budget.freePercent).toBe(0);
    expect(total(budget)).toBeCloseTo(100, 6);
    expect(budget.over).toBe('10 GB more is booked than there is.');
  });
});

describe('budget bar: who holds what', () => {
  it('draws a loading model solid as far as it is seen, and the rest hatched', () => {
    const { state } = loadState('after-eviction');
    const device = state.devices[0];
    if (device === undefined) throw new Error('the fixture has a device');
    const qwen = budgetOf(device, state)?.segments.filter((segment) => segment.label === 'qwen-27b') ?? [];
    expect(qwen.map(({ hatched, bytesText }) => [hatched, bytesText])).toEqual([
      [false, '6.1 GB'],
      [true, '12.5 GB to come'],
    ]);
    expect(qwen[0]?.tone).toBe(qwen[1]?.tone);
  });

  it('shows memory that nobody answers for as such, never as a model', () => {
    const { budget } = withTenants([{ kind: 'desktop', measuredBytes: 5e9 }], { usedBytes: 12e9 });
    expect(budget.keys.map(({ name, bytesText }) => `${name} ${bytesText}`)).toContain('Not attributed 7 GB');
  });

  it('shows a load that no tenant stands for yet, once', () => {
    const { budget } = withTenants([], { outstandingBytes: 10e9 });
    expect(budget.segments).toMatchObject([{ label: 'Loading', hatched: true, widthPercent: 10 }]);
    const both = withTenants([{ kind: 'reserved', predictedBytes: 10e9 }], { outstandingBytes: 10e9 });
    expect(both.budget.segments).toMatchObject([{ label: 't0', hatched: true, widthPercent: 10 }]);
  });

  it('takes the prediction for a loaded model that can not be measured, and says so', () => {
    const { budget } = withTenants([{ kind: 'model', name: 'router/pipeline-9b', predictedBytes: 10e9 }]);
    expect(budget.segments).toMatchObject([{ label: 'pipeline-9b', hatched: false, widthPercent: 10 }]);
    expect(budget.keys[0]?.detail).toBe('predicted');
  });

  it('orders desktop, others, booked, and names the largest holders', () => {
    const parts = [
      { name: 'kwin', bytes: 0.6e9, pid: 1 },
      { name: 'firefox', bytes: 0.8e9, pid: 2 },
      { name: 'kitty', bytes: 0.1e9, pid: 3 },
    ];
    const { budget } = withTenants([
      { kind: 'agent', name: 'indexer', measuredBytes: 1e9 },
      { kind: 'model', name: 'router/pipeline-9b', measuredBytes: 2e9 },
      { kind: 'reserved', name: 'job', measuredBytes: 3e9 },
      { kind: 'foreign', name: 'blender', measuredBytes: 4e9 },
      { kind: 'desktop', name: 'Desktop', measuredBytes: 5e9, parts },
    ]);
    expect(budget.segments.map((segment) => segment.label)).toEqual([
      'Desktop',
      'blender',
      'job',
      'pipeline-9b',
      'indexer',
    ]);
    expect(budget.keys[0]?.detail).toBe('firefox 800 MB, kwin 600 MB, 1 more');
  });

  it('says what the desktop usually holds, once that is learned', () => {
    const desktop = (change: Partial<TenantState>) =>
      withTenants([{ kind: 'desktop', name: 'Desktop', measuredBytes: 5e9, ...change }]).budget.keys[0]
        ?.detail;
    const usual = { idleBytes: 1.2e9, busyBytes: 3.4e9 };
    const parts = [{ name: 'kwin', bytes: 0.6e9, pid: 1 }];
    expect(desktop({ usual, parts })).toBe('kwin 600 MB; usually 1.2 GB idle, 3.4 GB in use');
    expect(desktop({ usual })).toBe('usually 1.2 GB idle, 3.4 GB in use');
    expect(desktop({})).toBeNull();
  });

  it('tells free memory now from free memory once all is loaded; unknown is left out, not 0', () => {
    const free = (change: Partial<DeviceState>) => withTenants([], change).budget.keys.at(-1);
    expect(free({ freeBytes: 20e9 })).toMatchObject({ bytesText: '20 GB', detail: null });
    expect(free({ freeBytes: 20e9, outstandingBytes: 12e9 })).toMatchObject({
      detail: '8 GB once all is loaded',
    });
    expect(free({ freeBytes: null })).toBeUndefined();
  });

  it('counts only the tenants of this device', () => {
    const { budget } = withTenants([{ kind: 'foreign', measuredBytes: 10e9, deviceId: 'elsewhere' }]);
    expect(budget.segments).toEqual([]);
  });
});
